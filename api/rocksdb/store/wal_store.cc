// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/log_reader.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

// Size of the bytes that RocksDB puts into a new WAL: with WAL compression, its
// type, with a header.
constexpr size_t kBeginningBytesMax = 32;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

absl::Status NoSuchFile(const std::string& name) {
  return absl::NotFoundError(absl::StrCat(name, ": no such file in the log"));
}

absl::Status NoLogAt(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(
      path,
      ": there is no log. Is its file system mounted, and the path right? "
      "A new one is made by create= in the URI: alpheus://",
      path, "?create=1GiB"));
}

absl::Status CannotMake(const std::string& path, const absl::Status& status) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  std::error_code error;
  if (!absl::IsNotFound(status) || std::filesystem::exists(folder, error)) {
    return status;
  }
  return absl::NotFoundError(absl::StrCat(
      path, ": can't be made, as the folder ", folder,
      " is not there. Make it, or mount its file system; create= makes the log "
      "alone"));
}

absl::StatusOr<std::unique_ptr<Log>> OpenLog(const WalOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.log.path, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        options.log.path,
        ": is a folder, and the log is a file. Name a file in it, or end the "
        "path in / for a folder with a log for each database"));
  }
  absl::StatusOr<std::unique_ptr<Log>> log = Log::Open(options.log);
  const bool is_local = options.log.replication.cluster_file.empty();
  if (!absl::IsNotFound(log.status()) || !is_local) return log;
  if (options.create_bytes == 0) return NoLogAt(options.log.path);
  const absl::StatusOr<Uuid> made = Log::Format(
      {.path = options.log.path, .region_bytes = options.create_bytes});
  // Another process may have made it meanwhile.
  if (!made.ok() && !absl::IsAlreadyExists(made.status())) {
    return CannotMake(options.log.path, made.status());
  }
  return Log::Open(options.log);
}

