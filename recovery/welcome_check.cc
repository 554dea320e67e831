// SPDX-License-Identifier: Apache-2.0
#include "recovery/welcome_check.h"

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"

namespace alpheus {

absl::Status CheckReplicatedRing(uint64_t ring_capacity) {
  if (ring_capacity % kLineBytes == 0 &&
      ring_capacity <= kReplicatedRingBytesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a ring of ", ring_capacity, " bytes, expected a multiple of ",
      kLineBytes, " up to ", kReplicatedRingBytesMax,
      " (256 GiB), as a replicated log's"));
}

absl::Status CheckWelcome(const Welcome& welcome) {
  if (welcome.incarnation == 0 || welcome.ring_capacity == 0) {
    return absl::NotFoundError(
        "has no replica of this log; `alpheus replace` gives it one if it has "
        "lost it, `alpheus format --cluster` makes a new log");
  }
  const absl::Status ring = CheckReplicatedRing(welcome.ring_capacity);
  if (ring.ok()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("welcomes with ", ring.message(), ". Look at that replica"));
}

}  // namespace alpheus
