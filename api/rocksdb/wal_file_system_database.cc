// SPDX-License-Identifier: Apache-2.0
// Whose WAL the log holds: what wal_file_system asks before a database is
// opened.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "api/rocksdb/take_over.h"
#include "api/rocksdb/wal_file_system.h"
#include "api/rocksdb/wal_paths.h"
#include "log/base/mutant.h"
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
  // Without a WAL file it was never opened: it may as well begin anew.
  if (home.wal_directory.empty()) return store.SetHome({"", directory});
  ALPHEUS_RETURN_IF_ERROR(TakeOverDatabase(*target_, home.database, directory));
  return store.SetHome({options_.wal_directory.empty()
                            ? directory
                            : Canonical(options_.wal_directory),
                        directory});
}

std::string WalFileSystem::LockedDatabase() const {
  const MutexLock lock(mutex_);
  return locked_database_;
}

absl::Status WalFileSystem::ClaimForNewDatabase(WalStore& store,
                                                const std::string& directory) {
  const WalHome home = store.home();
  if (!home.wal_directory.empty() || home.database == directory ||
      directory != LockedDatabase() || IsMutant("kWalNewDatabaseUnclaimed")) {
    return absl::OkStatus();
  }
  return store.SetHome({"", directory});
}

absl::Status WalFileSystem::CheckDatabase(WalStore& store,
                                          const std::string& directory) {
  const WalHome home = store.home();
  const std::string wal_directory = options_.wal_directory.empty()
                                        ? home.wal_directory
                                        : Canonical(options_.wal_directory);
  const bool is_free =
      home == WalHome() || home.database == directory || options_.adopt;
  if (home.wal_directory.empty() && is_free) {
    if (!options_.adopt && home.database.empty() &&
        target_
            ->FileExists(directory + "/CURRENT", rocksdb::IOOptions(), nullptr)
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
      home.wal_directory.empty() ? "" : " in ", home.wal_directory,
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
    if (target_->FileExists(path, rocksdb::IOOptions(), nullptr).ok()) {
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

}  // namespace alpheus
