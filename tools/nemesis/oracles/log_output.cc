// SPDX-License-Identifier: Apache-2.0
#include "tools/nemesis/oracles/log_output.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace alpheus::demo {
namespace {

// Splits the output of `cat --framing len32`. Errors: DataLoss (cut off).
absl::StatusOr<std::vector<std::string>> SplitLen32(const std::string& bytes) {
  std::vector<std::string> payloads;
  size_t at = 0;
  while (at < bytes.size()) {
    uint32_t length = 0;
    if (bytes.size() - at < sizeof(length)) break;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    at += sizeof(length);
    if (bytes.size() - at < length) break;
    payloads.push_back(bytes.substr(at, length));
    at += length;
  }
  if (at == bytes.size()) return payloads;
  return absl::DataLossError("cat --framing len32: output is cut off");
}

// Where a record stands.
struct Place {
  uint64_t lsn = 0;
  uint64_t epoch = 0;
};

// Places of the records that have content, from `cat --json`.
absl::StatusOr<std::vector<Place>> PlacesOf(const std::string& lines) {
  std::vector<Place> places;
  size_t begin = 0;
  while (begin < lines.size()) {
    const size_t end = std::min(lines.find('\n', begin), lines.size());
    const nlohmann::json record = nlohmann::json::parse(
        lines.begin() + static_cast<ptrdiff_t>(begin),
        lines.begin() + static_cast<ptrdiff_t>(end), nullptr, false);
    begin = end + 1;
    if (!record.is_object() || !record.contains("lsn")) {
      return absl::DataLossError("cat --json: a line is no record");
    }
    const std::string state = record.value("state", "");
    if (state != "durable" && state != "completed") continue;
    places.push_back(
        {record["lsn"].get<uint64_t>(), record.value("epoch", uint64_t{0})});
  }
  return places;
}

// Errors: DataLoss (no object, or it has no such member).
absl::StatusOr<nlohmann::json> MemberOf(const std::string& json,
                                        const std::string& member) {
  nlohmann::json object = nlohmann::json::parse(json, nullptr, false);
  if (object.is_object() && object.contains(member)) {
    return std::move(object[member]);
  }
  return absl::DataLossError(absl::StrCat("--json: no ", member));
}

struct Columns {
  std::vector<std::string> payloads;
  std::vector<Place> places;
};

absl::StatusOr<Columns> ParseColumns(const std::string& framed,
                                     const std::string& json_lines) {
  Columns columns;
  ALPHEUS_ASSIGN_OR_RETURN(columns.payloads, SplitLen32(framed));
  ALPHEUS_ASSIGN_OR_RETURN(columns.places, PlacesOf(json_lines));
  return columns;
}

std::vector<RecoveredRecord> Join(Columns columns) {
  std::vector<RecoveredRecord> records;
  const size_t count = std::min(columns.places.size(), columns.payloads.size());
  for (size_t i = 0; i < count; ++i) {
    records.push_back({columns.places[i].lsn, std::move(columns.payloads[i]),
                       columns.places[i].epoch});
  }
  return records;
}

}  // namespace

absl::StatusOr<std::vector<RecoveredRecord>> ParseRecords(
    const std::string& framed, const std::string& json_lines) {
  ALPHEUS_ASSIGN_OR_RETURN(Columns columns, ParseColumns(framed, json_lines));
  if (columns.payloads.size() == columns.places.size()) {
    return Join(std::move(columns));
  }
  return absl::DataLossError(absl::StrCat("cat gives ", columns.payloads.size(),
                                          " payloads, cat --json ",
                                          columns.places.size(), " records"));
}

absl::StatusOr<std::vector<RecoveredRecord>> ParseCommonRecords(
    const std::string& framed, const std::string& json_lines) {
  ALPHEUS_ASSIGN_OR_RETURN(Columns columns, ParseColumns(framed, json_lines));
  return Join(std::move(columns));
}

absl::StatusOr<uint64_t> NumberIn(const std::string& json,
                                  const std::string& member) {
  ALPHEUS_ASSIGN_OR_RETURN(const nlohmann::json value, MemberOf(json, member));
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  return absl::DataLossError(absl::StrCat("--json: ", member, " is no number"));
}

absl::StatusOr<std::string> TextIn(const std::string& json,
                                   const std::string& member) {
  ALPHEUS_ASSIGN_OR_RETURN(const nlohmann::json value, MemberOf(json, member));
  if (value.is_string()) return value.get<std::string>();
  return absl::DataLossError(absl::StrCat("--json: ", member, " is no text"));
}

}  // namespace alpheus::demo
