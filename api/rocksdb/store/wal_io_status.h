// SPDX-License-Identifier: Apache-2.0
// wal_io_status: what RocksDB is told when the log says no.
//
// Idea: RocksDB decides by code, subcode and flags whether it goes on, tries
// again by itself, or stops. After a write or a sync of unknown outcome it must
// stop: going on would acknowledge what stands behind bytes that may be lost.
//
//   of the log           RocksDB sees                   and then
//   ResourceExhausted    IOError, NoSpace               stops writing; Resume()
//                                                       flushes and goes on
//   Aborted              IOError, IOFenced, data loss   stops for good
//   Unavailable,         IOError, data loss             stops for good
//     DeadlineExceeded
//   DataLoss             Corruption                     refuses to open
//   Unimplemented        NotSupported
//   InvalidArgument      InvalidArgument
//   NotFound, of a file  IOError, PathNotFound          a secondary goes on
//   else                 IOError
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_IO_STATUS_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_IO_STATUS_H_

#include "absl/status/status.h"
#include "rocksdb/io_status.h"

namespace alpheus {

rocksdb::IOStatus ToIoStatus(const absl::Status& status);

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_IO_STATUS_H_
