// SPDX-License-Identifier: Apache-2.0
// holder_checker: whether records stay on W media once they are durable.
//
// Idea: image_checker looks when a record becomes durable; this keeps a copy of
// it, and looks again for as long as nobody has cleaned it: when power is cut,
// when an epoch opens, and every so many events. No repair, no rival and no cut
// may leave fewer than W media that hold it at its place. A medium whose log
// epoch is older than that of the primary that counted the record is not
// counted: what lies there is on its way, and nobody may build upon it; nor is
// one that the configuration of that epoch does not name. What a storage fault
// took counts as if it was there, and so does what a flip took on its way to a
// suspect replica, until a later epoch is shown: that must be on W media again.
//
// What it can't see: records that were durable and that their primary had not
// counted yet.
// Thread safety: one thread.
// References: protocol P-C1, P-A5, P-INV-9, P-INV-22, P-H12.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_HOLDER_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_HOLDER_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "log/core/read/record_cursor.h"
#include "recovery/protocol/answer.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

// Whether both hold the same record; CLEANED words apart, and what lies behind
// the payload, which nobody reads.
bool AreOneRecord(const std::byte* a, const std::byte* b, uint64_t bytes);

class HolderChecker {
 public:
  explicit HolderChecker(World& world) : world_(world) {}

  // The record is durable, on W media with that log epoch or a later one;
  // `bytes` is where it lies.
  void Learn(const RecordView& record, const std::byte* bytes, Epoch log_epoch);
  // Looks at all media.
  void Look();
  // Of a medium that has that epoch installed. False: another record is durable
  // in its place; one of a later epoch such a medium may not know.
  bool Agrees(const RecordView& record, Epoch log_epoch) const;
  // LSNs of those that nobody has cleaned; of these, that lie on the machine's
  // medium now, whether it counts or not.
  std::set<uint64_t> Needed() const;
  std::set<uint64_t> HeldOn(int machine) const;
  // A replica that knows says to have what is durable and on its medium.
  void JudgeAnswer(int machine, const Answer& answer) const;
  // It denies nothing that it proves to have had, and that was damaged.
  void JudgeDamaged(int machine, const Answer& answer) const;

 private:
  struct Copy {
    Epoch epoch;
    uint32_t header_crc = 0;
    RingOffset offset;
    Epoch log_epoch;  // of the primary that said so
    std::vector<std::byte> bytes;
  };

  // Whether it lies there, and was acknowledged or installed there, or could
  // have been.
  bool Holds(int machine, const Copy& copy) const;
  // It did, until a storage fault took it.
  bool HeldBefore(int machine, const Copy& copy) const;
  bool LiesIn(std::span<const std::byte> image, const Copy& copy) const;
  int Holders(const Copy& copy) const;

  World& world_;
  std::map<uint64_t, Copy> copies_;  // by LSN
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_HOLDER_CHECKER_H_
