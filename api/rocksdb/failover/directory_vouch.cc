// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/failover/directory_vouch.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "api/rocksdb/store/manifest_file.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

using rocksdb::IOOptions;
using rocksdb::IOStatus;

constexpr absl::string_view kFirstLine = "alpheus vouch 1";

absl::Status Unavailable(const std::string& path, const IOStatus& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": ", status.ToString()));
}

std::string PathIn(const std::string& directory) {
  return absl::StrCat(directory, "/", kVouchFileName);
}

// Returns nothing if the file does not exist.
absl::StatusOr<std::optional<std::string>> ReadIfThere(
    rocksdb::FileSystem& fs, const std::string& path) {
  const IOStatus found = fs.FileExists(path, IOOptions(), nullptr);
  if (found.IsNotFound()) return std::nullopt;
  ALPHEUS_RETURN_IF_ERROR(Unavailable(path, found));
  std::string text;
  ALPHEUS_RETURN_IF_ERROR(
      Unavailable(path, rocksdb::ReadFileToString(&fs, path, &text)));
  return text;
}

// Decodes one line: a key and two words.
bool TakeLine(const std::vector<std::string>& words, DirectoryVouch& vouch) {
  if (words.size() != 3) return false;
  const std::string& word = words[1];
  uint64_t number = 0;
  if (!absl::SimpleAtoi(words[2], &number)) return false;
  if (words[0] == "log") {
    vouch.log = {word, number};
  } else if (words[0] == "log-was") {
    vouch.log_was = WalVouch{word == "-" ? "" : word, number};
  } else if (words[0] == "manifest") {
    vouch.manifest = {word, number};
  } else if (words[0] == "manifest-was") {
    vouch.manifest_was = word;
  } else if (words[0] == "identity") {
    vouch.identity = word;
  } else {
    return false;
  }
  return true;
}

bool Names(const DirectoryVouch& vouch, const ManifestName& current) {
  if (vouch.manifest.name.empty() || current.name.empty()) return true;
  if (current.name == vouch.manifest_was) return true;
  return current.name == vouch.manifest.name &&
         current.bytes >= vouch.manifest.bytes;
}

// Returns the verdict if the log vouches.
VouchVerdict Compare(const VouchFacts& facts) {
  if (!facts.directory) {
    if (!facts.has_database) return VouchVerdict::kNotYet;
    return facts.has_data ? VouchVerdict::kDirectoryReplaced
                          : VouchVerdict::kNothingToMix;
  }
  const DirectoryVouch& directory = *facts.directory;
  if (directory.log == facts.log || directory.log_was == facts.log) {
    return Names(directory, facts.manifest) ? VouchVerdict::kVouched
                                            : VouchVerdict::kManifestReplaced;
  }
  if (directory.log.id != facts.log.id) return VouchVerdict::kOtherLog;
  if (directory.log.generation > facts.log.generation) {
    return VouchVerdict::kLogOlder;
  }
  // Also if the log has no data: it may have had data that this copy needs
  // (DV4).
  return VouchVerdict::kDirectoryOlder;
}

// Returns the verdict if the log does not vouch.
VouchVerdict CompareUnvouched(const VouchFacts& facts) {
  const bool is_first =
      !facts.directory || facts.directory->log_was == WalVouch();
  if (!is_first && facts.has_data) return VouchVerdict::kLogOlder;
  // A database that was open has a WAL file. If its name is missing, it would
  // be opened without it.
  if (!is_first && facts.has_database && !facts.has_wal_name) {
    return VouchVerdict::kLogOlder;
  }
  // A plugin that did not vouch put a marker for each file before it had data.
  if (facts.has_database && facts.has_data && !facts.has_marker) {
    return VouchVerdict::kDirectoryReplaced;
  }
  return VouchVerdict::kNotYet;
}

// Returns whether the directory is from before the take-over in the log.
bool WasLeft(const VouchFacts& facts) {
  if (facts.left.database.empty()) return false;
  if (!facts.directory) {
    return facts.has_left_name && facts.has_database && facts.has_marker &&
           facts.left.vouch.id.empty();
  }
  const WalVouch& directory = facts.directory->log;
  if (directory.id != facts.left.vouch.id) return false;
  return facts.has_left_name ||
         (directory != facts.log &&
          directory.generation <= facts.left.vouch.generation);
}

// DV6.
VouchVerdict CompareElsewhere(const VouchFacts& facts, VouchVerdict compared) {
  if (facts.elsewhere.empty()) return compared;
  if (WasLeft(facts)) return VouchVerdict::kLeft;
  const bool is_empty = !facts.has_database && !facts.has_marker;
  if (compared <= VouchVerdict::kNothingToMix && facts.has_data && is_empty) {
    return VouchVerdict::kNothingHere;
  }
  return compared;
}

