// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/work_request.h"

#include "absl/strings/str_cat.h"

namespace alpheus::fabric {

absl::Status CheckWorkRequest(const WorkRequest& request,
                              uint64_t message_bytes_max) {
  if (request.local.bytes.size() > message_bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a message of ", request.local.bytes.size(), " bytes, but at most ",
        message_bytes_max, " are taken; split it"));
  }
  const bool is_atomic = IsAtomic(request.operation) || request.is_atomic_write;
  if (is_atomic && (request.local.bytes.size() != sizeof(uint64_t) ||
                    request.remote.offset % sizeof(uint64_t) != 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an atomic on offset ", request.remote.offset,
        request.is_atomic_write ? " of " : " into ", request.local.bytes.size(),
        " bytes; it takes a word of 8 bytes on a multiple of 8"));
  }
  return absl::OkStatus();
}

absl::Status NoConnection(ConnectionId id) {
  return absl::NotFoundError(absl::StrCat(
      "connection ", id.value,
      " is not known here; it was closed, or is another fabric's"));
}

absl::Status CheckPrivateData(std::string_view data, uint32_t bytes_max) {
  if (data.size() <= bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("private data of ", data.size(), " bytes, but at most ",
                   bytes_max, " are taken; send the rest when connected"));
}

}  // namespace alpheus::fabric
