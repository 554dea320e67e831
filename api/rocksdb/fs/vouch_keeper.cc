// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/fs/vouch_keeper.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "api/rocksdb/failover/take_over.h"
#include "api/rocksdb/store/wal_io_status.h"
#include "api/rocksdb/store/wal_paths.h"
#include "log/base/status_macros.h"
#include "rocksdb/env.h"

namespace alpheus::wal {
namespace {

std::string DrawId() {
  std::string id = rocksdb::Env::Default()->GenerateUniqueId();
  std::erase_if(id, [](char c) { return c == '\n' || c == ' '; });
  return id;
}

}  // namespace

std::vector<std::string> ReplayableWal(const WalStore& store) {
  std::vector<std::string> names = store.List("");
  std::erase_if(names,
                [](const std::string& name) { return !IsWalName(name); });
  return names;
}

absl::StatusOr<std::vector<std::string>> VouchKeeper::MissingWal(
    WalStore& store, const WalHome& home) {
  const std::string& directory = home.wal_directory;
  std::vector<std::string> names;
  const rocksdb::IOStatus listed =
      base_.GetChildren(directory, rocksdb::IOOptions(), &names, nullptr);
  if (listed.IsNotFound() || listed.IsPathNotFound()) return names;
  if (!listed.ok()) {
    return absl::UnavailableError(
        absl::StrCat(directory, ": ", listed.ToString()));
  }
  std::erase_if(names, [&](const std::string& name) {
    return !IsWalName(name) || !IsMarker(absl::StrCat(directory, "/", name)) ||
           store.Find(name) != nullptr;
  });
  std::ranges::sort(names);
  return names;
}

void VouchKeeper::ReadFileFacts(WalStore& store, const WalHome& home,
                                VouchFacts& facts) {
  for (const std::string& name : store.List("")) {
    const std::shared_ptr<WalFile> file = store.Find(name);
    if (file == nullptr || !file->is_recorded()) continue;  // WFS1
    const std::string path = absl::StrCat(home.wal_directory, "/", name);
    if (base_.FileExists(path, rocksdb::IOOptions(), nullptr).ok()) {
      facts.twice = path;
    }
    if (!IsWalName(name)) continue;
    facts.has_data |= file->size() > 0;
    facts.has_marker |= IsMarker(path);
  }
}

// Fills in a missing home from the options.
WalHome VouchKeeper::Completed(WalHome home) const {
  if (home.database.empty()) home.database = lock_.database();
  if (!home.wal_directory.empty()) return home;
  home.wal_directory = options_.wal_directory.empty()
                           ? home.database
                           : Canonical(options_.wal_directory);
  return home;
}

absl::StatusOr<VouchFacts> VouchKeeper::ReadFacts(WalStore& store,
                                                  const WalHome& home) {
  VouchFacts facts;
  facts.log = store.vouch();
  facts.left = store.left();
  const WalHome completed = Completed(home);
  const std::string& directory = completed.database;
  facts.has_left_name = directory == facts.left.database;
  const std::string known = store.home().database;
  if (known != directory) facts.elsewhere = known;
  ALPHEUS_ASSIGN_OR_RETURN(facts.directory,
                           ReadDirectoryVouch(base_, directory));
  ALPHEUS_ASSIGN_OR_RETURN(facts.has_database, HasDatabase(base_, directory));
  ALPHEUS_ASSIGN_OR_RETURN(facts.manifest, NamedManifest(base_, directory));
  ALPHEUS_ASSIGN_OR_RETURN(facts.identity, DatabaseIdentity(base_, directory));
  std::vector<std::string> names;
  // RocksDB itself reports a directory that can't be listed.
  if (base_.GetChildren(directory, rocksdb::IOOptions(), &names, nullptr)
          .ok()) {
    facts.has_database |= std::ranges::any_of(
        names, [](const std::string& name) { return IsTableName(name); });
  }
  ReadFileFacts(store, completed, facts);
  if (base_
          .GetChildren(completed.wal_directory, rocksdb::IOOptions(), &names,
                       nullptr)
          .ok()) {
    facts.has_wal_name = std::ranges::any_of(
        names, [](const std::string& name) { return IsWalName(name); });
  }
  return facts;
}

absl::Status VouchKeeper::VouchBoth(WalStore& store, const WalHome& home,
                                    const VouchFacts& facts) {
  risen_manifest_.reset();
  const VouchVerdict verdict = Judge(facts);
  absl::Status judged = ToStatus(verdict, facts, lock_.database());
  const bool is_new = !facts.has_database && !facts.directory;
  // DV6.
  const bool may_force = facts.elsewhere.empty();
  const bool drops = options_.drop_wal && may_force &&
                     (!judged.ok() || (is_new && facts.has_data));
  const bool keeps = options_.keep_wal && may_force && !judged.ok() &&
                     verdict != VouchVerdict::kWalTwice;
  if (!judged.ok() && !drops && !keeps) return judged;
  // A clone must not pass for its original.
  const bool has_moved = home.database != store.home().database;
  if (home != WalHome()) ALPHEUS_RETURN_IF_ERROR(store.SetHome(home));
  if (drops || verdict == VouchVerdict::kNothingToMix) {
    ALPHEUS_RETURN_IF_ERROR(DropWal(store));
  }
  if (options_.drop_wal || options_.keep_wal) {
    ALPHEUS_RETURN_IF_ERROR(DropMissing(store, home));
  }
  if (verdict == VouchVerdict::kVouched && !has_moved) {
    return BeginGeneration(store, home, facts);
  }
  // Without a database nothing vouches for the directory yet.
  if (home.database.empty() || !facts.has_database) return absl::OkStatus();
  const bool is_asked = drops || keeps || has_moved;
  if (!is_asked && !store.HasRoomForHome()) {
    lock_.NoteVouched();
    return absl::OkStatus();
  }
  return VouchAgain(store, home.database);
}

absl::Status VouchKeeper::BeginGeneration(WalStore& store, const WalHome& home,
                                          const VouchFacts& facts) {
  if (!store.HasRoomForHome()) {
    lock_.NoteVouched();
    return absl::OkStatus();
  }
  WalVouch next = facts.log;
  ++next.generation;
  return ChangeVouch(store, home.database, next);
}

absl::Status VouchKeeper::VouchAgain(WalStore& store,
                                     const std::string& directory) {
  return ChangeVouch(store, directory, {DrawId(), 1});
}

// DV2.
absl::Status VouchKeeper::ChangeVouch(WalStore& store,
                                      const std::string& directory,
                                      const WalVouch& next) {
  DirectoryVouch vouch;
  vouch.log = next;
  vouch.log_was = store.vouch();
  ALPHEUS_ASSIGN_OR_RETURN(vouch.manifest, SyncedManifest(base_, directory));
  ALPHEUS_ASSIGN_OR_RETURN(vouch.identity, DatabaseIdentity(base_, directory));
  ALPHEUS_RETURN_IF_ERROR(WriteDirectoryVouch(base_, directory, vouch));
  ALPHEUS_RETURN_IF_ERROR(store.SetVouch(next));
  vouch.log_was.reset();
  ALPHEUS_RETURN_IF_ERROR(WriteDirectoryVouch(base_, directory, vouch));
  risen_manifest_ = vouch.manifest;
  lock_.NoteVouched();
  return absl::OkStatus();
}

absl::Status VouchKeeper::RiseAround(WalStore& store, const std::string& name) {
  if (!IsWalName(name) || !lock_.is_vouched()) return absl::OkStatus();
  const MutexLock lock(mutex_);
  const std::string directory = store.home().database;
  const absl::StatusOr<ManifestName> manifest = NamedManifest(base_, directory);
  if (!manifest.ok() || manifest->name.empty() ||
      *manifest == risen_manifest_ || !store.HasRoomForHome()) {
    return absl::OkStatus();
  }
  WalVouch next = store.vouch();
  ++next.generation;
  absl::Status risen = ChangeVouch(store, directory, next);
  // A directory that can't be written must not keep the ring full.
  return store.has_failed() ? risen : absl::OkStatus();
}

rocksdb::IOStatus VouchKeeper::RenameToIdentity(
    const std::string& from, const std::string& to,
    const rocksdb::IOOptions& options, rocksdb::IODebugContext* dbg) {
  const MutexLock lock(mutex_);
  const std::string directory =
      Canonical(std::filesystem::path(to).parent_path());
  const absl::Status forgotten = SetIdentity(directory, "");
  if (!forgotten.ok()) return ToIoStatus(forgotten);
  rocksdb::IOStatus renamed = base_.RenameFile(from, to, options, dbg);
  if (!renamed.ok()) return renamed;
  const absl::StatusOr<std::string> identity =
      DatabaseIdentity(base_, directory);
  if (!identity.ok()) return ToIoStatus(identity.status());
  return ToIoStatus(SetIdentity(directory, *identity));
}

absl::Status VouchKeeper::SetIdentity(const std::string& directory,
                                      const std::string& identity) {
  ALPHEUS_ASSIGN_OR_RETURN(std::optional<DirectoryVouch> vouch,
                           ReadDirectoryVouch(base_, directory));
  if (!vouch || vouch->identity == identity) return absl::OkStatus();
  vouch->identity = identity;
  return WriteDirectoryVouch(base_, directory, *vouch);
}

absl::Status VouchKeeper::DropWal(WalStore& store) {
  const std::string directory = store.home().wal_directory;
  for (const std::string folder : {"", "archive/"}) {
    std::vector<std::string> names =
        store.List(folder.substr(0, folder.find('/')));
    std::ranges::sort(names);
    for (const std::string& base_name : names) {
      const std::string name = folder + base_name;
      ALPHEUS_RETURN_IF_ERROR(DropMarker(absl::StrCat(directory, "/", name)));
      ALPHEUS_RETURN_IF_ERROR(store.Remove(name));
    }
  }
  return absl::OkStatus();
}

absl::Status VouchKeeper::DropMissing(WalStore& store, const WalHome& home) {
  const WalHome completed = Completed(home);
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                           MissingWal(store, completed));
  for (const std::string& name : missing) {
    ALPHEUS_RETURN_IF_ERROR(
        DropMarker(absl::StrCat(completed.wal_directory, "/", name)));
  }
  return absl::OkStatus();
}