constexpr absl::string_view kWords =
    "Nothing was changed. If the database of this WAL was moved or copied, to "
    "another machine say, and used elsewhere, open it there: it needs this "
    "WAL. To keep this directory's state, open it once for writing with "
    "drop_wal=true: that drops the WAL in the log for good. To replay the "
    "log's WAL over it nevertheless, open it once with keep_wal=true";

// Returns the remedy where an option would take the WAL from a database that
// may still exist.
std::string WordsElsewhere(const VouchFacts& facts) {
  return absl::StrCat(
      "Nothing was changed. This log is that of the database ", facts.elsewhere,
      ": open that one. Give this directory a log of its own, or delete it if "
      "nobody needs it");
}

std::string Describe(const ManifestName& manifest) {
  return absl::StrCat(manifest.name, " of ", manifest.bytes, " bytes");
}

}  // namespace

std::string EncodeDirectoryVouch(const DirectoryVouch& vouch) {
  std::string text = absl::StrCat(kFirstLine, "\nlog ", vouch.log.id, " ",
                                  vouch.log.generation, "\n");
  if (vouch.log_was) {
    const std::string& id = vouch.log_was->id;
    absl::StrAppend(&text, "log-was ", id.empty() ? "-" : id, " ",
                    vouch.log_was->generation, "\n");
  }
  if (!vouch.manifest.name.empty()) {
    absl::StrAppend(&text, "manifest ", vouch.manifest.name, " ",
                    vouch.manifest.bytes, "\n");
  }
  if (!vouch.manifest_was.empty()) {
    absl::StrAppend(&text, "manifest-was ", vouch.manifest_was, " 0\n");
  }
  if (!vouch.identity.empty()) {
    absl::StrAppend(&text, "identity ", vouch.identity, " 0\n");
  }
  return text;
}

std::optional<DirectoryVouch> DecodeDirectoryVouch(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  // An interrupted write has no last line feed.
  if (lines.size() < 3 || lines.front() != kFirstLine ||
      !lines.back().empty()) {
    return std::nullopt;
  }
  DirectoryVouch vouch;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    if (!TakeLine(absl::StrSplit(lines[i], ' '), vouch)) return std::nullopt;
  }
  if (vouch.log.id.empty()) return std::nullopt;
  return vouch;
}

absl::StatusOr<std::optional<DirectoryVouch>> ReadDirectoryVouch(
    rocksdb::FileSystem& fs, const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                           ReadIfThere(fs, PathIn(directory)));
  if (!text) return std::nullopt;
  return DecodeDirectoryVouch(*text);
}

absl::Status WriteDirectoryVouch(rocksdb::FileSystem& fs,
                                 const std::string& directory,
                                 const DirectoryVouch& vouch) {
  const std::string path = PathIn(directory);
  const std::string made = path + ".tmp";
  ALPHEUS_RETURN_IF_ERROR(Unavailable(
      made, rocksdb::WriteStringToFile(&fs, EncodeDirectoryVouch(vouch), made,
                                       /*should_sync=*/true)));
  ALPHEUS_RETURN_IF_ERROR(
      Unavailable(path, fs.RenameFile(made, path, IOOptions(), nullptr)));
  return SyncDirectory(fs, directory);
}

absl::Status SyncDirectory(rocksdb::FileSystem& fs,
                           const std::string& directory) {
  std::unique_ptr<rocksdb::FSDirectory> opened;
  ALPHEUS_RETURN_IF_ERROR(Unavailable(
      directory, fs.NewDirectory(directory, IOOptions(), &opened, nullptr)));
  return Unavailable(directory, opened->Fsync(IOOptions(), nullptr));
}

absl::Status RemoveDirectoryVouch(rocksdb::FileSystem& fs,
                                  const std::string& directory) {
  const std::string path = PathIn(directory);
  const IOStatus found = fs.FileExists(path, IOOptions(), nullptr);
  if (found.IsNotFound()) return absl::OkStatus();
  return Unavailable(path, fs.DeleteFile(path, IOOptions(), nullptr));
}

absl::StatusOr<ManifestName> NamedManifest(rocksdb::FileSystem& fs,
                                           const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                           ReadIfThere(fs, directory + "/CURRENT"));
  absl::string_view name = text ? absl::string_view(*text) : "";
  absl::ConsumeSuffix(&name, "\n");
  ManifestName manifest{std::string(name)};
  if (!IsManifestName(manifest.name)) return ManifestName();
  const std::string path = absl::StrCat(directory, "/", name);
  // RocksDB reports a missing one.
  if (!fs.GetFileSize(path, IOOptions(), &manifest.bytes, nullptr).ok()) {
    return ManifestName();
  }
  return manifest;
}

