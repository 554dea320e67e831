// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/work_request.h"

#include "absl/strings/str_cat.h"

namespace alpheus {
namespace {

bool IsAtomic(const WorkRequest& request) {
  return request.operation == Operation::kCompareSwap ||
         request.operation == Operation::kFetchAdd || request.is_atomic_write;
}

}  // namespace

absl::Status CheckWorkRequest(const WorkRequest& request,
                              uint64_t message_bytes_max) {
  if (request.local.bytes.size() > message_bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a message of ", request.local.bytes.size(), " bytes, but at most ",
        message_bytes_max, " are taken; split it"));
  }
  if (IsAtomic(request) && (request.local.bytes.size() != sizeof(uint64_t) ||
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

absl::Status WorkRequestFabric::PostWrite(ConnectionId connection, WorkId work,
                                          LocalBytes from, RemoteAddress to) {
  return Post(connection, {.operation = Operation::kWrite,
                           .work = work,
                           .local = from,
                           .remote = to});
}

absl::Status WorkRequestFabric::PostWriteImmediate(ConnectionId connection,
                                                   WorkId work, LocalBytes from,
                                                   RemoteAddress to,
                                                   uint32_t immediate) {
  return Post(connection, {.operation = Operation::kWriteImmediate,
                           .work = work,
                           .local = from,
                           .remote = to,
                           .immediate = immediate});
}

absl::Status WorkRequestFabric::PostRead(ConnectionId connection, WorkId work,
                                         LocalBytes into, RemoteAddress from) {
  return Post(connection, {.operation = Operation::kRead,
                           .work = work,
                           .local = into,
                           .remote = from});
}

absl::Status WorkRequestFabric::PostCompareSwap(ConnectionId connection,
                                                WorkId work, LocalBytes into,
                                                RemoteAddress word,
                                                uint64_t expected,
                                                uint64_t desired) {
  return Post(connection, {.operation = Operation::kCompareSwap,
                           .work = work,
                           .local = into,
                           .remote = word,
                           .operands = {expected, desired}});
}

absl::Status WorkRequestFabric::PostFetchAdd(ConnectionId connection,
                                             WorkId work, LocalBytes into,
                                             RemoteAddress word, uint64_t add) {
  return Post(connection, {.operation = Operation::kFetchAdd,
                           .work = work,
                           .local = into,
                           .remote = word,
                           .operands = {add, 0}});
}

absl::Status WorkRequestFabric::PostFlush(ConnectionId connection, WorkId work,
                                          RemoteAddress range, uint64_t bytes) {
  return Post(connection, {.operation = Operation::kFlush,
                           .work = work,
                           .remote = range,
                           .range_bytes = bytes});
}

absl::Status WorkRequestFabric::PostSend(ConnectionId connection, WorkId work,
                                         LocalBytes from) {
  return Post(connection,
              {.operation = Operation::kSend, .work = work, .local = from});
}

}  // namespace alpheus
