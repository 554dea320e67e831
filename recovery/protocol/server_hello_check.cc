// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/server_hello_check.h"

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"

namespace alpheus::recovery {

absl::Status HasNoReplica(NodeId node) {
  return absl::NotFoundError(absl::StrCat(
      "has no replica of this log; if it was lost, `alpheus replace --cluster "
      "FILE --log NAME --node ",
      node.value, "` makes it again"));
}

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

absl::Status CheckServerHello(const ServerHello& server_hello) {
  if (server_hello.incarnation == 0 || server_hello.ring_capacity == 0) {
    return HasNoReplica(server_hello.node);
  }
  const absl::Status ring = CheckReplicatedRing(server_hello.ring_capacity);
  if (ring.ok()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "sent a server hello with ", ring.message(), ". Look at that replica"));
}

}  // namespace alpheus::recovery
