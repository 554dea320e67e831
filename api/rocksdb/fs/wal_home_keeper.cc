// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/wal_home_keeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "api/rocksdb/failover/directory_vouch.h"
#include "api/rocksdb/failover/take_over.h"
#include "api/rocksdb/store/wal_paths.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {

absl::Status WalHomeKeeper::TakeOver(WalStore& store) const {
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
  ALPHEUS_RETURN_IF_ERROR(TakeOverDatabase(base_, home, next));
  return store.SetTakenOver(next);
}

absl::StatusOr<std::string> WalHomeKeeper::WalDirectoryIn(
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
absl::Status WalHomeKeeper::TakeOverNew(const std::string& from,
                                        const std::string& to) const {
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_there, HasDatabase(base_, from));
  if (is_there) return TakeOverDatabase(base_, {from, from}, {to, to});
  return CheckHasNoDatabase(base_, to);
}

absl::Status WalHomeKeeper::ClaimForNewDatabase(WalStore& store,
                                                const std::string& directory) {
  const WalHome home = store.home();
  ALPHEUS_RETURN_IF_ERROR(CheckMayBeNew(store, directory));
  if (!home.wal_directory.empty() || home.database == directory ||
      directory != lock_.database()) {
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_new, IsNew(directory, {}));
  return is_new ? store.SetHome({"", directory}) : absl::OkStatus();
}

// RocksDB itself checks for WAL files before it makes a database, in the
// directory where it expects them.
absl::Status WalHomeKeeper::CheckMayBeNew(WalStore& store,
                                          const std::string& directory) {
  if (directory != lock_.opening() || options_.keep_wal) {
    return absl::OkStatus();
  }
  const std::vector<std::string> of_the_log = ReplayableWal(store);
  if (of_the_log.empty()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const bool is_there, HasDatabase(base_, directory));
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
absl::StatusOr<bool> WalHomeKeeper::IsNew(
    const std::string& directory, const std::vector<std::string>& but_for) {
  std::vector<std::string> names;
  const rocksdb::IOStatus listed =
      base_.GetChildren(directory, rocksdb::IOOptions(), &names, nullptr);
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

absl::StatusOr<WalHome> WalHomeKeeper::CheckDatabase(
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
                             HasDatabase(base_, directory));
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
absl::Status WalHomeKeeper::RefuseElsewhere(WalStore& store,
                                            const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const VouchFacts facts,
                           vouch_.ReadFacts(store, {"", directory}));
  ALPHEUS_RETURN_IF_ERROR(ToStatus(Judge(facts), facts, directory));
  const bool may_be_it = facts.has_database || facts.has_marker;
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": this log is that of the database ", DescribeHome(store),
      ". Give each database a log of its own",
      may_be_it ? "; if it was moved, or cloned with its log, open it once for "
                  "writing with adopt=true"
                : ""));
}

std::string WalHomeKeeper::DescribeHome(const WalStore& store) {
  const WalHome home = store.home();
  const bool is_apart =
      !home.wal_directory.empty() && home.wal_directory != home.database;
  return is_apart ? absl::StrCat(home.database, " with its WAL in ",
                                 home.wal_directory)
                  : home.database;
}

// A salvaged log, without its home record.
absl::StatusOr<WalHome> WalHomeKeeper::HomeOfNone(
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

absl::Status WalHomeKeeper::CheckMayRead(WalStore& store,
                                         const std::string& directory) {
  // RocksDB lists column families before an opening with one of these options.
  if (directory == lock_.database() || options_.drop_wal || options_.keep_wal ||
      options_.adopt) {
    return absl::OkStatus();
  }
  if (directory == store.home().database) return vouch_.CheckVouched(store);
  ALPHEUS_ASSIGN_OR_RETURN(const std::optional<DirectoryVouch> vouch,
                           ReadDirectoryVouch(base_, directory));
  return vouch ? CheckDatabase(store, directory).status() : absl::OkStatus();
}

bool WalHomeKeeper::MayChangeItsDirectory(const WalStore& store) const {
  const std::string opening = lock_.opening();
  return !opening.empty() && opening == store.home().database &&
         ReplayableWal(store).empty();
}

absl::Status WalHomeKeeper::CheckMayBePlain(
    const WalStore& store, const std::string& directory,
    const std::string& base_name) const {
  if (!IsWalName(base_name) || lock_.opening().empty()) {
    return absl::OkStatus();
  }
  const std::string home = store.home().wal_directory;
  return absl::FailedPreconditionError(absl::StrCat(
      directory, "/", base_name,
      ": RocksDB makes its WAL here, and the log has that of the database in ",
      home.empty() ? Canonical(options_.wal_directory) : home,
      ". Open it with that wal_dir; if the directory was moved, once with "
      "adopt=true and wal_dir= in the URI"));
}

}  // namespace alpheus::wal
