// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/uuid_text.h"

#include <cstdint>

namespace alpheus::quorum {

std::optional<Uuid> ParseUuid(std::string_view text) {
  Uuid id;
  int digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    uint64_t value = 0;
    if (c >= '0' && c <= '9') {
      value = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = static_cast<uint64_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      value = static_cast<uint64_t>(c - 'A') + 10;
    } else {
      return std::nullopt;
    }
    if (++digits > 32) return std::nullopt;
    id.high = id.high << 4 | id.low >> 60;
    id.low = id.low << 4 | value;
  }
  if (digits != 32) return std::nullopt;
  return id;
}

}  // namespace alpheus::quorum