// Adds a remedy to DataLoss: the log's own remedy names the region, and RocksDB
// can use what is left of the WAL files in it.
absl::Status WithExport(const WalOptions& options, absl::Status status) {
  if (!absl::IsDataLoss(status) || options.log.path.empty() ||
      !LogReader::OpenForSalvage(options.log.path).ok()) {
    return status;
  }
  return absl::DataLossError(absl::StrCat(
      status.message(),
      ", or write the WAL files that are left as plain ones "
      "with `alpheus export-wal ",
      options.log.path, " DIR` (docs/use/rocksdb.md, \"Damage\")"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<WalStore>> WalStore::Open(
    const WalOptions& options, NowSeconds now_seconds) {
  absl::StatusOr<std::unique_ptr<Log>> log = OpenLog(options);
  if (!log.ok()) return WithExport(options, log.status());
  std::unique_ptr<WalStore> store(
      new WalStore(*std::move(log), options, std::move(now_seconds)));
  const absl::Status recovered = store->Recover();
  if (!recovered.ok()) return WithExport(options, recovered);
  return store;
}

WalStore::WalStore(std::unique_ptr<Log> log, const WalOptions& options,
                   NowSeconds now_seconds)
    : log_(std::move(log)),
      now_seconds_(std::move(now_seconds)),
      stall_ms_(options.stall_ms),
      is_replicated_(!options.log.replication.cluster_file.empty()),
      space_(log_->payload_bytes_max()) {}

absl::Status WalStore::Recover() {
  const MutexLock lock(mutex_);
  RecoveredRange records = log_->Recovered();
  absl::Status applied;
  for (const RecoveredRecord& recovered : records) {
    applied = Apply(recovered);
    if (!applied.ok()) break;
  }
  ALPHEUS_RETURN_IF_ERROR(records.status());
  ALPHEUS_RETURN_IF_ERROR(applied);
  last_change_ = log_->durable_lsn();
  return CleanBeforeOldest();
}

absl::Status WalStore::Apply(const RecoveredRecord& recovered) {
  ALPHEUS_ASSIGN_OR_RETURN(const WalRecord record,
                           DecodeWalRecord(recovered.payload));
  return index_.Apply(recovered.lsn, space_.Add(recovered.payload.size()),
                      record);
}

WalHome WalStore::home() const {
  const MutexLock lock(mutex_);
  return index_.home();
}

absl::Status WalStore::SetHome(const WalHome& home) {
  const MutexLock lock(mutex_);
  if (index_.home() == home) return absl::OkStatus();
  WalLeft left = index_.left();
  if (left.database == home.database) left = {};
  ALPHEUS_RETURN_IF_ERROR(WriteHome(home, index_.vouch(), left));
  return ForceThrough(last_change_);
}

absl::Status WalStore::SetTakenOver(const WalHome& home) {
  const MutexLock lock(mutex_);
  ALPHEUS_RETURN_IF_ERROR(WriteHome(
      home, index_.vouch(), WalLeft{index_.home().database, index_.vouch()}));
  return ForceThrough(last_change_);
}

WalLeft WalStore::left() const {
  const MutexLock lock(mutex_);
  return index_.left();
}

WalVouch WalStore::vouch() const {
  const MutexLock lock(mutex_);
  return index_.vouch();
}

absl::Status WalStore::SetVouch(const WalVouch& vouch) {
  const MutexLock lock(mutex_);
  ALPHEUS_RETURN_IF_ERROR(WriteHome(index_.home(), vouch, index_.left()));
  return ForceThrough(last_change_);
}

bool WalStore::HomeFits() const {
  return space_.Fits(
      kWalHeaderBytes +
      EncodeWalHome(index_.home(), index_.vouch(), index_.left()).size());
}

bool WalStore::HasRoomForHome() const {
  const MutexLock lock(mutex_);
  return HomeFits();
}

std::shared_ptr<WalFile> WalStore::Find(const std::string& name) const {
  const MutexLock lock(mutex_);
  return FindAny(name);
}

std::shared_ptr<WalFile> WalStore::FindAny(const std::string& name) const {
  const auto unrecorded = unrecorded_.find(name);
  return unrecorded != unrecorded_.end() ? unrecorded->second
                                         : index_.Find(name);
}

std::vector<std::string> WalStore::List(const std::string& directory) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> names = index_.List(directory);
  for (const auto& [name, file] : unrecorded_) {
    if (DirectoryOf(name) == directory) names.push_back(BaseNameOf(name));
  }
  return names;
}

absl::StatusOr<std::shared_ptr<WalFile>> WalStore::Create(
    const std::string& name) {
  const MutexLock lock(mutex_);
  if (FindAny(name) == nullptr &&
      !space_.FitsMaking(kWalHeaderBytes + name.size())) {
    return unrecorded_[name] = std::make_shared<WalFile>(now_seconds_());
  }
  ALPHEUS_RETURN_IF_ERROR(ChangeReplacing({.kind = WalRecordKind::kCreate,
                                           .file = index_.next_id(),
                                           .seconds = now_seconds_()},
                                          name));
  return index_.Find(name);
}

absl::Status WalStore::Rename(const std::string& from, const std::string& to) {
  const MutexLock lock(mutex_);
  const std::shared_ptr<WalFile> file = FindAny(from);
  if (file == nullptr) return NoSuchFile(from);
  if (from == to) return absl::OkStatus();
  if (!space_.FitsChanging(kWalHeaderBytes + to.size())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(from, ": no room in the log for another name"));
  }
  ALPHEUS_RETURN_IF_ERROR(RecordUnrecorded(from));
  return ChangeReplacing({.kind = WalRecordKind::kRename,
                          .file = file->id(),
                          .seconds = now_seconds_()},
                         to);
}

absl::Status WalStore::Remove(const std::string& name) {
  const MutexLock lock(mutex_);
  {
    const std::shared_ptr<WalFile> file = FindAny(name);
    if (file == nullptr) return NoSuchFile(name);
    // Data after the record of the removal would belong to no file.
    file->SetRemoved(true);
    if (unrecorded_.erase(name) != 0) return absl::OkStatus();
    const absl::Status removed = RemoveRecorded(*file);
    if (!removed.ok()) {
      file->SetRemoved(false);
      return removed;
    }
  }  // drops the last reference, if nobody reads it
  return CleanBeforeOldest();
}

absl::Status WalStore::RemoveRecorded(WalFile& file) {
  if (space_.FitsChanging(kWalHeaderBytes)) {
    return Change({.kind = WalRecordKind::kRemove, .file = file.id()}, "");
  }
  // WST4. If no file is left, all records through its last one can be cleaned.
  last_change_ = std::max(last_change_, file.last_lsn());
  has_unrecorded_removal_ = true;
  index_.Forget(file.id());
  return absl::OkStatus();
}

absl::Status WalStore::MakeRecorded(WalFile& file) {
  if (file.is_recorded()) return absl::OkStatus();
  const MutexLock lock(mutex_);
  const auto unrecorded = std::ranges::find(
      unrecorded_, &file, [](const auto& named) { return named.second.get(); });
  if (unrecorded == unrecorded_.end()) {
    return absl::FailedPreconditionError("the file was removed");
  }
  return RecordUnrecorded(unrecorded->first);
}

absl::Status WalStore::RecordUnrecorded(const std::string& name) {
  const auto unrecorded = unrecorded_.find(name);
  if (unrecorded == unrecorded_.end()) return absl::OkStatus();
  const WalHeader header = {.kind = WalRecordKind::kCreate,
                            .file = index_.next_id(),
                            .seconds = unrecorded->second->seconds()};
  ALPHEUS_ASSIGN_OR_RETURN(const Written written, Write(header, BytesOf(name)));
  last_change_ = written.lsn;
  ALPHEUS_RETURN_IF_ERROR(index_.ApplyCreate(written.lsn, written.position,
                                             {header, written.body},
                                             unrecorded->second));
  unrecorded_.erase(unrecorded);
  return absl::OkStatus();
}

absl::Status WalStore::Truncate(WalFile& file, uint64_t size) {
  const MutexLock lock(file.mutex);
  if (file.is_removed()) {
    return absl::FailedPreconditionError("the file was removed");
  }
  if (size > file.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "truncate to ", size, " bytes: the file has ", file.size()));
  }
  if (size == file.size()) return absl::OkStatus();
  if (!space_.FitsChanging(kWalHeaderBytes)) {
    return absl::ResourceExhaustedError("no room in the log to truncate");
  }
  const uint64_t seconds = now_seconds_();
  ALPHEUS_ASSIGN_OR_RETURN(const Written written,
                           Write({.kind = WalRecordKind::kTruncate,
                                  .file = file.id(),
                                  .offset = size,
                                  .seconds = seconds},
                                 {}));
  file.Truncate(written.lsn, size, seconds);
  return absl::OkStatus();
}

