// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/access/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/grpc/access/crypto.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/pmem/config_file.h"
#include "log/pmem/file_error.h"
#include "log/pmem/new_file.h"
#include "quorum/cluster/table_reader.h"
#include "quorum/members/log_id.h"

namespace alpheus::rpc {
namespace {

using quorum::AbslView;
using quorum::TableReader;

struct RoleName {
  Role role;
  const char* name;
};
constexpr std::array<RoleName, 3> kRoleNames = {{{Role::kAppend, "append"},
                                                 {Role::kRead, "read"},
                                                 {Role::kAdmin, "admin"}}};

constexpr ConfigFileKind kTokensFile = {.name = "tokens file",
                                        // No list of tokens is larger.
                                        .bytes_max = size_t{4} << 20,
                                        .readers = ReadableBy::kOwner,
                                        .if_exposed = "make new tokens"};

constexpr size_t kTokenBytes = 32;
constexpr size_t kTokenNameBytesMax = 64;
constexpr uint64_t kRateMax = uint64_t{1} << 40;
// Tools that look for secrets in the wrong place find it by this.
constexpr char kTokenPrefix[] = "alph_";

std::string_view Why(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

// Names stand in messages and in files.
absl::Status CheckTokenName(const std::string& name) {
  const bool is_good = !name.empty() && name.size() <= kTokenNameBytesMax &&
                       std::ranges::all_of(name, [](unsigned char c) {
                         return absl::ascii_isalnum(c) || c == '.' ||
                                c == '_' || c == '-' || c == '@';
                       });
  if (is_good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", absl::CHexEscape(name),
      "\" is no name of a token. A name has 1 to ", kTokenNameBytesMax,
      " letters, digits, '.', '_', '-' and '@'"));
}

absl::StatusOr<quorum::Digest> ReadDigest(const TableReader& table) {
  std::string text;
  ALPHEUS_RETURN_IF_ERROR(table.Read("sha256", text));
  const bool is_good = text.size() == 2 * quorum::kDigestBytes &&
                       std::ranges::all_of(text, [](unsigned char c) {
                         return absl::ascii_isxdigit(c);
                       });
  if (!is_good) {
    // The text may be the token itself, so it is not shown.
    return table.ErrorOf(
        "sha256", absl::StrCat("\"sha256\" is no digest. Write the ",
                               2 * quorum::kDigestBytes,
                               " hexadecimal digits that `alpheus token new` "
                               "prints"));
  }
  const std::string bytes = absl::HexStringToBytes(text);
  quorum::Digest digest{};
  std::ranges::copy(AsBytes(bytes), digest.begin());
  return digest;
}

// Returns the texts of a list, at least one.
absl::StatusOr<std::vector<std::string>> ReadTexts(const TableReader& reader,
                                                   const toml::table& table,
                                                   std::string_view key) {
  const toml::array* const list = table.get(key)->as_array();
  std::vector<std::string> texts;
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const auto* const text = list->get(i)->as_string();
    if (text != nullptr) texts.push_back(text->get());
  }
  if (list != nullptr && !texts.empty() && texts.size() == list->size()) {
    return texts;
  }
  return reader.ErrorOf(
      key, absl::StrCat("\"", AbslView(key),
                        "\" is not a list of strings with at least one"));
}

absl::StatusOr<int64_t> ReadExpiry(const TableReader& reader) {
  std::optional<toml::date_time> found;
  toml::date_time value;
  if (reader.Has("expires")) {
    ALPHEUS_RETURN_IF_ERROR(reader.Read("expires", value));
    found = value;
  }
  if (!found) return std::numeric_limits<int64_t>::max();
  if (!found->offset) {
    return reader.ErrorOf("expires",
                          "\"expires\" has no time zone. Write one behind it, "
                          "as in 2027-01-31T00:00:00Z");
  }
  const std::chrono::sys_days day(
      std::chrono::year_month_day(std::chrono::year(found->date.year),
                                  std::chrono::month(found->date.month),
                                  std::chrono::day(found->date.day)));
  const int64_t hours =
      int64_t{day.time_since_epoch().count()} * 24 + found->time.hour;
  const int64_t minutes =
      hours * 60 + found->time.minute - found->offset->minutes;
  return minutes * 60 + found->time.second;
}

absl::StatusOr<TokenEntry> ReadToken(std::string_view file,
                                     const toml::table& table) {
  const TableReader reader(file, table);
  ALPHEUS_RETURN_IF_ERROR(
      reader.CheckKeys({"name", "sha256", "roles", "logs", "expires",
                        "requests_per_second", "bytes_per_second"}));
  for (const char* key : {"name", "sha256", "roles", "logs"}) {
    ALPHEUS_RETURN_IF_ERROR(reader.Require(key));
  }
  TokenEntry entry;
  ALPHEUS_RETURN_IF_ERROR(reader.Read("name", entry.name));
  if (const absl::Status named = CheckTokenName(entry.name); !named.ok()) {
    return reader.ErrorOf("name", Why(named));
  }
  ALPHEUS_ASSIGN_OR_RETURN(entry.sha256, ReadDigest(reader));
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<std::string> roles,
                           ReadTexts(reader, table, "roles"));
  for (const std::string& name : roles) {
    const absl::StatusOr<Role> role = ParseRole(name);
    if (!role.ok()) return reader.ErrorOf("roles", Why(role.status()));
    entry.roles = entry.roles | *role;
  }
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<std::string> logs,
                           ReadTexts(reader, table, "logs"));
  for (const std::string& log : logs) {
    if (log == "*") {
      entry.is_for_all_logs = true;
      continue;
    }
    const absl::Status named = quorum::CheckLogName(log);
    if (!named.ok()) return reader.ErrorOf("logs", Why(named));
    entry.logs.insert(log);
  }
  ALPHEUS_ASSIGN_OR_RETURN(entry.expires_s, ReadExpiry(reader));
  ALPHEUS_RETURN_IF_ERROR(
      reader.ReadNumber("requests_per_second", kRateMax, entry.rates.requests));
  ALPHEUS_RETURN_IF_ERROR(
      reader.ReadNumber("bytes_per_second", kRateMax, entry.rates.bytes));
  return entry;
}

