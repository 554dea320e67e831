// SPDX-License-Identifier: Apache-2.0
#include "api/rocksdb/store/wal_paths.h"

#include <algorithm>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace alpheus::wal {
namespace {

// Target of a marker: longer than a name can be, so that opening it fails
// (ENAMETOOLONG). RocksDB's secondaries ignore a file that is merely missing.
const std::string& Marker() {
  constexpr size_t kNameBytesMax = 255;
  static const std::string* const marker = [] {
    auto* text = new std::string(
        "alpheus: in a log, open the database with libalpheus_rocksdb ");
    text->append(kNameBytesMax, '.');
    return text;
  }();
  return *marker;
}

}  // namespace

std::string Canonical(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(
      path.empty() ? std::filesystem::path(".") : path, error);
  // A marker can't be followed: its directory can.
  if (error && path.has_filename()) {
    return absl::StrCat(Canonical(path.parent_path()), "/",
                        path.filename().string());
  }
  if (error) canonical = std::filesystem::absolute(path, error);
  std::string text = canonical.lexically_normal().string();
  if (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool IsWalName(absl::string_view name) {
  return absl::ConsumeSuffix(&name, ".log") && !name.empty() &&
         std::ranges::all_of(name, absl::ascii_isdigit);
}

bool IsTableName(absl::string_view name) {
  return absl::EndsWith(name, ".sst") || absl::EndsWith(name, ".ldb") ||
         absl::EndsWith(name, ".blob");
}

bool MayNameAWal(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return path.find(".log", slash == absl::string_view::npos ? 0 : slash) !=
         absl::string_view::npos;
}

std::optional<std::string> Below(absl::string_view directory,
                                 absl::string_view path) {
  if (path == directory) return "";
  if (!absl::ConsumePrefix(&path, directory) ||
      !absl::ConsumePrefix(&path, "/")) {
    return std::nullopt;
  }
  return std::string(path);
}

bool IsMarker(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_symlink(path, error) &&
         !std::filesystem::exists(path, error);
}

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
  std::filesystem::create_symlink(Marker(), path, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(path.string(), ": create: ", error.message()));
}

}  // namespace alpheus::wal
