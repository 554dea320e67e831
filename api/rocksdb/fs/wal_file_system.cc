// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/wal_file_system.h"

#include <filesystem>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "api/rocksdb/store/manifest_file.h"
#include "api/rocksdb/store/wal_io_status.h"
#include "api/rocksdb/store/wal_paths.h"
#include "log/base/status_macros.h"
#include "rocksdb/system_clock.h"

namespace alpheus::wal {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

uint64_t NowSeconds() {
  int64_t seconds = 0;
  // A missing time makes the file look old, which is no reason to lose a write.
  if (!rocksdb::SystemClock::Default()->GetCurrentTime(&seconds).ok()) return 0;
  return static_cast<uint64_t>(seconds);
}

IOStatus NotInALog(absl::string_view what, const std::string& path) {
  return IOStatus::NotSupported(
      absl::StrCat("alpheus: ", what, " a WAL file in a log"), path);
}

}  // namespace

WalFileSystem::WalFileSystem(WalOptions options,
                             const std::shared_ptr<rocksdb::FileSystem>& base)
    : WalReadingFileSystem(base),
      options_(std::move(options)),
      vouch_(options_, *target_, lock_),
      home_(options_, *target_, lock_, vouch_) {}

rocksdb::Status WalFileSystem::PrepareOptions(
    const rocksdb::ConfigOptions& options) {
  IOStatus opened = ToIoStatus(Store().status());
  if (!opened.ok()) return opened;
  return FileSystemWrapper::PrepareOptions(options);
}

absl::StatusOr<std::shared_ptr<WalStore>> WalFileSystem::Store() {
  const MutexLock lock(mutex_);
  // Not while a database still has it open: that one must stop (P-H20).
  if (store_ != nullptr && store_->has_failed() && lock_.is_free())
    store_.reset();
  if (store_ == nullptr) {
    absl::StatusOr<std::unique_ptr<WalStore>> opened =
        WalStore::Open(options_, NowSeconds);
    // Not NotFound: RocksDB ignores some missing files.
    if (absl::IsNotFound(opened.status())) {
      return absl::FailedPreconditionError(opened.status().message());
    }
    ALPHEUS_RETURN_IF_ERROR(opened.status());
    ALPHEUS_RETURN_IF_ERROR(home_.TakeOver(**opened));
    store_ = *std::move(opened);
  }
  return store_;
}

absl::StatusOr<uint64_t> WalFileSystem::MemtableBytes() {
  if (options_.memtable_bytes) return *options_.memtable_bytes;
  ALPHEUS_ASSIGN_OR_RETURN(const std::shared_ptr<WalStore> store, Store());
  return store->space().limit_bytes() / 2;
}

IOStatus WalFileSystem::BeforeChange(WalStore& store) {
  return ToIoStatus(store.ConfirmPrimary());
}

absl::StatusOr<WalFileSystem::Place> WalFileSystem::Find(
    const std::string& path) {
  Place place;
  const std::filesystem::path split(path);
  place.base_name = split.filename().string();
  ALPHEUS_ASSIGN_OR_RETURN(place.store, Store());
  if (!MayNameAWal(path)) return place;
  place.directory = Canonical(split.parent_path());
  const std::string home = place.store->home().wal_directory;
  if (home.empty()) return place;
  place.name = Below(home, absl::StrCat(place.directory, "/", place.base_name));
  if (place.name) place.file = place.store->Find(*place.name);
  return place;
}

absl::StatusOr<WalFileSystem::FoundWal> WalFileSystem::FindWal(
    const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(Place place, Find(path));
  if (place.file == nullptr) return FoundWal();
  ReadWal read = ReadOf({std::move(place.store), place.file});
  return FoundWal{std::move(place.file), std::move(read)};
}

IOStatus WalFileSystem::StatusOf(const absl::Status& status) const {
  return ToIoStatus(status);
}