std::string ListOf(const std::vector<std::string>& texts) {
  return absl::StrCat("[\"", absl::StrJoin(texts, "\", \""), "\"]");
}

}  // namespace

std::string Roles::ToString() const {
  std::string text;
  for (const RoleName& each : kRoleNames) {
    if (!Meets(each.role)) continue;
    absl::StrAppend(&text, text.empty() ? "" : " or ", each.name);
  }
  return text;
}

absl::StatusOr<Role> ParseRole(std::string_view name) {
  for (const RoleName& each : kRoleNames) {
    if (name == each.name) return each.role;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", absl::CHexEscape(AbslView(name)),
                   "\" is no role. Roles are append, read and admin"));
}

absl::StatusOr<std::vector<TokenEntry>> ParseTokenFile(std::string_view text,
                                                       std::string_view name) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) return quorum::ParseError(name, parsed.error());
  const TableReader root(name, parsed.table());
  ALPHEUS_RETURN_IF_ERROR(root.CheckKeys({"token"}));
  std::vector<TokenEntry> entries;
  if (!root.Has("token")) return entries;
  const toml::array* const list = parsed.table().get("token")->as_array();
  if (list == nullptr) {
    return root.ErrorOf("token", "\"token\" is not a list of [[token]] tables");
  }
  for (const toml::node& node : *list) {
    const toml::table* const table = node.as_table();
    if (table == nullptr) {
      return root.ErrorAt(node.source(), "a token is a [[token]] table");
    }
    ALPHEUS_ASSIGN_OR_RETURN(TokenEntry entry, ReadToken(name, *table));
    for (const TokenEntry& other : entries) {
      const bool has_name = other.name == entry.name;
      if (!has_name && other.sha256 != entry.sha256) continue;
      return root.ErrorAt(
          node.source(),
          absl::StrCat("token \"", entry.name, "\" has the ",
                       has_name ? "name" : "digest", " of token \"", other.name,
                       "\" above. Give each token one entry"));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::StatusOr<std::vector<TokenEntry>> LoadTokenFile(const std::string& path) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string text,
                           ReadConfigFile(path, kTokensFile));
  return ParseTokenFile(text, path);
}

