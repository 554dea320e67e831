// SPDX-License-Identifier: Apache-2.0
// trap: a fault that waits for a call of a machine's persistence primitive, and
// strikes before that acts.
//
// Idea: of all calls only few touch what a replica says of itself, and it is
// there that a crash has most to break. So half of the traps count nothing but
// these. A fence belongs to what was touched since the fence before.
//
// Thread safety: one thread.
// References: crash_model.h; layout.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_TRAP_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_TRAP_H_

#include <cstdint>

#include "tools/model/memory/crash_model.h"
#include "tools/sim/world/options.h"

namespace alpheus::sim {

// Which calls of the primitive it counts.
enum class TrapAim {
  kAnyCall,
  kMetadata,          // superline, watermark and table, and fences behind them
  kSuperlineOrTable,  // these two alone
};

class Trap {
 public:
  // Strikes in the `calls`-th call that it counts from now on, calls >= 1.
  void Set(FaultKind kind, TrapAim aim, uint64_t calls);
  void Clear() { calls_ = 0; }
  bool is_set() const { return calls_ != 0; }
  FaultKind kind() const { return kind_; }
  TrapAim aim() const { return aim_; }

  // A call is about to act, in a region whose ring begins at `ring_offset`.
  // True: now it strikes.
  bool OnCall(const ModelPersistence::Event& event, uint64_t ring_offset);
  // It could not; the next call that it counts, then.
  void StrikeAgain() { calls_ = 1; }

 private:
  bool Touches(const ModelPersistence::Event& event,
               uint64_t ring_offset) const;
  bool Counts(const ModelPersistence::Event& event, uint64_t ring_offset);

  FaultKind kind_ = FaultKind::kPowerCut;
  TrapAim aim_ = TrapAim::kAnyCall;
  uint64_t calls_ = 0;       // left; 0: not set
  bool is_touched_ = false;  // since the last fence
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_TRAP_H_
