// SPDX-License-Identifier: Apache-2.0
// wal_store: WAL files in one Alpheus log; the base of the RocksDB plugin.
//
// Idea: all files share one log, so there is one order over all their bytes:
// forcing a byte forces all bytes written before it, in any file. A newer WAL
// can't be durable where an older one is not.
//
// Invariants:
//   WST1. Bytes appended before a Sync, of any file, that returned OK are in
//         every later opening, unless their file was removed.
//   WST2. After a crash the files hold a prefix of all writes: no byte without
//         the bytes before it, in any file.
//   WST3. Records are cleaned only when no reader can need them any more, and
//         only after the record of their removal, if there is one, is durable.
//   WST4. A file can be made, and any file removed, however full the ring is
//         and however many processes ended before they removed anything.
//   WST5. A process cleans a replicated log only if it still had the log after
//         the removal. Otherwise another process may need the removed records.
// Persistence: wal_record.h has the records. Removing is a hint: a crash may
// bring a removed file back, whole, as RocksDB allows (it removes obsolete
// files again). For WST4, once the ring's headroom is used up (wal_space.h),
// records are left out:
// * A file is removed without a record. Cleaning shows the removal to the next
//   opening, since a file whose first record is before the head is none (WIX2,
//   wal_index.h).
// * A file is made without a record until it has data. A crash leaves nothing
//   of it, as if it had never been made.
// Thread safety: all members concurrently; one thread at a time appends to a
// file. Lock order: `mutex_`, then that of a file.
// Errors:
// * After Aborted, Unavailable or DeadlineExceeded of Append, Sync and calls
//   that write metadata, the outcome is unknown and the log has failed: open it
//   again.
// * ResourceExhausted: the ring is full, nothing was written.
// * FailedPrecondition: the file was removed.
#ifndef ALPHEUS_API_ROCKSDB_STORE_WAL_STORE_H_
#define ALPHEUS_API_ROCKSDB_STORE_WAL_STORE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/log.h"
#include "api/rocksdb/store/wal_file.h"
#include "api/rocksdb/store/wal_index.h"
#include "api/rocksdb/store/wal_options.h"
#include "api/rocksdb/store/wal_space.h"
#include "log/base/mutex.h"

namespace alpheus::wal {

class WalStore {
 public:
  using NowSeconds = std::function<uint64_t()>;

  // Recovers the log, or makes it (WalOptions::create_bytes).
  // Errors: as Log::Open and Log::Format; DataLoss, Unimplemented and
  // FailedPrecondition (wal_record.h, wal_index.h).
  static absl::StatusOr<std::unique_ptr<WalStore>> Open(
      const WalOptions& options, NowSeconds now_seconds);

  WalHome home() const;
  // Sets the home; durable on return.
  absl::Status SetHome(const WalHome& home);
  // Sets the home after a take-over. The log keeps the directory that it left,
  // until a database is there again.
  absl::Status SetTakenOver(const WalHome& home);
  WalLeft left() const;
  WalVouch vouch() const;
  // Sets the vouch; durable on return. Requires: the id is not empty.
  absl::Status SetVouch(const WalVouch& vouch);
  // Returns whether a home record fits into the room for data.
  bool HasRoomForHome() const;

  // Returns the file, or null.
  std::shared_ptr<WalFile> Find(const std::string& name) const;
  std::vector<std::string> List(const std::string& directory) const;

  // Makes an empty file; replaces one of that name. Durable after the next
  // sync, except while it is not recorded (WST4).
  absl::StatusOr<std::shared_ptr<WalFile>> Create(const std::string& name);
  // Renames a file; replaces one of the new name. Durable after the next sync.
  // Errors: NotFound; ResourceExhausted.
  absl::Status Rename(const std::string& from, const std::string& to);
  // Removes a file and frees the room that nobody needs any more. Durable on
  // return, except as in WST4. Errors: NotFound.
  absl::Status Remove(const std::string& name);
  // Shortens a file. Durable after the next sync. Errors: InvalidArgument (size
  // above the file's).
  absl::Status Truncate(WalFile& file, uint64_t size);