absl::StatusOr<bool> WalFileSystem::IsKept(Place& place) {
  if (place.file != nullptr) return true;
  if (!IsWalName(place.base_name)) return false;
  if (place.name == place.base_name) return true;
  const WalHome home = place.store->home();
  if (!home.wal_directory.empty() &&
      !home_.MayChangeItsDirectory(*place.store)) {
    return false;
  }
  if (!options_.wal_directory.empty() &&
      place.directory != Canonical(options_.wal_directory)) {
    return false;
  }
  std::string database = lock_.database();
  // Restored elsewhere, while the log waits for a database that is not open.
  if (database.empty() && !home.database.empty()) return false;
  ALPHEUS_RETURN_IF_ERROR(
      place.store->SetHome({place.directory, std::move(database)}));
  place.name = place.base_name;
  return true;
}

absl::StatusOr<OpenWal> WalFileSystem::MakeWal(const Place& place,
                                               const std::string& path) {
  {
    const MutexLock lock(vouch_.mutex());
    ALPHEUS_RETURN_IF_ERROR(vouch_.VouchIfUnmixed(*place.store));
  }
  ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<WalFile> file,
                           place.store->Create(*place.name));
  if (file->is_recorded()) ALPHEUS_RETURN_IF_ERROR(Mark(*place.store, path));
  return OpenWal{place.store, std::move(file)};
}

std::unique_ptr<rocksdb::FSWritableFile> WalFileSystem::NewWriter(
    OpenWal wal, const std::string& path, const FileOptions& options) {
  std::function<absl::Status()> mark;
  if (!wal.file->is_recorded()) {
    mark = [this, store = wal.store, path] { return Mark(*store, path); };
  }
  return NewWalWriter(std::move(wal), options, std::move(mark));
}

absl::Status WalFileSystem::Mark(WalStore& store, const std::string& path) {
  // WFS1: a marker without its file would keep the database from being opened.
  ALPHEUS_RETURN_IF_ERROR(store.SyncAll());
  const IOOptions options;
  if (target_->FileExists(path, options, nullptr).ok()) {
    const IOStatus deleted = target_->DeleteFile(path, options, nullptr);
    if (!deleted.ok()) {
      return absl::InternalError(
          absl::StrCat("the file in its place stays: ", deleted.ToString()));
    }
  }
  return PutMarker(path);
}

IOStatus WalFileSystem::NewBaseFile(
    const Place& place, const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  if (!place.store->is_replicated()) {
    return target_->NewWritableFile(path, options, result, dbg);
  }
  IOStatus made = BeforeChange(*place.store);
  // WFS2: never the file that a predecessor still has open.
  if (made.ok() && target_->FileExists(path, options.io_options, dbg).ok()) {
    made = target_->DeleteFile(path, options.io_options, dbg);
  }
  if (made.ok()) made = target_->NewWritableFile(path, options, result, dbg);
  if (made.ok() && IsManifestName(place.base_name)) {
    *result = NewManifestFile(place.store, std::move(*result));
  }
  return made;
}

absl::Status WalFileSystem::CheckReadable(const Place& place,
                                          const std::string& path) {
  const bool is_missing =
      place.file == nullptr && IsWalName(place.base_name) && IsMarker(path);
  if (place.file == nullptr && !is_missing) return absl::OkStatus();
  ALPHEUS_RETURN_IF_ERROR(vouch_.CheckVouched(*place.store));
  if (!is_missing) return absl::OkStatus();
  const WalHome home = place.store->home();
  if (!home.wal_directory.empty() && place.name != place.base_name) {
    return absl::FailedPreconditionError(absl::StrCat(
        path, ": its marker is here, and this log is that of the database ",
        WalHomeKeeper::DescribeHome(*place.store),
        ". Nothing was changed. If this directory was moved or cloned "
        "with its log, open it once for writing with adopt=true; else name "
        "the right log"));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      ": its marker is here, and the log has no such WAL file: it is "
      "another log, or an older copy. Nothing was changed. Name the right log, "
      "or put it back. If it is lost for good, and with it the last writes, "
      "open the database once for writing with keep_wal=true, which continues "
      "with the WAL files in this log"));
}

