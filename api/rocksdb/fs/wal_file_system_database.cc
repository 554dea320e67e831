// SPDX-License-Identifier: Apache-2.0
// Part of wal_file_system that checks, before a database is opened, whose WAL
// the log holds.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/rocksdb/failover/take_over.h"
#include "api/rocksdb/fs/wal_file_system.h"
#include "api/rocksdb/store/wal_paths.h"
#include "log/base/status_macros.h"

namespace alpheus {

absl::Status WalFileSystem::TakeOver(WalStore& store) {
  const WalHome home = store.home();
  if (options_.take_over.empty() || home == WalHome()) return absl::OkStatus();
  const std::string directory = Canonical(options_.take_over);
  if (home.database == directory) return absl::OkStatus();
  if (home.database.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the log holds WAL files of ", home.wal_directory,
                     ", but does not know of which database"));
  }
  if (home.wal_directory.empty()) {
    ALPHEUS_RETURN_IF_ERROR(TakeOverNew(home.database, directory));
    return store.SetTakenOver({"", directory});
  }
  ALPHEUS_ASSIGN_OR_RETURN(std::string wal_directory,
                           WalDirectoryIn(home, directory));
  const WalHome next = {std::move(wal_directory), directory};
  ALPHEUS_RETURN_IF_ERROR(TakeOverDatabase(*target_, home, next));
  return store.SetTakenOver(next);
}

absl::StatusOr<std::string> WalFileSystem::WalDirectoryIn(
    const WalHome& home, const std::string& directory) const {
  if (!options_.wal_directory.empty()) return Canonical(options_.wal_directory);
  const bool is_apart =
      !home.database.empty() && home.wal_directory != home.database;
  if (!is_apart) return directory;
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": the WAL of the database ", home.database,
      " had a directory of its own, ", home.wal_directory,
      ". Say by wal_dir= in the URI where it is now, as wal_dir of "
      "RocksDB's options says"));
}

// The process that claimed the log may have been stopped before it made
// CURRENT.
absl::Status WalFileSystem::TakeOverNew(const std::string& from,
                                        const std::string& to) {
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_there, HasDatabase(*target_, from));
  if (is_there) return TakeOverDatabase(*target_, {from, from}, {to, to});
  return CheckHasNoDatabase(*target_, to);
}

absl::Status WalFileSystem::LockDatabase(const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::shared_ptr<WalStore> store, Store());
  // First: the check below must see the locked database.
  ALPHEUS_RETURN_IF_ERROR(NoteLocked(directory));
  const auto settle = [&]() -> absl::Status {
    ALPHEUS_ASSIGN_OR_RETURN(const WalHome home,
                             CheckDatabase(*store, directory));
    ALPHEUS_ASSIGN_OR_RETURN(const VouchFacts facts, LookAt(*store, home));
    const MutexLock lock(vouch_mutex_);
    risen_manifest_.reset();
    ALPHEUS_RETURN_IF_ERROR(SettleVouch(*store, home, facts));
    return PutMarkers(*store);
  };
  absl::Status settled = settle();
  if (!settled.ok()) NoteUnlocked();
  return settled;
}

absl::Status WalFileSystem::NoteLocked(const std::string& directory) {
  const MutexLock lock(mutex_);
  if (locks_ > 0 && locked_database_ != directory) {
    return absl::FailedPreconditionError(absl::StrCat(
        directory, ": this log is that of the database ", locked_database_,
        ", which is open. Give each database a log of its own"));
  }
  if (locks_++ == 0) has_made_wal_ = is_vouched_ = false;
  locked_database_ = directory;
  return absl::OkStatus();
}

void WalFileSystem::NoteUnlocked() {
  const MutexLock lock(mutex_);
  if (--locks_ != 0) return;
  locked_database_.clear();
  is_vouched_ = false;
}

std::string WalFileSystem::LockedDatabase() const {
  const MutexLock lock(mutex_);
  return locked_database_;
}

std::string WalFileSystem::OpeningDatabase() const {
  const MutexLock lock(mutex_);
  return has_made_wal_ ? "" : locked_database_;
}

absl::Status WalFileSystem::ClaimForNewDatabase(WalStore& store,
                                                const std::string& directory) {
  const WalHome home = store.home();
  ALPHEUS_RETURN_IF_ERROR(CheckMayBeNew(store, directory));
  if (!home.wal_directory.empty() || home.database == directory ||
      directory != LockedDatabase()) {
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_new, IsNew(directory, {}));
  return is_new ? store.SetHome({"", directory}) : absl::OkStatus();
}

