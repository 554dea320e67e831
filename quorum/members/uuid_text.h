// SPDX-License-Identifier: Apache-2.0
// uuid_text: UUIDs as people write them.
//
// Thread safety: pure function.
#ifndef ALPHEUS_QUORUM_MEMBERS_UUID_TEXT_H_
#define ALPHEUS_QUORUM_MEMBERS_UUID_TEXT_H_

#include <optional>
#include <string_view>

#include "log/base/ids.h"

namespace alpheus::quorum {

// Returns a UUID of 32 hexadecimal digits, hyphens aside; nothing for other
// text.
std::optional<Uuid> ParseUuid(std::string_view text);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_UUID_TEXT_H_
