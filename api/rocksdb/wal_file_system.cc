// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/wal_file_system.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "api/rocksdb/manifest_file.h"
#include "api/rocksdb/take_over.h"
#include "api/rocksdb/wal_io_status.h"
#include "log/base/mutant.h"
#include "log/base/status_macros.h"
#include "rocksdb/system_clock.h"

namespace alpheus {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// Without symbolic links, so that a directory has one name.
std::string Canonical(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(
      path.empty() ? std::filesystem::path(".") : path, error);
  if (error) canonical = std::filesystem::absolute(path, error);
  std::string text = canonical.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// NUMBER.log, as RocksDB names its WAL files.
bool IsWalName(absl::string_view name) {
  return absl::ConsumeSuffix(&name, ".log") && !name.empty() &&
         std::ranges::all_of(name, absl::ascii_isdigit);
}

// Empty optional: not below `directory`.
std::optional<std::string> Below(absl::string_view directory,
                                 absl::string_view path) {
  if (path == directory) return "";
  if (!absl::ConsumePrefix(&path, directory) ||
      !absl::ConsumePrefix(&path, "/")) {
    return std::nullopt;
  }
  return std::string(path);
}

uint64_t NowSeconds() {
  int64_t seconds = 0;
  // A file without a time is an old one, which is no reason to lose a write.
  if (!rocksdb::SystemClock::Default()->GetCurrentTime(&seconds).ok()) return 0;
  return static_cast<uint64_t>(seconds);
}

// A link to nowhere: whoever opens it fails.
constexpr char kMarker[] =
    "alpheus: in a log, open the database with libalpheus_rocksdb";

absl::Status DropMarker(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return absl::OkStatus();
  std::filesystem::remove(path, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(path.string(), ": remove: ", error.message()));
}

absl::Status PutMarker(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error)) return absl::OkStatus();
  std::filesystem::create_symlink(kMarker, path, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(path.string(), ": create: ", error.message()));
}

IOStatus NotInALog(absl::string_view what, const std::string& path) {
  return IOStatus::NotSupported(
      absl::StrCat("alpheus: ", what, " a WAL file in a log"), path);
}

}  // namespace

WalFileSystem::WalFileSystem(WalOptions options,
                             const std::shared_ptr<rocksdb::FileSystem>& base)
    : FileSystemWrapper(base), options_(std::move(options)) {}

rocksdb::Status WalFileSystem::PrepareOptions(
    const rocksdb::ConfigOptions& options) {
  IOStatus opened = ToIoStatus(Store().status());
  if (!opened.ok()) return opened;
  return FileSystemWrapper::PrepareOptions(options);
}

absl::StatusOr<std::shared_ptr<WalStore>> WalFileSystem::Store() {
  const MutexLock lock(mutex_);
  // Not under a database that still has it open: that one must stop (H20).
  if (store_ != nullptr && store_->has_failed() && locks_ == 0) store_.reset();
  if (store_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<WalStore> opened,
                             WalStore::Open(options_, NowSeconds));
    ALPHEUS_RETURN_IF_ERROR(TakeOver(*opened));
    store_ = std::move(opened);
  }
  return store_;
}

absl::Status WalFileSystem::TakeOver(WalStore& store) {
  const WalHome home = store.home();
  if (options_.take_over.empty() || home.wal_directory.empty()) {
    return absl::OkStatus();
  }
  const std::string directory = Canonical(options_.take_over);
  if (home.database == directory) return absl::OkStatus();
  if (home.database.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the log holds WAL files of ", home.wal_directory,
                     ", but does not know of which database"));
  }
  ALPHEUS_RETURN_IF_ERROR(TakeOverDatabase(*target_, home.database, directory));
  return store.SetHome({options_.wal_directory.empty()
                            ? directory
                            : Canonical(options_.wal_directory),
                        directory});
}