IOStatus WalFileSystem::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  absl::Status readable = CheckReadable(*place, path);
  if (readable.ok() && place->base_name == "CURRENT") {
    readable = home_.CheckMayRead(
        *place->store, Canonical(std::filesystem::path(path).parent_path()));
  }
  if (!readable.ok()) return ToIoStatus(readable);
  return WalReadingFileSystem::NewSequentialFile(path, options, result, dbg);
}

IOStatus WalFileSystem::NewWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  const absl::StatusOr<bool> kept = IsKept(*place);
  if (!kept.ok()) return ToIoStatus(kept.status());
  if (!*kept) {
    const absl::Status plain = home_.CheckMayBePlain(
        *place->store, place->directory, place->base_name);
    if (!plain.ok()) return ToIoStatus(plain);
    return NewBaseFile(*place, path, options, result, dbg);
  }
  absl::StatusOr<OpenWal> wal = MakeWal(*place, path);
  if (!wal.ok()) return ToIoStatus(wal.status());
  lock_.NoteWalMade();
  *result = NewWriter(*std::move(wal), path, options);
  return IOStatus::OK();
}

IOStatus WalFileSystem::ReopenWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file != nullptr) {
    *result = NewWriter({place->store, place->file}, path, options);
    return IOStatus::OK();
  }
  IOStatus confirmed = BeforeChange(*place->store);
  if (!confirmed.ok()) return confirmed;
  // A file that another WAL left there is continued there.
  if (target_->FileExists(path, options.io_options, dbg).ok()) {
    return target_->ReopenWritableFile(path, options, result, dbg);
  }
  return NewWritableFile(path, options, result, dbg);
}

IOStatus WalFileSystem::ReuseWritableFile(
    const std::string& path, const std::string& old_path,
    const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  const absl::StatusOr<bool> kept = IsKept(*place);
  if (!kept.ok()) return ToIoStatus(kept.status());
  absl::StatusOr<Place> old = Find(old_path);
  if (!old.ok()) return ToIoStatus(old.status());
  if (!*kept && old->file == nullptr) {
    IOStatus confirmed = ToIoStatus(home_.CheckMayBePlain(
        *place->store, place->directory, place->base_name));
    if (confirmed.ok()) confirmed = BeforeChange(*place->store);
    if (!confirmed.ok()) return confirmed;
    return target_->ReuseWritableFile(path, old_path, options, result, dbg);
  }
  old->file.reset();  // as in DeleteFile
  // Space is not reused in place: the old file is removed.
  IOStatus made = NewWritableFile(path, options, result, dbg);
  if (!made.ok()) return made;
  return DeleteFile(old_path, options.io_options, dbg);
}

IOStatus WalFileSystem::NewRandomRWFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomRWFile>* result, IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file != nullptr) return NotInALog("overwriting", path);
  IOStatus confirmed = BeforeChange(*place->store);
  if (!confirmed.ok()) return confirmed;
  return target_->NewRandomRWFile(path, options, result, dbg);
}

IOStatus WalFileSystem::NewDirectory(
    const std::string& path, const IOOptions& options,
    std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) {
  absl::StatusOr<std::shared_ptr<WalStore>> store = Store();
  if (!store.ok()) return ToIoStatus(store.status());
  std::unique_ptr<rocksdb::FSDirectory> base;
  IOStatus opened = target_->NewDirectory(path, options, &base, dbg);
  // Any directory, because the WAL's directory is not known before the first
  // file.
  if (opened.ok()) {
    *result = NewWalDirectory(*std::move(store), std::move(base));
  }
  return opened;
}

IOStatus WalFileSystem::GetChildren(const std::string& directory,
                                    const IOOptions& options,
                                    std::vector<std::string>* result,
                                    IODebugContext* dbg) {
  const absl::StatusOr<std::shared_ptr<WalStore>> store = Store();
  if (!store.ok()) return ToIoStatus(store.status());
  IOStatus listed = target_->GetChildren(directory, options, result, dbg);
  const WalHome home = (*store)->home();
  if (!listed.ok()) return listed;
  const std::string canonical = Canonical(directory);
  if (canonical == home.database) {
    // Hides the plugin's own file from callers that delete all listed names, as
    // a restore does.
    std::erase_if(*result, [](const std::string& name) {
      return absl::StartsWith(name, kVouchFileName);
    });
  }
  if (home.wal_directory.empty()) return listed;
  const std::optional<std::string> below = Below(home.wal_directory, canonical);
  if (!below) return listed;
  AddNames((*store)->List(*below), result);
  return listed;
}