absl::Status WalStore::Append(WalFile& file, std::span<const std::byte> bytes) {
  const bool is_sync_likely = file.was_forced();
  while (!bytes.empty()) {
    const auto piece =
        bytes.first(std::min(bytes.size(), space_.data_bytes_max()));
    // Before the lock: a thread that removes files must not wait for threads
    // that wait for room. A file that RocksDB makes because the ring is full
    // has a beginning too.
    const size_t payload_bytes = kWalHeaderBytes + piece.size();
    const bool begins = file.size() == 0 && piece.size() <= kBeginningBytesMax;
    if (!begins || !space_.FitsMaking(payload_bytes)) {
      ALPHEUS_RETURN_IF_ERROR(WaitForRoom(payload_bytes));
    }
    ALPHEUS_RETURN_IF_ERROR(MakeRecorded(file));
    const MutexLock lock(file.mutex);
    if (file.is_removed()) {
      return absl::FailedPreconditionError("the file was removed");
    }
    const WalHeader header = {
        .kind = WalRecordKind::kData, .file = file.id(), .offset = file.size()};
    const bool is_durable = !is_replicated_ && file.was_forced();
    ALPHEUS_ASSIGN_OR_RETURN(
        const Written written,
        is_durable ? WriteDurably(header, piece) : Write(header, piece));
    file.Extend(written.lsn, written.body, is_durable);
    bytes = bytes.subspan(piece.size());
  }
  // In a replicated log a force is a round trip: begin it while RocksDB is on
  // its way to the sync.
  if (!is_replicated_ || !is_sync_likely) return absl::OkStatus();
  return Noted(log_->BeginForce(file.last_lsn()));
}

