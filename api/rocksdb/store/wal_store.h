// SPDX-License-Identifier: Apache-2.0
// wal_store: WAL files in one Alpheus log; what the RocksDB plugin stands on.
//
// Idea: all files share one log, so there is one order over all their bytes:
// forcing a byte forces all that was written before it, in whatever file. A
// newer WAL can't be durable where an older one is not.
//
// Invariants:
//   WST1. What Append was given before a Sync of any file that returned OK is
//         there in every later opening, unless its file was removed.
//   WST2. After a crash the files hold a prefix of what was written: no byte
//         without those before it, in any file.
//   WST3. Records are cleaned only when nobody can read them any more, and only
//         after the record that says so, if there is one, is durable.
//   WST4. However full the ring is, and however often a process ended before it
//         removed anything: a file can be made, and any can be removed.
//   WST5. A replicated log is cleaned only by a process that had it after the
//         removal: another one may need what this one thinks it has removed.
// Persistence: wal_record.h says what is written. Removing is a hint: a crash
// may bring a removed file back, whole, as RocksDB allows (it removes again
// what is older than it needs). For WST4, in a ring whose headroom is used up
// (wal_space.h), a file is removed without a record: cleaning tells the next
// opening, as a file whose beginning is behind the head is none (WIX2,
// wal_index.h); and one is made without a record until it has data: a crash
// leaves nothing of it, as of one that was never made.
// Thread safety: all members concurrently; one thread at a time appends to a
// file. Lock order: `mutex_`, then that of a file. Errors: after Aborted,
// Unavailable or DeadlineExceeded of Append, Sync and those that write metadata
// the outcome is unknown and the log has failed: open it again.
// ResourceExhausted: the ring is full, nothing was written. FailedPrecondition:
// the file was removed.
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

namespace alpheus {

class WalStore {
 public:
  using NowSeconds = std::function<uint64_t()>;

  // Recovers the log, or makes it (WalOptions::create_bytes).
  // Errors: as Log::Open and Log::Format; DataLoss, Unimplemented and
  // FailedPrecondition (wal_record.h, wal_index.h).
  static absl::StatusOr<std::unique_ptr<WalStore>> Open(
      const WalOptions& options, NowSeconds now_seconds);

  WalHome home() const;
  // Returns when it is durable.
  absl::Status SetHome(const WalHome& home);
  // The same where the database came by a take-over: the log keeps what that
  // left, until a database is there again.
  absl::Status SetTakenOver(const WalHome& home);
  WalLeft left() const;
  WalVouch vouch() const;
  // The same for the vouch. Requires: the id is not empty.
  absl::Status SetVouch(const WalVouch& vouch);
  // Whether a home fits into the room that data has.
  bool HasRoomForHome() const;

  // Null if there is none.
  std::shared_ptr<WalFile> Find(const std::string& name) const;
  std::vector<std::string> List(const std::string& directory) const;

  // An empty file; replaces one of that name. Not durable before the next sync;
  // nor behind that if it is not recorded (WST4).
  absl::StatusOr<std::shared_ptr<WalFile>> Create(const std::string& name);
  // NotFound; ResourceExhausted; replaces a file of the new name. Not durable
  // before the next sync.
  absl::Status Rename(const std::string& from, const std::string& to);
  // NotFound. Durable when it returns, but for WST4. Gives back the room of all
  // that nobody needs any more.
  absl::Status Remove(const std::string& name);
  // InvalidArgument (longer than it is). Not durable before the next sync.
  absl::Status Truncate(WalFile& file, uint64_t size);

  // Completes one record, several if it is large. If what the file had was
  // synced they are durable already when it returns, or with backups on the way
  // to be. In a full ring it waits for room, WalOptions::stall_ms at most.
  absl::Status Append(WalFile& file, std::span<const std::byte> bytes);
  // Makes durable what the file has, and all that was written before that.
  absl::Status Sync(WalFile& file);
  // The same for all that was written so far.
  absl::Status SyncAll();
  // OK if this process had the log at some moment of the call: W replicas took
  // a record from it. A full ring has no room for that: then OK if it is not
  // known to have lost the log. Errors: as Sync.
  absl::Status ConfirmPrimary();
  // No other process can open the log while this one has it, as long as none
  // of this machine can.
  bool is_replicated() const { return is_replicated_; }
  // Copies what is at `offset`; less than out.size() bytes only at the end of
  // the file. Errors: Aborted (another primary has the log's replica).
  absl::StatusOr<size_t> Read(WalFile& file, uint64_t offset,
                              std::span<std::byte> out);

  // A write or a sync of unknown outcome: only opening anew helps.
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  const WalSpace& space() const { return space_; }
  // To look at: report, status, durable LSN.
  const Log& log() const { return *log_; }
  uint64_t stalls() const { return stalls_.load(std::memory_order_relaxed); }

 private:
  // A record that was written: where its body is.
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

  // Takes no lock. On return the record is completed.
  absl::StatusOr<Written> Write(const WalHeader& header,
                                std::span<const std::byte> body);
  // The same, and durable: with the one fence that a sync would need, without
  // the way through the cache and back.
  absl::StatusOr<Written> WriteDurably(const WalHeader& header,
                                       std::span<const std::byte> body);
  // Writes a record of metadata and applies it.
  absl::Status Change(const WalHeader& header, std::string_view body)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same where a file of that name is to be replaced, if there is one: from
  // now on it takes no more data, which would come behind its end.
  absl::Status ChangeReplacing(const WalHeader& header, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteHome(const WalHome& home, const WalVouch& vouch,
                         const WalLeft& left)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same again.
  absl::Status WriteHome() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return WriteHome(index_.home(), index_.vouch(), index_.left());
  }
  bool HomeFits() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // WST4: the log gets the record of a file that was made without one, if
  // nobody removed it since.
  absl::Status MakeRecorded(WalFile& file) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RecordUnrecorded(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<WalFile> FindAny(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RemoveRecorded(WalFile& file)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Cleans what is before the oldest file (WST3).
  absl::Status CleanBeforeOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the home anew if it is among the records through `last` (WIX3), or
  // to ask the log (WST5).
  absl::Status KeepHome(Lsn last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns when a record of this size fits, or with ResourceExhausted.
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

  // Only for those who wait for room.
  std::mutex room_mutex_;
  std::condition_variable room_made_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ROCKSDB_STORE_WAL_STORE_H_
