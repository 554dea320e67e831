// SPDX-License-Identifier: Apache-2.0
// breakpoint: a fault that waits for a call of a machine's persistence
// primitive, and strikes before the call acts.
//
// Idea: few calls touch a replica's metadata, where a crash can break most. So
// half of the breakpoints count these calls only. A fence counts as such a call
// if metadata was touched since the previous fence.
//
// Thread safety: one thread.
// References: crash_model.h; layout.h.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_BREAKPOINT_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_BREAKPOINT_H_

#include <cstdint>

#include "tools/model/memory/crash_model.h"
#include "tools/sim/world/options.h"

namespace alpheus::sim {

// Calls of the primitive that it counts.
enum class BreakpointAim {
  kAnyCall,
  kMetadata,          // superline, watermark and table, and fences after them
  kSuperlineOrTable,  // these two alone
};

class Breakpoint {
 public:
  // Sets the breakpoint: it strikes in the `calls`-th counted call from now on,
  // calls >= 1.
  void Set(FaultKind kind, BreakpointAim aim, uint64_t calls);
  void Clear() { calls_ = 0; }
  bool is_set() const { return calls_ != 0; }
  FaultKind kind() const { return kind_; }
  BreakpointAim aim() const { return aim_; }

  // Notes a call that is about to act, in a region whose ring begins at
  // `ring_offset`. Returns true if it strikes now.
  bool OnCall(const model::ModelPersistence::Event& event,
              uint64_t ring_offset);
  // Strikes at the next counted call instead.
  void StrikeAgain() { calls_ = 1; }

 private:
  bool Touches(const model::ModelPersistence::Event& event,
               uint64_t ring_offset) const;
  bool Counts(const model::ModelPersistence::Event& event,
              uint64_t ring_offset);

  FaultKind kind_ = FaultKind::kPowerCut;
  BreakpointAim aim_ = BreakpointAim::kAnyCall;
  uint64_t calls_ = 0;       // left; 0: not set
  bool is_touched_ = false;  // since the last fence
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_BREAKPOINT_H_
