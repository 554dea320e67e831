// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_options.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "log/base/status_macros.h"

namespace alpheus::wal {
namespace {

constexpr absl::string_view kScheme = "alpheus:";

absl::Status Bad(absl::string_view key, absl::string_view value,
                 absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, "=", value, ": must be ", wanted));
}

absl::Status ParseNumber(absl::string_view key, absl::string_view value,
                         uint32_t& out) {
  if (absl::SimpleAtoi(value, &out)) return absl::OkStatus();
  return Bad(key, value, "a number below 2^32");
}

absl::Status ParseBytes(absl::string_view key, absl::string_view value,
                        uint64_t& out) {
  static constexpr std::array<std::pair<absl::string_view, int>, 3> kUnits = {
      {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}}};
  absl::string_view digits = value;
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (absl::ConsumeSuffix(&digits, unit)) shift = bits;
  }
  uint64_t number = 0;
  if (!absl::SimpleAtoi(digits, &number) ||
      number > std::numeric_limits<uint64_t>::max() >> shift) {
    return Bad(key, value, "bytes: 1048576, 64MiB, 1GiB");
  }
  out = number << shift;
  return absl::OkStatus();
}

absl::Status ParseBool(absl::string_view key, absl::string_view value,
                       bool& out) {
  if (value != "true" && value != "false") {
    return Bad(key, value, "true or false");
  }
  out = value == "true";
  return absl::OkStatus();
}

absl::Status ParsePath(absl::string_view key, absl::string_view value,
                       std::string& out) {
  if (!absl::StartsWith(value, "/")) return Bad(key, value, "an absolute path");
  out = std::string(value);
  return absl::OkStatus();
}

absl::Status SetOption(absl::string_view key, absl::string_view value,
                       WalOptions& options) {
  if (key == "path") return ParsePath(key, value, options.log.path);
  if (key == "create") return ParseBytes(key, value, options.create_bytes);
  if (key == "wal_dir") return ParsePath(key, value, options.wal_directory);
  if (key == "adopt") return ParseBool(key, value, options.adopt);
  if (key == "keep_wal") return ParseBool(key, value, options.keep_wal);
  if (key == "drop_wal") return ParseBool(key, value, options.drop_wal);
  if (key == "take_over") return ParsePath(key, value, options.take_over);
  if (key == "follow") return ParseBool(key, value, options.follow);
  if (key == "memtable_bytes") {
    return ParseBytes(key, value, options.memtable_bytes.emplace());
  }
  if (key == "stall_ms") return ParseNumber(key, value, options.stall_ms);
  if (key == "idle_force_us") {
    return ParseNumber(key, value, options.log.idle_force_us);
  }
  if (key == "exposure_records_max") {
    return ParseNumber(key, value, options.log.exposure_records_max);
  }
  ReplicationOptions& replication = options.log.replication;
  if (key == "cluster") return ParsePath(key, value, replication.cluster_file);
  if (key == "log") {
    replication.log_name = std::string(value);
    return absl::OkStatus();
  }
  if (key == "node") {
    uint32_t node = 0;
    ALPHEUS_RETURN_IF_ERROR(ParseNumber(key, value, node));
    replication.node = node;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no option is called `", key,
                   "`: there are path, create, wal_dir, adopt, keep_wal, "
                   "drop_wal, take_over, follow, "
                   "memtable_bytes, stall_ms, idle_force_us, "
                   "exposure_records_max, cluster, node, log and, "
                   "in a URI, file"));
}

absl::Status ReadFile(const std::string& path, WalOptions& options) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": can't be read"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return absl::UnavailableError(absl::StrCat(path, ": read"));
  const absl::Status parsed = ParseWalFile(text, options);
  if (parsed.ok()) return parsed;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", parsed.message()));
}

absl::Status SetFromUri(absl::string_view pair, WalOptions& options) {
  const std::pair<absl::string_view, absl::string_view> option =
      absl::StrSplit(pair, absl::MaxSplits('=', 1));
  if (option.first != "file") {
    return SetOption(option.first, option.second, options);
  }
  std::string path;
  ALPHEUS_RETURN_IF_ERROR(ParsePath("file", option.second, path));
  return ReadFile(path, options);
}

absl::Status CheckFolder(const WalOptions& options) {
  if (!options.is_folder) return absl::OkStatus();
  const ReplicationOptions& replication = options.log.replication;
  if (replication.cluster_file.empty() && replication.node == 0 &&
      options.wal_directory.empty() && options.take_over.empty() &&
      !options.follow) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      options.log.path,
      ": ends in / and so names a folder of logs, one for each database: that "
      "goes without cluster, node, wal_dir, take_over and follow. Name the log "
      "of one database"));
}

absl::Status CheckTogether(const WalOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(CheckFolder(options));
  const ReplicationOptions& replication = options.log.replication;
  if (options.log.path.empty() && replication.cluster_file.empty()) {
    return absl::InvalidArgumentError(
        "neither a path nor a cluster: where is the log? "
        "alpheus:///mnt/pmem/wal or alpheus:?cluster=/etc/cluster.toml&node=1");
  }
  if (options.follow) {
    if (!options.adopt && !options.keep_wal && !options.drop_wal &&
        options.create_bytes == 0 && options.take_over.empty()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        "follow=true only reads: it goes without create, adopt, keep_wal, "
        "drop_wal and take_over");
  }
  if (options.keep_wal && options.drop_wal) {
    return absl::InvalidArgumentError(
        "keep_wal and drop_wal exclude each other");
  }
  if (replication.cluster_file.empty() != (replication.node == 0)) {
    return absl::InvalidArgumentError("cluster and node (from 1) go together");
  }
  if (options.create_bytes != 0 && !replication.cluster_file.empty()) {
    return absl::InvalidArgumentError(
        "create makes a local log; one of a cluster is made once by "
        "`alpheus format --cluster`");
  }
  if (!options.take_over.empty() &&
      (options.adopt || replication.cluster_file.empty())) {
    return absl::InvalidArgumentError(
        "take_over is for a log of a cluster, and goes without adopt: it takes "
        "the database whose WAL the log holds");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseWalFile(const std::string& text, WalOptions& options) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", line, "` is not `key = value`"));
    }
    ALPHEUS_RETURN_IF_ERROR(SetOption(
        absl::StripTrailingAsciiWhitespace(line.substr(0, equals)),
        absl::StripLeadingAsciiWhitespace(line.substr(equals + 1)), options));
  }
  return absl::OkStatus();
}

absl::StatusOr<WalOptions> ParseWalUri(const std::string& uri) {
  WalOptions options;
  absl::string_view rest = uri;
  if (!absl::ConsumePrefix(&rest, kScheme)) {
    return absl::InvalidArgumentError(
        absl::StrCat(uri, ": does not begin with ", kScheme));
  }
  const size_t question = rest.find('?');
  absl::string_view path = rest.substr(0, question);
  absl::ConsumePrefix(&path, "//");
  if (!path.empty()) {
    if (!absl::StartsWith(path, "/")) {
      return Bad("path", path,
                 absl::StrCat("an absolute path: alpheus:///", path));
    }
    options.log.path = std::string(path);
  }
  if (question != absl::string_view::npos) {
    for (absl::string_view pair :
         absl::StrSplit(rest.substr(question + 1), '&')) {
      ALPHEUS_RETURN_IF_ERROR(SetFromUri(pair, options));
    }
  }
  options.is_folder = absl::EndsWith(options.log.path, "/");
  ALPHEUS_RETURN_IF_ERROR(CheckTogether(options));
  return options;
}

}  // namespace alpheus::wal
