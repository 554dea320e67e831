// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/identity.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/pmem/config_file.h"

namespace alpheus::quorum {

absl::StatusOr<std::string> ParseIdentity(std::string_view text,
                                          std::string_view file) {
  const std::string line(
      absl::StripAsciiWhitespace({text.data(), text.size()}));
  const size_t colon = line.find(':');
  const bool is_good =
      line.size() <= kIdentityBytesMax && colon != std::string::npos &&
      colon != 0 && colon + 1 != line.size() &&
      line.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos;
  if (is_good) return line;
  return absl::InvalidArgumentError(absl::StrCat(
      "identity file ", absl::string_view(file.data(), file.size()),
      ": expected one line with name:password, of at most ", kIdentityBytesMax,
      " bytes. Write the line into it that the other nodes have"));
}

absl::StatusOr<std::string> LoadIdentity(const std::string& path) {
  constexpr ConfigFileKind kKind = {
      .name = "identity file",
      // The line's end is no part of it.
      .bytes_max = kIdentityBytesMax + 2,
      .readers = ReadableBy::kOwner,
      .if_missing = "It has name:password for ZooKeeper, the same on all nodes",
      .if_exposed = "give ZooKeeper another password"};
  ALPHEUS_ASSIGN_OR_RETURN(const std::string text, ReadConfigFile(path, kKind));
  return ParseIdentity(text, path);
}

}  // namespace alpheus::quorum