absl::Status WalStore::Sync(WalFile& file) {
  const Lsn lsn = file.last_lsn();
  // Data that was durable when it was appended needs no force, and a force
  // takes as long as everything else here.
  if (file.durable_lsn() < lsn) ALPHEUS_RETURN_IF_ERROR(ForceThrough(lsn));
  file.NoteForced(lsn);
  return absl::OkStatus();
}

absl::Status WalStore::SyncAll() { return ForceThrough(log_->next_lsn() - 1); }

absl::Status WalStore::ConfirmPrimary() {
  if (!is_replicated_) return absl::OkStatus();
  Lsn lsn{0};
  {
    // The home may be written at any time: it repeats what the log says
    // already.
    const MutexLock lock(mutex_);
    if (HomeFits()) {
      ALPHEUS_RETURN_IF_ERROR(WriteHome());
      lsn = last_change_;
    }
  }
  return lsn == Lsn(0) ? SyncAll() : ForceThrough(lsn);
}

absl::StatusOr<size_t> WalStore::Read(WalFile& file, uint64_t offset,
                                      std::span<std::byte> out) {
  const size_t copied = file.Read(offset, out);
  // Checked after the copying: the bytes may be another primary's.
  ALPHEUS_RETURN_IF_ERROR(Noted(log_->CheckPayloads()));
  return copied;
}

absl::StatusOr<WalStore::Written> WalStore::Write(
    const WalHeader& header, std::span<const std::byte> body) {
  absl::StatusOr<Reservation> record =
      log_->Reserve(kWalHeaderBytes + body.size());
  if (!record.ok()) return Noted(record.status());
  const std::span<std::byte> payload = record->payload();
  EncodeWalHeader(header, payload.first<kWalHeaderBytes>());
  if (!body.empty()) {
    std::memcpy(payload.data() + kWalHeaderBytes, body.data(), body.size());
  }
  const absl::StatusOr<Lsn> lsn = log_->Complete(*std::move(record));
  if (!lsn.ok()) return Noted(lsn.status());
  return Written{*lsn, space_.Add(payload.size()),
                 payload.subspan(kWalHeaderBytes)};
}

absl::StatusOr<WalStore::Written> WalStore::WriteDurably(
    const WalHeader& header, std::span<const std::byte> body) {
  std::array<std::byte, kWalHeaderBytes> encoded;
  EncodeWalHeader(header, encoded);
  const std::array<std::span<const std::byte>, 2> parts = {encoded, body};
  const absl::StatusOr<AppendedRecord> record = log_->AppendInRing(parts);
  if (!record.ok()) return Noted(record.status());
  return Written{record->lsn, space_.Add(record->payload.size()),
                 record->payload.subspan(kWalHeaderBytes)};
}

absl::Status WalStore::Change(const WalHeader& header, std::string_view body) {
  ALPHEUS_ASSIGN_OR_RETURN(const Written written, Write(header, BytesOf(body)));
  last_change_ = written.lsn;
  return index_.Apply(written.lsn, written.position, {header, written.body});
}

absl::Status WalStore::ChangeReplacing(const WalHeader& header,
                                       const std::string& name) {
  const std::shared_ptr<WalFile> replaced = FindAny(name);
  if (replaced != nullptr) replaced->SetRemoved(true);
  const absl::Status changed = Change(header, name);
  if (!changed.ok() && replaced != nullptr) replaced->SetRemoved(false);
  if (changed.ok()) unrecorded_.erase(name);
  return changed;
}