IOStatus WalFileSystem::BeforeChange(WalStore& store) {
  return ToIoStatus(store.ConfirmPrimary());
}

bool WalFileSystem::IsForeign(const std::string& path) {
  const size_t slash = path.rfind('/');
  return path.find(".log", slash == std::string::npos ? 0 : slash) ==
         std::string::npos;
}

absl::StatusOr<WalFileSystem::Place> WalFileSystem::Find(
    const std::string& path) {
  Place place;
  const std::filesystem::path split(path);
  place.base_name = split.filename().string();
  ALPHEUS_ASSIGN_OR_RETURN(place.store, Store());
  if (IsForeign(path)) return place;
  place.directory = Canonical(split.parent_path());
  const std::string home = place.store->home().wal_directory;
  if (home.empty()) return place;
  place.name = Below(home, absl::StrCat(place.directory, "/", place.base_name));
  if (place.name) place.file = place.store->Find(*place.name);
  return place;
}

absl::StatusOr<bool> WalFileSystem::IsKept(Place& place) {
  if (place.file != nullptr) return true;
  if (!IsWalName(place.base_name)) return false;
  if (place.name) return *place.name == place.base_name;
  if (!place.store->home().wal_directory.empty()) return false;
  if (!options_.wal_directory.empty() &&
      place.directory != Canonical(options_.wal_directory)) {
    return false;
  }
  std::string database;
  {
    const MutexLock lock(mutex_);
    database = locked_database_;
  }
  ALPHEUS_RETURN_IF_ERROR(
      place.store->SetHome({place.directory, std::move(database)}));
  place.name = place.base_name;
  return true;
}

absl::StatusOr<OpenWal> WalFileSystem::MakeWal(const Place& place,
                                               const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<WalFile> file,
                           place.store->Create(*place.name));
  if (file->is_recorded() || IsMutant("kWalMarkedUnrecorded")) {
    ALPHEUS_RETURN_IF_ERROR(Mark(*place.store, path));
  }
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
  // P3: a marker without its file would keep the database from being opened.
  if (!IsMutant("kWalMarkedBeforeDurable")) {
    ALPHEUS_RETURN_IF_ERROR(store.SyncAll());
  }
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

IOStatus WalFileSystem::NewSequentialFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    return target_->NewSequentialFile(path, options, result, dbg);
  }
  *result = NewWalScanner({place->store, place->file});
  return IOStatus::OK();
}

IOStatus WalFileSystem::NewRandomAccessFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSRandomAccessFile>* result, IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    return target_->NewRandomAccessFile(path, options, result, dbg);
  }
  *result = NewWalReader({place->store, place->file});
  return IOStatus::OK();
}

IOStatus WalFileSystem::NewBaseFile(
    const Place& place, const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  if (!place.store->is_replicated()) {
    return target_->NewWritableFile(path, options, result, dbg);
  }
  IOStatus made = BeforeChange(*place.store);
  // P4: not the file that a predecessor still has open.
  if (made.ok() && target_->FileExists(path, options.io_options, dbg).ok() &&
      !IsMutant("kTableOverwrittenInPlace")) {
    made = target_->DeleteFile(path, options.io_options, dbg);
  }
  if (made.ok()) made = target_->NewWritableFile(path, options, result, dbg);
  if (made.ok() && IsManifestName(place.base_name)) {
    *result = NewManifestFile(place.store, std::move(*result));
  }
  return made;
}

IOStatus WalFileSystem::NewWritableFile(
    const std::string& path, const FileOptions& options,
    std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* dbg) {
  absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  const absl::StatusOr<bool> kept = IsKept(*place);
  if (!kept.ok()) return ToIoStatus(kept.status());
  if (!*kept) return NewBaseFile(*place, path, options, result, dbg);
  absl::StatusOr<OpenWal> wal = MakeWal(*place, path);
  if (!wal.ok()) return ToIoStatus(wal.status());
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
  // What another WAL left there goes on there.
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
    IOStatus confirmed = BeforeChange(*place->store);
    if (!confirmed.ok()) return confirmed;
    return target_->ReuseWritableFile(path, old_path, options, result, dbg);
  }
  old->file.reset();  // as in DeleteFile
  // Space is not reused in place: the old one is as good as removed.
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
  return target_->NewRandomRWFile(path, options, result, dbg);
}

