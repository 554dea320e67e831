// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/log_id.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "log/base/mix.h"

namespace alpheus::quorum {
namespace {

bool MayStand(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalnum(byte) || c == '.' || c == '_' || c == '-';
}

uint64_t Fold(uint64_t seed, std::string_view name) {
  for (const char c : name) seed = Mix(seed, static_cast<unsigned char>(c));
  return Mix(seed, name.size());
}

}  // namespace

absl::Status CheckLogName(std::string_view name) {
  const bool good = !name.empty() && name.size() <= kLogNameBytesMax &&
                    absl::ascii_isalnum(static_cast<unsigned char>(name[0])) &&
                    std::all_of(name.begin(), name.end(), MayStand);
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "log name '", std::string(name.substr(0, kLogNameBytesMax)),
      "': must be 1 to ", kLogNameBytesMax,
      " letters, digits, '.', '_' and '-', the first a letter or a digit"));
}

Uuid LogIdOf(Uuid cluster_id, std::string_view name) {
  Uuid id;
  id.high = Fold(Mix(cluster_id.high, cluster_id.low), name);
  // Sets a bit, so that the identity is never zero.
  id.low = Fold(Mix(id.high, cluster_id.high), name) | 1;
  return id;
}

}  // namespace alpheus::quorum