absl::Status WalStore::WriteHome(const WalHome& home, const WalVouch& vouch,
                                 const WalLeft& left) {
  if (!left.database.empty()) {
    return Change({.kind = WalRecordKind::kHome,
                   .version = kWalTakenOverVersion,
                   .file = index_.next_id()},
                  EncodeWalHome(home, vouch, left));
  }
  if (vouch.id.empty()) {
    return Change({.kind = WalRecordKind::kHome, .file = index_.next_id()},
                  EncodeWalHome(home));
  }
  return Change({.kind = WalRecordKind::kHome,
                 .version = kWalVouchingVersion,
                 .file = index_.next_id()},
                EncodeWalHome(home, vouch));
}

absl::Status WalStore::CleanBeforeOldest() {
  const std::shared_ptr<WalFile> oldest = index_.Oldest();
  const Lsn last = oldest == nullptr ? last_change_ : oldest->first_lsn() - 1;
  const uint64_t position =
      oldest == nullptr ? space_.position() : oldest->first_position();
  if (last < log_->head_lsn()) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(KeepHome(last));
  // WST3: the record of a removal, or of a replacement, is among these.
  ALPHEUS_RETURN_IF_ERROR(ForceThrough(last_change_));
  ALPHEUS_RETURN_IF_ERROR(Noted(log_->CleanupThrough(last)));
  has_unrecorded_removal_ = false;
  {
    const std::lock_guard<std::mutex> lock(room_mutex_);
    space_.FreeBefore(position);
  }
  room_made_.notify_all();
  return absl::OkStatus();
}

absl::Status WalStore::KeepHome(Lsn last) {
  const Lsn home = index_.home_lsn();
  const bool is_passed = home != Lsn(0) && home <= last;
  // WST5: no record of a removal will confirm the log.
  const bool is_asked = is_replicated_ && has_unrecorded_removal_;
  if (!is_passed && !is_asked) return absl::OkStatus();
  const absl::Status written = WriteHome();
  if (!absl::IsResourceExhausted(written) || is_asked ||
      home <= log_->head_lsn()) {
    return written;
  }
  // Then cleaning the records before the home makes room.
  ALPHEUS_RETURN_IF_ERROR(ForceThrough(last_change_));
  ALPHEUS_RETURN_IF_ERROR(Noted(log_->CleanupThrough(home - 1)));
  return WriteHome();
}

absl::Status WalStore::WaitForRoom(size_t payload_bytes) {
  if (space_.Fits(payload_bytes)) return absl::OkStatus();
  {
    // A reader may have released the last file that it kept.
    const MutexLock lock(mutex_);
    ALPHEUS_RETURN_IF_ERROR(CleanBeforeOldest());
  }
  std::unique_lock<std::mutex> lock(room_mutex_);
  if (!space_.Fits(payload_bytes)) {
    stalls_.fetch_add(1, std::memory_order_relaxed);
  }
  if (room_made_.wait_for(lock, std::chrono::milliseconds(stall_ms_),
                          [&] { return space_.Fits(payload_bytes); })) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "the log is full: ", space_.used_bytes(), " of ", space_.limit_bytes(),
      " bytes hold WAL files that nobody removed within ", stall_ms_,
      " ms. Flush memtables, and close readers of old WAL files; for an "
      "archive see docs/use/rocksdb.md. For the next time set "
      "db_write_buffer_size of RocksDB's options to half of that (with several "
      "column families max_total_wal_size does, too), or use a larger log"));
}

absl::Status WalStore::ForceThrough(Lsn lsn) {
  if (lsn == Lsn(0)) return absl::OkStatus();  // nothing was ever written
  return Noted(log_->Force(lsn));
}

absl::Status WalStore::Noted(absl::Status status) {
  if (absl::IsAborted(status) || absl::IsCancelled(status) ||
      absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) {
    failed_.store(true, std::memory_order_release);
  }
  return status;
}

}  // namespace alpheus::wal
