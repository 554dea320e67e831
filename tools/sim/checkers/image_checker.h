// SPDX-License-Identifier: Apache-2.0
// image_checker: whether records lie on W media when their primary counts them
// as durable.
//
// Idea: the most valuable assertion of all (P-INV-22), for it looks at what a
// power cut leaves and not at what anybody says: at the moment when the durable
// LSN of a primary moves, each record that it passes is read from the primary's
// ring and compared, byte by byte but for its CLEANED word, with what lies at
// the same place of each machine's persistent image. Its
// payload must hold there, too. A machine counts whose medium has the primary's
// epoch installed, or a later one that took the record over: before that, what
// it acknowledges must not count (P-A5). It must be a member of the
// configuration of that epoch, whose W is asked.
//
// Thread safety: one thread.
// References: protocol P-H22, P-INV-22; P-A1.
#ifndef ALPHEUS_TOOLS_SIM_CHECKERS_IMAGE_CHECKER_H_
#define ALPHEUS_TOOLS_SIM_CHECKERS_IMAGE_CHECKER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "log/core/read/record_cursor.h"
#include "log/core/ring/ring_log.h"
#include "tools/sim/world/world.h"

namespace alpheus::sim {

class ImageChecker {
 public:
  // Of a primary whose ring this is, from where its epoch began.
  ImageChecker(World& world, Ring ring, const RingLogStart& start);

  // The primary says that all up to `lsn` is durable.
  void OnDurable(Lsn lsn);

 private:
  // The log goes on at `behind`.
  void Check(const RecordView& record, const LogPosition& behind);
  bool IsHolder(const World::Machine& machine, const std::byte* own,
                uint64_t at, uint64_t bytes) const;
  bool WasHolder(const World::Machine& machine, const std::byte* own,
                 uint64_t at, uint64_t bytes) const;
  int Holders(RingOffset offset, uint64_t bytes) const;

  World& world_;
  const Ring ring_;
  const EpochTable table_;
  const Epoch epoch_;
  LogPosition position_;
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_CHECKERS_IMAGE_CHECKER_H_
