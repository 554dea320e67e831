// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_io_status.h"

#include <string>

namespace alpheus::wal {
namespace {

using rocksdb::IOStatus;

IOStatus Fatal(IOStatus status) {
  status.SetRetryable(false);
  // Scope is the whole file system; a single file RocksDB would replace by a
  // new one.
  status.SetScope(IOStatus::kIOErrorScopeFileSystem);
  status.SetDataLoss(true);
  return status;
}

}  // namespace

IOStatus ToIoStatus(const absl::Status& status) {
  // First: the usual case makes no message.
  if (status.ok()) return IOStatus::OK();
  const std::string message = "alpheus: " + std::string(status.message());
  switch (status.code()) {
    case absl::StatusCode::kResourceExhausted:
      return IOStatus::NoSpace(message);
    case absl::StatusCode::kAborted:
      return Fatal(IOStatus::IOFenced(message));
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return Fatal(IOStatus::IOError(message));
    case absl::StatusCode::kDataLoss:
      return IOStatus::Corruption(message);
    case absl::StatusCode::kUnimplemented:
      return IOStatus::NotSupported(message);
    case absl::StatusCode::kInvalidArgument:
      return IOStatus::InvalidArgument(message);
    case absl::StatusCode::kNotFound:
      return IOStatus::PathNotFound(message);
    default:
      return IOStatus::IOError(message);
  }
}

}  // namespace alpheus::wal