// RocksDB itself checks for WAL files before it makes a database, in the
// directory where it expects them.
absl::Status WalFileSystem::CheckMayBeNew(WalStore& store,
                                          const std::string& directory) {
  if (directory != OpeningDatabase() || options_.keep_wal) {
    return absl::OkStatus();
  }
  const std::vector<std::string> of_the_log = Replayable(store);
  if (of_the_log.empty()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_there,
                           HasDatabase(*target_, directory));
  if (is_there) return absl::OkStatus();
  // The markers of these files exist since the database was locked.
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_new, IsNew(directory, of_the_log));
  if (!is_new) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory,
                   ": a new database, and the log has the WAL of one that was "
                   "here, in ",
                   store.home().wal_directory,
                   ". Is its file system mounted? If it was moved, open it "
                   "where it is, once with adopt=true. If it is to be gone, "
                   "destroy it with this wal_dir, or open this one once with "
                   "drop_wal=true; to repair it, open it with keep_wal=true"));
}

// A repaired database has older files, and this log may not be its own.
absl::StatusOr<bool> WalFileSystem::IsNew(
    const std::string& directory, const std::vector<std::string>& but_for) {
  std::vector<std::string> names;
  const IOStatus listed =
      target_->GetChildren(directory, rocksdb::IOOptions(), &names, nullptr);
  if (!listed.ok()) {
    return absl::UnavailableError(
        absl::StrCat(directory, ": ", listed.ToString()));
  }
  return std::ranges::none_of(names, [&](const std::string& name) {
    if (std::ranges::count(but_for, name) != 0) return false;
    return IsWalName(name) || IsTableName(name) ||
           absl::StartsWith(name, "OPTIONS-");  // of a successful opening
  });
}

absl::StatusOr<WalHome> WalFileSystem::CheckDatabase(
    WalStore& store, const std::string& directory) {
  const WalHome home = store.home();
  const std::string wal_directory = options_.wal_directory.empty()
                                        ? home.wal_directory
                                        : Canonical(options_.wal_directory);
  const bool is_free =
      home == WalHome() || home.database == directory || options_.adopt;
  if (home.wal_directory.empty() && is_free) {
    if (!store.List("").empty()) return HomeOfNone(directory);
    if (options_.adopt || options_.drop_wal || options_.keep_wal ||
        !home.database.empty()) {
      return WalHome{"", home.database.empty() ? "" : directory};
    }
    ALPHEUS_ASSIGN_OR_RETURN(const bool is_there,
                             HasDatabase(*target_, directory));
    if (!is_there) return home;
    return absl::FailedPreconditionError(absl::StrCat(
        directory,
        ": an existing database and a log that never had a WAL file. Is "
        "it the right log? If the database had another WAL until now, open "
        "it once for writing with adopt=true"));
  }
  if (home == WalHome{wal_directory, directory}) return home;
  if (options_.adopt) {
    ALPHEUS_ASSIGN_OR_RETURN(std::string adopted,
                             WalDirectoryIn(home, directory));
    return WalHome{std::move(adopted), directory};
  }
  if (home == WalHome{directory, ""} && wal_directory == directory) {
    return WalHome{directory, directory};
  }
  return RefuseElsewhere(store, directory);
}

// The message offers adopt only where adopt would work.
absl::Status WalFileSystem::RefuseElsewhere(WalStore& store,
                                            const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const VouchFacts facts,
                           LookAt(store, {"", directory}));
  ALPHEUS_RETURN_IF_ERROR(ToStatus(Judge(facts), facts, directory));
  const bool may_be_it = facts.has_database || facts.has_marker;
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": this log is that of the database ", DescribeHome(store),
      ". Give each database a log of its own",
      may_be_it ? "; if it was moved, or cloned with its log, open it once for "
                  "writing with adopt=true"
                : ""));
}

std::string WalFileSystem::DescribeHome(const WalStore& store) {
  const WalHome home = store.home();
  const bool is_apart =
      !home.wal_directory.empty() && home.wal_directory != home.database;
  return is_apart ? absl::StrCat(home.database, " with its WAL in ",
                                 home.wal_directory)
                  : home.database;
}

// A salvaged log, without its home record.
absl::StatusOr<WalHome> WalFileSystem::HomeOfNone(
    const std::string& directory) const {
  if (options_.adopt || options_.drop_wal || options_.keep_wal) {
    return WalHome{options_.wal_directory.empty()
                       ? directory
                       : Canonical(options_.wal_directory),
                   directory};
  }
  return absl::FailedPreconditionError(absl::StrCat(
      directory,
      ": the log has WAL files, and does not say of which database. If "
      "they are those of this one, open it once for writing with adopt=true, "
      "and with "
      "wal_dir= in the URI if they had a directory of their own"));
}

// Repairs the state of a crash between a file and its marker.
absl::Status WalFileSystem::PutMarkers(WalStore& store) {
  const std::string directory = store.home().wal_directory;
  for (const std::string& name : store.List("")) {
    const std::shared_ptr<WalFile> file = store.Find(name);
    if (file == nullptr || !file->is_recorded()) continue;  // WFS3
    ALPHEUS_RETURN_IF_ERROR(PutMarker(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace alpheus