IOStatus WalFileSystem::DeleteFile(const std::string& path,
                                   const IOOptions& options,
                                   IODebugContext* dbg) {
  absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  // Also before a marker is removed.
  IOStatus confirmed = BeforeChange(*place->store);
  if (!confirmed.ok()) return confirmed;
  if (place->file == nullptr) return target_->DeleteFile(path, options, dbg);
  // Otherwise this reference would keep its records.
  place->file.reset();
  absl::Status removed = vouch_.RiseAround(*place->store, *place->name);
  if (removed.ok()) removed = DropMarker(path);
  if (removed.ok()) removed = place->store->Remove(*place->name);
  if (removed.ok()) removed = vouch_.RiseAround(*place->store, *place->name);
  return ToIoStatus(removed);
}

IOStatus WalFileSystem::Truncate(const std::string& path, size_t size,
                                 const IOOptions& options,
                                 IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    IOStatus confirmed = BeforeChange(*place->store);
    if (!confirmed.ok()) return confirmed;
    return target_->Truncate(path, size, options, dbg);
  }
  return ToIoStatus(place->store->Truncate(*place->file, size));
}

IOStatus WalFileSystem::RenameBaseFile(WalStore& store, const std::string& from,
                                       const std::string& to,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  const std::filesystem::path split(to);
  const std::string directory = Canonical(split.parent_path());
  if (split.filename() == "IDENTITY" && directory == store.home().database) {
    return vouch_.RenameToIdentity(from, to, options, dbg);
  }
  if (split.filename() != "CURRENT") {
    return target_->RenameFile(from, to, options, dbg);
  }
  const MutexLock lock(vouch_.mutex());
  absl::Status claimed = home_.ClaimForNewDatabase(store, directory);
  const bool is_home = directory == store.home().database;
  if (claimed.ok() && is_home) claimed = vouch_.NameManifest(store, from);
  if (!claimed.ok()) return ToIoStatus(claimed);
  IOStatus renamed = target_->RenameFile(from, to, options, dbg);
  if (!renamed.ok()) return renamed;
  absl::Status confirmed =
      is_home ? vouch_.ForgetOldManifest(store) : absl::OkStatus();
  // WFS3: confirmed after the change; before it, the log could be lost in
  // between.
  if (confirmed.ok()) confirmed = store.ConfirmPrimary();
  return ToIoStatus(confirmed);
}

IOStatus WalFileSystem::RenameFile(const std::string& from,
                                   const std::string& to,
                                   const IOOptions& options,
                                   IODebugContext* dbg) {
  const absl::StatusOr<Place> source = Find(from);
  if (!source.ok()) return ToIoStatus(source.status());
  const absl::StatusOr<Place> target = Find(to);
  if (!target.ok()) return ToIoStatus(target.status());
  const IOStatus confirmed = BeforeChange(*source->store);
  if (!confirmed.ok()) return confirmed;
  if (source->file == nullptr) {
    IOStatus renamed = RenameBaseFile(*source->store, from, to, options, dbg);
    if (!renamed.ok() || target->file == nullptr) return renamed;
    return ToIoStatus(target->store->Remove(*target->name));
  }
  if (!target->name) {
    return NotInALog("renaming out of the WAL directory", from);
  }
  absl::Status renamed = vouch_.RiseAround(*source->store, *source->name);
  if (renamed.ok()) renamed = DropMarker(from);
  if (renamed.ok()) {
    renamed = source->store->Rename(*source->name, *target->name);
  }
  if (renamed.ok()) renamed = Mark(*source->store, to);
  return ToIoStatus(renamed);
}