IOStatus WalFileSystem::NewDirectory(
    const std::string& path, const IOOptions& options,
    std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* dbg) {
  absl::StatusOr<std::shared_ptr<WalStore>> store = Store();
  if (!store.ok()) return ToIoStatus(store.status());
  std::unique_ptr<rocksdb::FSDirectory> base;
  IOStatus opened = target_->NewDirectory(path, options, &base, dbg);
  // Any directory, because the WAL's is not known before the first file.
  if (opened.ok()) {
    *result = NewWalDirectory(*std::move(store), std::move(base));
  }
  return opened;
}

IOStatus WalFileSystem::FileExists(const std::string& path,
                                   const IOOptions& options,
                                   IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file != nullptr) return IOStatus::OK();
  return target_->FileExists(path, options, dbg);
}

IOStatus WalFileSystem::GetChildren(const std::string& directory,
                                    const IOOptions& options,
                                    std::vector<std::string>* result,
                                    IODebugContext* dbg) {
  const absl::StatusOr<std::shared_ptr<WalStore>> store = Store();
  if (!store.ok()) return ToIoStatus(store.status());
  IOStatus listed = target_->GetChildren(directory, options, result, dbg);
  const std::string home = (*store)->home().wal_directory;
  if (!listed.ok() || home.empty()) return listed;
  const std::optional<std::string> below = Below(home, Canonical(directory));
  if (!below) return listed;
  for (std::string& name : (*store)->List(*below)) {
    if (std::ranges::find(*result, name) == result->end()) {
      result->push_back(std::move(name));
    }
  }
  return listed;
}

IOStatus WalFileSystem::GetChildrenFileAttributes(
    const std::string& directory, const IOOptions& options,
    std::vector<rocksdb::FileAttributes>* result, IODebugContext* dbg) {
  // The base file system would not ask this one for names and sizes; the
  // interface's own way does.
  // NOLINTNEXTLINE(bugprone-parent-virtual-call)
  return FileSystem::GetChildrenFileAttributes(directory, options, result, dbg);
}

IOStatus WalFileSystem::DeleteFile(const std::string& path,
                                   const IOOptions& options,
                                   IODebugContext* dbg) {
  absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  // A marker is a name, too.
  IOStatus confirmed = BeforeChange(*place->store);
  if (!confirmed.ok()) return confirmed;
  if (place->file == nullptr) return target_->DeleteFile(path, options, dbg);
  // Else this reference would keep its records.
  place->file.reset();
  const absl::Status unmarked = DropMarker(path);
  if (!unmarked.ok()) return ToIoStatus(unmarked);
  return ToIoStatus(place->store->Remove(*place->name));
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

IOStatus WalFileSystem::GetFileSize(const std::string& path,
                                    const IOOptions& options, uint64_t* size,
                                    IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    return target_->GetFileSize(path, options, size, dbg);
  }
  *size = place->file->size();
  return IOStatus::OK();
}

IOStatus WalFileSystem::GetFileModificationTime(const std::string& path,
                                                const IOOptions& options,
                                                uint64_t* seconds,
                                                IODebugContext* dbg) {
  const absl::StatusOr<Place> place = Find(path);
  if (!place.ok()) return ToIoStatus(place.status());
  if (place->file == nullptr) {
    return target_->GetFileModificationTime(path, options, seconds, dbg);
  }
  *seconds = place->file->seconds();
  return IOStatus::OK();
}