absl::StatusOr<NewToken> MakeToken(const std::string& name,
                                   const std::vector<std::string>& roles,
                                   const std::vector<std::string>& logs,
                                   const std::string& expires,
                                   RandomSource& random, const Rates& rates) {
  ALPHEUS_RETURN_IF_ERROR(CheckTokenName(name));
  for (const std::string& role : roles) {
    ALPHEUS_RETURN_IF_ERROR(ParseRole(role).status());
  }
  for (const std::string& log : logs) {
    if (log != "*") ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(log));
  }
  NewToken made = {kTokenPrefix, {}};
  for (size_t i = 0; i < kTokenBytes / sizeof(uint64_t); ++i) {
    absl::StrAppend(&made.token, absl::Hex(random.Next(), absl::kZeroPad16));
  }
  const quorum::Digest digest = Sha256(made.token);
  made.entry = absl::StrCat("[[token]]\nname = \"", name, "\"\nsha256 = \"",
                            absl::BytesToHexString(AbslView(AsText(digest))),
                            "\"\nroles = ", ListOf(roles),
                            "\nlogs = ", ListOf(logs), "\n");
  if (!expires.empty()) {
    absl::StrAppend(&made.entry, "expires = ", expires, "\n");
  }
  if (rates.requests != 0) {
    absl::StrAppend(&made.entry, "requests_per_second = ", rates.requests,
                    "\n");
  }
  if (rates.bytes != 0) {
    absl::StrAppend(&made.entry, "bytes_per_second = ", rates.bytes, "\n");
  }
  // As the server will read it.
  ALPHEUS_RETURN_IF_ERROR(ParseTokenFile(made.entry, "the new token").status());
  return made;
}

absl::Status AddToTokenFile(const std::string& path, const std::string& entry) {
  struct stat found{};
  const bool is_there = stat(path.c_str(), &found) == 0;
  // A file that was cut off is not used, and may be replaced.
  const auto use_of = [](std::span<std::byte> /*bytes*/, bool /*is_device*/) {
    return RegionUse::kNothing;
  };
  constexpr unsigned kMode = S_IRUSR | S_IWUSR;
  // With its lock: what others add or take out meanwhile is not lost.
  ALPHEUS_ASSIGN_OR_RETURN(
      NewFile file, is_there ? NewFile::OpenToReplace(path, use_of, kMode)
                             : NewFile::Open(path, use_of, kMode));
  std::string text;
  if (is_there) {
    ALPHEUS_ASSIGN_OR_RETURN(text, ReadConfigFile(path, kTokensFile));
    if (!text.empty()) text += text.ends_with('\n') ? "\n" : "\n\n";
  }
  text += entry;
  ALPHEUS_RETURN_IF_ERROR(ParseTokenFile(text, path).status());
  // Else root would take the file away from the node's user.
  if (is_there && fchown(file.fd(), found.st_uid, found.st_gid) != 0) {
    return OtherFileError(
        absl::StrCat("tokens file ", path, " can't be given to its owner"),
        errno);
  }
  ALPHEUS_RETURN_IF_ERROR(WriteConfigFile(file.fd(), text, path, kTokensFile));
  return file.Publish();
}

}  // namespace alpheus::rpc
