// SPDX-License-Identifier: Apache-2.0
// scrubbed_replica: a replica as who scrubs it sees it: one that this node
// serves, or the own one of a primary.
//
// Thread safety: one thread, but for what WhileAtRest says.
// References: protocol P-A8; scrubbing.h.
#ifndef ALPHEUS_RECOVERY_SCRUB_SCRUBBED_REPLICA_H_
#define ALPHEUS_RECOVERY_SCRUB_SCRUBBED_REPLICA_H_

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/format/layout.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

class ScrubbedReplica {
 public:
  virtual ~ScrubbedReplica() = default;

  virtual Uuid log_id() const = 0;
  // Another one after the replica was made anew, as its log may have been; 0:
  // it never is.
  virtual uint64_t incarnation() const { return 0; }
  // What it persisted last is unknown: it is of no more use. Whoever opens the
  // region again must take it for suspect (answer.h).
  virtual bool medium_failed() const = 0;
  // The bytes of the records; they stay where they are.
  virtual std::span<std::byte> ring() const = 0;
  // The same bytes as the medium holds them, of what was persisted: elsewhere
  // where the ring is a copy of them in memory.
  virtual std::span<std::byte> ring_on_medium() const { return ring(); }
  // How far it is, with its table.
  virtual Followed followed() const = 0;

  // Runs `work` while nobody else writes a byte from the head that followed()
  // says to the last record that is persisted; not even "cleaned". Short: a
  // primary's threads may wait for it.
  virtual void WhileAtRest(absl::FunctionRef<void()> work) { work(); }
  // Writes the bytes at their place in the ring, and persists them. Requires:
  // at rest; they don't cross the ring's end. Errors: the medium's.
  virtual absl::Status RestoreBytes(RingOffset offset,
                                    std::span<const std::byte> bytes) = 0;
  // Writes copies of superline and epoch table anew that are not as they were
  // written; how many. Errors: the medium's, and as that of Replica.
  virtual absl::StatusOr<int> MendCopies() = 0;
};

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_SCRUB_SCRUBBED_REPLICA_H_