  // Completes one record, or several for large data. If the file's earlier data
  // was synced, the new data is durable on return; in a replicated log it is on
  // its way to the backups. In a full ring it waits for room, at most
  // WalOptions::stall_ms.
  absl::Status Append(WalFile& file, std::span<const std::byte> bytes);
  // Makes the file's data durable, and all that was written before it.
  absl::Status Sync(WalFile& file);
  // Makes all data written so far durable.
  absl::Status SyncAll();
  // Returns OK if this process had the log at some moment of the call: W
  // replicas took a record from it. If a full ring has no room for that record:
  // OK if the log is not known to be lost. Errors: as Sync.
  absl::Status ConfirmPrimary();
  // Returns whether the log is replicated. If not, no other process can open it
  // while this one has it.
  bool is_replicated() const { return is_replicated_; }
  // Copies bytes from `offset`; fewer than out.size() only at the end of the
  // file. Errors: Aborted (another primary has the log's replica).
  absl::StatusOr<size_t> Read(WalFile& file, uint64_t offset,
                              std::span<std::byte> out);

  // Returns true after a write or a sync of unknown outcome: only opening again
  // helps.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  const WalSpace& space() const { return space_; }
  // Returns the log, to inspect its report, status and durable LSN.
  const Log& log() const { return *log_; }
  uint64_t stalls() const { return stalls_.load(std::memory_order_relaxed); }

 private:
  // Written record and the place of its body.
  struct Written {
    Lsn lsn;
    uint64_t position = 0;
    std::span<const std::byte> body;
  };

  WalStore(std::unique_ptr<Log> log, const WalOptions& options,
           NowSeconds now_seconds);
  absl::Status Recover();
  absl::Status Apply(const RecoveredRecord& recovered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Writes a record; it is completed on return. Takes no lock.
  absl::StatusOr<Written> Write(const WalHeader& header,
                                std::span<const std::byte> body);
  // Writes a durable record: with the one fence that a sync would need, and not
  // through the cache and back.
  absl::StatusOr<Written> WriteDurably(const WalHeader& header,
                                       std::span<const std::byte> body);
  // Writes a record of metadata and applies it.
  absl::Status Change(const WalHeader& header, std::string_view body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Does the same if a file of that name may be replaced. That file takes no
  // more data from now on, which would come after its end.
  absl::Status ChangeReplacing(const WalHeader& header, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteHome(const WalHome& home, const WalVouch& vouch,
                         const WalLeft& left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the present home again.
  absl::Status WriteHome() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return WriteHome(index_.home(), index_.vouch(), index_.left());
  }
  bool HomeFits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // WST4: writes the record of a file that was made without one, unless it was
  // removed since.
  absl::Status MakeRecorded(WalFile& file) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RecordUnrecorded(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<WalFile> FindAny(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RemoveRecorded(WalFile& file)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cleans all records before the oldest file (WST3).
  absl::Status CleanBeforeOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the home again if it is among the records through `last` (WIX3), or
  // to confirm the log (WST5).
  absl::Status KeepHome(Lsn last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits until a record of this size fits. Errors: ResourceExhausted.
  absl::Status WaitForRoom(size_t payload_bytes);
  absl::Status ForceThrough(Lsn lsn);
  // Notes a failure of the log.
  absl::Status Noted(absl::Status status);

  const std::unique_ptr<Log> log_;
  const NowSeconds now_seconds_;
  const uint32_t stall_ms_;
  const bool is_replicated_;
  WalSpace space_;
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> stalls_{0};

  mutable Mutex mutex_;
  WalIndex index_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<WalFile>> unrecorded_
      ABSL_GUARDED_BY(mutex_);  // WST4
  bool has_unrecorded_removal_ ABSL_GUARDED_BY(mutex_) = false;
  Lsn last_change_ ABSL_GUARDED_BY(mutex_);  // of metadata

  // For threads that wait for room.
  std::mutex room_mutex_;
  std::condition_variable room_made_;
};

}  // namespace alpheus::wal

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_STORE_H_
