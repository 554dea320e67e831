// SPDX-License-Identifier: Apache-2.0
// wal_io_status: converts errors of the log for RocksDB.
//
// Idea: by code, subcode and flags RocksDB decides whether it continues,
// retries by itself, or stops. After a write or a sync of unknown outcome it
// must stop: otherwise it would acknowledge data after bytes that may be lost.
//
//   of the log           RocksDB sees                   and then
//   ResourceExhausted    IOError, NoSpace               stops writing; Resume()
//                                                       flushes and continues
//   Aborted              IOError, IOFenced, data loss   stops for good
//   Unavailable,         IOError, data loss             stops for good
//     DeadlineExceeded
//   DataLoss             Corruption                     refuses to open
//   Unimplemented        NotSupported
//   InvalidArgument      InvalidArgument
//   NotFound, of a file  IOError, PathNotFound          a secondary continues
//   else                 IOError
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_IO_STATUS_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_IO_STATUS_H_

#include "absl/status/status.h"
#include "rocksdb/io_status.h"

namespace alpheus::wal {

rocksdb::IOStatus ToIoStatus(const absl::Status& status);

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_IO_STATUS_H_