IOStatus WalFileSystem::RenameBaseFile(WalStore& store, const std::string& from,
                                       const std::string& to,
                                       const IOOptions& options,
                                       IODebugContext* dbg) {
  IOStatus renamed = target_->RenameFile(from, to, options, dbg);
  const bool is_current = std::filesystem::path(to).filename() == "CURRENT";
  // P5: asked before, the log could be lost in between.
  return renamed.ok() && is_current ? ToIoStatus(store.ConfirmPrimary())
                                    : renamed;
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
  absl::Status renamed = DropMarker(from);
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
  // RocksDB copies then, which is what a checkpoint needs.
  if (place->file != nullptr) return NotInALog("linking", from);
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

IOStatus WalFileSystem::LockFile(const std::string& path,
                                 const IOOptions& options,
                                 rocksdb::FileLock** lock,
                                 IODebugContext* dbg) {
  IOStatus locked = target_->LockFile(path, options, lock, dbg);
  if (!locked.ok()) return locked;
  const absl::StatusOr<std::shared_ptr<WalStore>> store = Store();
  absl::Status mine = store.status();
  if (mine.ok()) {
    mine = CheckDatabase(**store,
                         Canonical(std::filesystem::path(path).parent_path()));
  }
  if (mine.ok()) mine = CheckMarkers(**store);
  if (mine.ok()) {
    const MutexLock counting(mutex_);
    ++locks_;
    return locked;
  }
  const IOStatus unlocked = target_->UnlockFile(*lock, options, dbg);
  *lock = nullptr;
  return unlocked.ok() ? ToIoStatus(mine) : unlocked;
}

IOStatus WalFileSystem::UnlockFile(rocksdb::FileLock* lock,
                                   const IOOptions& options,
                                   IODebugContext* dbg) {
  {
    const MutexLock counting(mutex_);
    --locks_;
  }
  return target_->UnlockFile(lock, options, dbg);
}

absl::Status WalFileSystem::CheckDatabase(WalStore& store,
                                          const std::string& directory) {
  const WalHome home = store.home();
  const std::string wal_directory = options_.wal_directory.empty()
                                        ? home.wal_directory
                                        : Canonical(options_.wal_directory);
  if (home.wal_directory.empty()) {
    if (!options_.adopt &&
        target_->FileExists(directory + "/CURRENT", IOOptions(), nullptr)
            .ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          directory,
          ": an existing database and a log that never had a WAL file (P2). Is "
          "it the right log? If the database had another WAL until now, open "
          "it once with adopt=true"));
    }
    const MutexLock lock(mutex_);
    locked_database_ = directory;
    return absl::OkStatus();
  }
  if (home == WalHome{wal_directory, directory}) return absl::OkStatus();
  if (options_.adopt) {
    return store.SetHome(
        {options_.wal_directory.empty() ? directory : wal_directory,
         directory});
  }
  if (home == WalHome{directory, ""} && wal_directory == directory) {
    return store.SetHome({directory, directory});
  }
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": this log holds the WAL of the database ", home.database,
      " in ", home.wal_directory,
      " (P1). Give each database a log of its own; if it was moved, open it "
      "once with adopt=true"));
}

// What a crash between a file and its marker left is put right.
absl::Status WalFileSystem::CheckMarkers(WalStore& store) {
  const std::string directory = store.home().wal_directory;
  for (const std::string& name : store.List("")) {
    const std::shared_ptr<WalFile> file = store.Find(name);
    if (file == nullptr || !file->is_recorded()) continue;  // P3
    const std::string path = absl::StrCat(directory, "/", name);
    if (target_->FileExists(path, IOOptions(), nullptr).ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(path,
                       ": a plain file, and one in the log: which is it? "
                       "Move the plain one away, or restore into an "
                       "empty log"));
    }
    ALPHEUS_RETURN_IF_ERROR(PutMarker(path));
  }
  return absl::OkStatus();
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

}  // namespace alpheus
