// SPDX-License-Identifier: Apache-2.0
// backup_stream: a backup of a log, sent to an administrator.
//
// Idea: one message is under way at a time. The next one is composed when it
// has left, on gRPC's thread, out of the log itself (log_backup.h). So a backup
// takes a message and a record of memory, whatever the size of the log, and a
// slow client makes nobody wait: a cleanup that passes it ends it.
//
// Invariants:
//   BKS1. The stream has left the log soon after that is drained, whether or
//         not its client reads (SST1, server_stream.h).
//   BKS2. No message leaves once the client may no longer order and read: the
//         stream ends in its place (ACS2, access.h).
//   BKS3. `end` is sent only after all of the backup, and once: a stream that
//         ends before is no backup.
// Thread safety: gRPC's threads, and one that drains.
#ifndef ALPHEUS_API_GRPC_CALLS_BACKUP_STREAM_H_
#define ALPHEUS_API_GRPC_CALLS_BACKUP_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "alpheus/v1/admin_service.pb.h"
#include "api/grpc/access/access.h"
#include "api/grpc/access/crypto.h"
#include "api/grpc/calls/call_counts.h"
#include "api/grpc/calls/server_stream.h"
#include "api/grpc/wire/call_error.h"
#include "api/log/log_backup.h"
#include "api/service/served/served_logs.h"
#include "log/base/random.h"

namespace alpheus::rpc {

class BackupStream final
    : public ServerStream<BackupStream,
                          grpc::ServerWriteReactor<v1::BackupResponse>> {
 public:
  // The permits that the caller needs.
  struct Permits {
    Permit order;  // role `admin`
    Permit read;   // role `read`: a backup shows all records
  };

  // Begins a backup. The stream owns itself until it is done. Without a log, it
  // ends with the error. `counts` must outlive it.
  static BackupStream* Start(service::ServedLogs& logs, CallCounts& counts,
                             Permits permits, const v1::BackupRequest& request);
  // Ends at once.
  static BackupStream* Refuse(CallCounts& counts, Permits permits,
                              const CallError& error);

 private:
  // Bytes of the region, as they wait to be sent.
  struct Piece {
    uint64_t offset = 0;
    std::string data;
  };

  BackupStream(CallCounts& counts, Permits permits)
      : ServerStream(counts, Method::kBackup), permits_(std::move(permits)) {}

  static std::shared_ptr<BackupStream> Make(CallCounts& counts,
                                            Permits permits);

  std::optional<CallError> Open(service::ServedLogs& logs,
                                const v1::BackupRequest& request);
  absl::Status Recheck() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override;
  void StopReading() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) override {
    backup_.reset();
  }
  // Has a message's worth of bytes composed, or all that is left.
  absl::Status Fill() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(uint64_t offset, std::span<const std::byte> bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendEnd() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  EntropyRandom random_;

  Permits permits_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LogBackup> backup_ ABSL_GUARDED_BY(mutex_);
  std::deque<Piece> pieces_ ABSL_GUARDED_BY(mutex_);
  size_t piece_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of all of them
  bool is_composed_ ABSL_GUARDED_BY(mutex_) = false;
  Sha256OfParts sum_ ABSL_GUARDED_BY(mutex_);  // of what was sent
  uint64_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // pieces
  v1::BackupResponse response_;                // gRPC's while it is under way
};

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_CALLS_BACKUP_STREAM_H_