IOStatus WalFileSystem::LinkFile(const std::string& from, const std::string& to,
                                 const IOOptions& options,
                                 IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(from);
  if (!place.ok()) return ToIoStatus(place.status());
  // RocksDB copies then, as a checkpoint needs.
  if (place->file != nullptr) return NotInALog("linking", from);
  IOStatus confirmed = BeforeChange(*place->store);
  if (!confirmed.ok()) return confirmed;
  return target_->LinkFile(from, to, options, dbg);
}

IOStatus WalFileSystem::NumFileLinks(const std::string& path,
                                     const IOOptions& options, uint64_t* count,
                                     IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    return target_->NumFileLinks(path, options, count, dbg);
  }
  *count = 1;
  return IOStatus::OK();
}

IOStatus WalFileSystem::AreFilesSame(const std::string& first,
                                     const std::string& second,
                                     const IOOptions& options, bool* result,
                                     IODebugContext* dbg) {
  const absl::StatusOr<Place> one = Find(first);
  if (!one.ok()) return ToIoStatus(one.status());
  const absl::StatusOr<Place> other = Find(second);
  if (!other.ok()) return ToIoStatus(other.status());
  if (one->file == nullptr && other->file == nullptr) {
    return target_->AreFilesSame(first, second, options, result, dbg);
  }
  *result = one->file == other->file;
  return IOStatus::OK();
}

absl::Status WalFileSystem::LockDatabase(const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::shared_ptr<WalStore> store, Store());
  // First: the check below must see the locked database.
  ALPHEUS_RETURN_IF_ERROR(lock_.Take(directory));
  const auto vouch = [&]() -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(const WalHome home,
                             home_.CheckDatabase(*store, directory));
    ALPHEUS_ASSIGN_OR_RETURN(const VouchFacts facts,
                             vouch_.ReadFacts(*store, home));
    const MutexLock lock(vouch_.mutex());
    ALPHEUS_RETURN_IF_ERROR(vouch_.VouchBoth(*store, home, facts));
    return PutMarkers(*store);
  };
  absl::Status vouched = vouch();
  if (!vouched.ok()) lock_.Release();
  return vouched;
}

// Repairs the state of a crash between a file and its marker.
absl::Status WalFileSystem::PutMarkers(WalStore& store) {
  const std::string directory = store.home().wal_directory;
  for (const std::string& name : store.List("")) {
    const std::shared_ptr<WalFile> file = store.Find(name);
    if (file == nullptr || !file->is_recorded()) continue;  // WFS1
    ALPHEUS_RETURN_IF_ERROR(PutMarker(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

IOStatus WalFileSystem::LockFile(const std::string& path,
                                 const IOOptions& options,
                                 rocksdb::FileLock** lock,
                                 IODebugContext* dbg) {
  IOStatus locked = target_->LockFile(path, options, lock, dbg);
  if (!locked.ok()) return locked;
  const absl::Status mine =
      LockDatabase(Canonical(std::filesystem::path(path).parent_path()));
  if (mine.ok()) return locked;
  const IOStatus unlocked = target_->UnlockFile(*lock, options, dbg);
  *lock = nullptr;
  return unlocked.ok() ? ToIoStatus(mine) : unlocked;
}

std::shared_ptr<WalStore> WalFileSystem::StoreToLeave() const {
  const MutexLock lock(mutex_);
  return lock_.is_to_be_left() ? store_ : nullptr;
}

IOStatus WalFileSystem::UnlockFile(rocksdb::FileLock* lock,
                                   const IOOptions& options,
                                   IODebugContext* dbg) {
  if (const std::shared_ptr<WalStore> left = StoreToLeave(); left != nullptr) {
    vouch_.LeaveDirectory(*left);
  }
  lock_.Release();
  return target_->UnlockFile(lock, options, dbg);
}

IOStatus WalFileSystem::IsDirectory(const std::string& path,
                                    const IOOptions& options,
                                    bool* is_directory, IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    return target_->IsDirectory(path, options, is_directory, dbg);
  }
  *is_directory = false;
  return IOStatus::OK();
}

}  // namespace alpheus::wal