absl::Status VouchKeeper::VouchIfUnmixed(WalStore& store) {
  const WalHome home = store.home();
  if (home.database.empty() || lock_.is_vouched()) return absl::OkStatus();
  ALPHEUS_ASSIGN_OR_RETURN(const VouchFacts facts, ReadFacts(store, home));
  const VouchVerdict verdict = Judge(facts);
  if (verdict == VouchVerdict::kVouched) {
    lock_.NoteVouched();
    return absl::OkStatus();
  }
  const bool is_unmixed =
      !facts.has_data && verdict <= VouchVerdict::kNothingToMix;
  return is_unmixed ? VouchAgain(store, home.database) : absl::OkStatus();
}

absl::Status VouchKeeper::CheckVouched(WalStore& store) {
  const WalHome home = store.home();
  if (home.database.empty() || lock_.is_vouched() || options_.keep_wal) {
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(const VouchFacts facts, ReadFacts(store, home));
  return ToStatus(Judge(facts), facts, home.database);
}

absl::Status VouchKeeper::NameManifest(WalStore& store,
                                       const std::string& from) {
  ALPHEUS_RETURN_IF_ERROR(VouchIfUnmixed(store));
  const std::string directory = store.home().database;
  ALPHEUS_ASSIGN_OR_RETURN(std::optional<DirectoryVouch> vouch,
                           ReadDirectoryVouch(base_, directory));
  std::string text;
  if (!vouch || vouch->log != store.vouch() ||
      !rocksdb::ReadFileToString(&base_, from, &text).ok()) {
    return absl::OkStatus();
  }
  absl::string_view name = text;
  absl::ConsumeSuffix(&name, "\n");
  ALPHEUS_ASSIGN_OR_RETURN(const ManifestName now,
                           NamedManifest(base_, directory));
  vouch->manifest_was = now.name;
  vouch->manifest = {std::string(name), 0};
  return WriteDirectoryVouch(base_, directory, *vouch);
}

absl::Status VouchKeeper::ForgetOldManifest(WalStore& store) {
  const std::string directory = store.home().database;
  ALPHEUS_ASSIGN_OR_RETURN(std::optional<DirectoryVouch> vouch,
                           ReadDirectoryVouch(base_, directory));
  if (!vouch || vouch->log != store.vouch()) return absl::OkStatus();
  // CURRENT is durable before the file excludes other MANIFESTs.
  ALPHEUS_RETURN_IF_ERROR(SyncDirectory(base_, directory));
  vouch->manifest_was.clear();
  return WriteDirectoryVouch(base_, directory, *vouch);
}

void VouchKeeper::LeaveDirectory(WalStore& store) {
  if (store.has_failed()) return;
  const std::string directory = store.home().database;
  const absl::StatusOr<bool> is_there = HasDatabase(base_, directory);
  if (!is_there.ok()) return;
  if (!*is_there) {
    // Destroyed: the directory can be removed too; if not, no harm is done.
    if (ReplayableWal(store).empty()) {
      RemoveDirectoryVouch(base_, directory).IgnoreError();
    }
    return;
  }
  // A process that has lost the log must not write here.
  if (store.is_replicated()) return;
  const MutexLock lock(mutex_);
  const auto vouch = ReadDirectoryVouch(base_, directory);
  const auto manifest = NamedManifest(base_, directory);
  if (!vouch.ok() || !*vouch || !manifest.ok() ||
      manifest->name != (*vouch)->manifest.name) {
    return;
  }
  DirectoryVouch left = **vouch;
  left.manifest = *manifest;
  // The size is only a lower bound: on an error less is noticed, no more.
  WriteDirectoryVouch(base_, directory, left).IgnoreError();
}

}  // namespace alpheus::wal
