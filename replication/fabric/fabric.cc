// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/fabric.h"

#include "absl/strings/str_cat.h"

namespace alpheus::fabric {

absl::Status Fabric::PostWriteAtomic(ConnectionId connection, WorkId work,
                                     LocalBytes from, RemoteAddress to) {
  if (!limits().atomic_write) {
    return absl::UnimplementedError(absl::StrCat(
        "post an atomic write on connection ", connection.value,
        ": this adapter has none; write after the completion of a flush"));
  }
  return Post(connection, {.operation = Operation::kWrite,
                           .work = work,
                           .local = from,
                           .remote = to,
                           .is_atomic_write = true});
}

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kWrite:
      return "write";
    case Operation::kWriteImmediate:
      return "write with immediate";
    case Operation::kRead:
      return "read";
    case Operation::kCompareSwap:
      return "compare and swap";
    case Operation::kFetchAdd:
      return "fetch and add";
    case Operation::kFlush:
      return "flush";
    case Operation::kSend:
      return "send";
    case Operation::kReceive:
      return "receive";
    case Operation::kReceiveImmediate:
      return "receive of an immediate";
  }
  return "unknown operation";
}

const char* CompletionStatusName(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kOk:
      return "ok";
    case CompletionStatus::kFlushed:
      return "its turn did not come";
    case CompletionStatus::kRemoteAccess:
      return "refused by the peer: key, bounds or access";
    case CompletionStatus::kReceiverNotReady:
      return "the peer had no receive posted";
    case CompletionStatus::kReceiveTooSmall:
      return "the receive was smaller than the send";
    case CompletionStatus::kPeerGone:
      return "the peer did not answer";
    case CompletionStatus::kLocalAccess:
      return "own bytes were deregistered before their turn";
  }
  return "unknown status";
}

}  // namespace alpheus::fabric
