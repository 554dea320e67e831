// SPDX-License-Identifier: Apache-2.0
// image_checker: checks that records are on W media when their primary counts
// them as durable, and on as many as are in sync when it says so.
//
// Idea: the most valuable assertion of all (P-INV-22), because it believes only
// what a power cut leaves. When the durable LSN of a primary moves, each record
// that it passes is read from the primary's ring. It is compared, byte by byte
// except for its CLEANED word, with the same place of each machine's persistent
// image. Its payload must hold there too. A machine counts if its medium has
// the primary's epoch installed, or a later one that took the record over:
// before that its acks must not count (P-A5). It must be a member of the
// configuration of that epoch, whose W applies.
//
// Thread safety: one thread.
// References: protocol P-H22, P-INV-22; P-A1.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_IMAGE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_IMAGE_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "log/core/read/record_cursor.h"
#include "log/core/ring/ring_log.h"
#include "tools/sim/world/region_store.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class ImageChecker {
 public:
  // Checks the primary of this ring, from the start of its epoch on.
  ImageChecker(World& world, Ring ring, const RingLogStart& start);

  // Checks the records up to `lsn`, which the primary reports as durable.
  void OnDurable(Lsn lsn);
  // Checks the records from `head` up to `lsn`, which the primary reports as
  // persisted by all replicas in sync (RSK4); `in_sync`: how many these are. A
  // replica that joined needs none before the head. Requires: they are durable.
  void OnInSync(Lsn head, Lsn lsn, int in_sync);

 private:
  // Visits the records from `position` to `lsn`, and moves it.
  void ForEachUpTo(Lsn lsn, LogPosition* position,
                   absl::FunctionRef<void(const RecordView& record,
                                          const LogPosition& behind)>
                       visit);
  // Checks one record; the log continues at `behind`.
  void Check(const RecordView& record, const LogPosition& behind);
  bool IsHolder(const World::Machine& machine, const std::byte* own,
                uint64_t at, uint64_t bytes) const;
  // Returns whether it was one before a fault.
  bool WasHolder(std::span<const RegionStore::Before> before,
                 const World::Machine& machine, const std::byte* own,
                 uint64_t at, uint64_t bytes) const;
  // `with_rolled_back`: also those that were, until they were rolled back.
  int Holders(RingOffset offset, uint64_t bytes, bool with_rolled_back) const;

  World& world_;
  const Ring ring_;
  const EpochTable table_;
  const Epoch epoch_;
  LogPosition position_;          // behind what was durable
  LogPosition in_sync_position_;  // behind what all in sync had
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_IMAGE_CHECKER_H_