absl::StatusOr<ManifestName> SyncedManifest(rocksdb::FileSystem& fs,
                                            const std::string& directory) {
  // First its size: later bytes are not covered.
  ALPHEUS_ASSIGN_OR_RETURN(ManifestName manifest, NamedManifest(fs, directory));
  if (manifest.name.empty()) return manifest;
  const std::string path = absl::StrCat(directory, "/", manifest.name);
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  ALPHEUS_RETURN_IF_ERROR(Unavailable(
      path, fs.NewRandomRWFile(path, rocksdb::FileOptions(), &file, nullptr)));
  ALPHEUS_RETURN_IF_ERROR(Unavailable(path, file->Fsync(IOOptions(), nullptr)));
  return manifest;
}

absl::StatusOr<std::string> DatabaseIdentity(rocksdb::FileSystem& fs,
                                             const std::string& directory) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::optional<std::string> text,
                           ReadIfThere(fs, directory + "/IDENTITY"));
  std::string identity = text.value_or("");
  absl::StripAsciiWhitespace(&identity);
  // The file has room for one word only.
  const bool is_word = std::ranges::none_of(identity, [](char c) {
    return absl::ascii_isspace(static_cast<unsigned char>(c));
  });
  return is_word ? identity : "";
}

bool IsOf(const DirectoryVouch& vouch, const std::string& identity) {
  // RocksDB draws an IDENTITY where there is none (DV5).
  return vouch.identity.empty() || identity.empty() ||
         vouch.identity == identity;
}

VouchVerdict Judge(const VouchFacts& facts) {
  if (facts.directory && !IsOf(*facts.directory, facts.identity)) {
    return VouchVerdict::kOtherDatabase;
  }
  const VouchVerdict compared = CompareElsewhere(
      facts, facts.log.id.empty() ? CompareUnvouched(facts) : Compare(facts));
  if (compared > VouchVerdict::kNothingToMix) return compared;
  if (!facts.twice.empty() && compared != VouchVerdict::kNothingToMix) {
    return VouchVerdict::kWalTwice;
  }
  return compared;
}

absl::Status ToStatus(VouchVerdict verdict, const VouchFacts& facts,
                      const std::string& directory) {
  const std::string words =
      facts.elsewhere.empty() ? std::string(kWords) : WordsElsewhere(facts);
  const auto refused = [&](const auto&... found) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, ": ", found..., ". ", words));
  };
  switch (verdict) {
    case VouchVerdict::kVouched:
    case VouchVerdict::kNotYet:
    case VouchVerdict::kNothingToMix:
      return absl::OkStatus();
    case VouchVerdict::kDirectoryReplaced:
      return refused(
          "the database was put here without the plugin, by a restore or a "
          "copy, and the log has the WAL of ",
          facts.elsewhere.empty() ? "the one that was here before"
                                  : "another one");
    case VouchVerdict::kDirectoryOlder:
      return refused("this copy of the database is of generation ",
                     facts.directory->log.generation,
                     ", and the log has the WAL of generation ",
                     facts.log.generation,
                     ": WAL files that the copy needs may be gone");
    case VouchVerdict::kLogOlder:
      return refused(
          "the log is an older copy, or what was salvaged of a damaged one: "
          "the database has gone on since with a newer one. If that one "
          "is there, put it back; without it the last writes are lost");
    case VouchVerdict::kOtherLog:
      return absl::FailedPreconditionError(absl::StrCat(
          directory,
          ": the WAL of this database is in another log, and this one has that "
          "of another database, or of a copy of this one that has gone on "
          "since. Nothing was changed. Name the right log"));
    case VouchVerdict::kManifestReplaced:
      return refused("CURRENT names ", Describe(facts.manifest),
                     ", and the plugin left ",
                     Describe(facts.directory->manifest),
                     ": the tables were replaced, or the database was opened "
                     "without the plugin");
    case VouchVerdict::kOtherDatabase:
      return refused("IDENTITY says ", facts.identity,
                     ", and the file ALPHEUS here is that of ",
                     facts.directory->identity,
                     ": one of them came from another database, or this one "
                     "was repaired without the plugin. If its own file is "
                     "somewhere, put it back");
    case VouchVerdict::kWalTwice:
      return refused(facts.twice,
                     " is a plain file, and is also in the log. If the one in "
                     "the log is right, move the plain one away");
    case VouchVerdict::kLeft:
      return absl::FailedPreconditionError(absl::StrCat(
          directory,
          ": this directory was left by a take_over: its database "
          "went on in ",
          facts.elsewhere,
          ", and this log is that one's. "
          "Nothing was changed. Open it there. Delete this directory when no "
          "process has it open"));
    case VouchVerdict::kNothingHere:
      return absl::FailedPreconditionError(absl::StrCat(
          directory, ": has no database, and this log is that of the database ",
          facts.elsewhere,
          " and has its WAL. Nothing was changed. Give each "
          "database a log of its own"));
  }
  return absl::InternalError("no such verdict");
}

}  // namespace alpheus::wal
