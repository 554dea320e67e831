// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/log_group.h"

#include "absl/status/statusor.h"
#include "log/base/mix.h"
#include "recovery/protocol/client_messages.h"
#include "recovery/protocol/messages.h"

namespace alpheus::recovery {

uint32_t GroupOf(Uuid log_id) {
  return static_cast<uint32_t>(Mix(log_id.high, log_id.low) % kLogGroups);
}

std::optional<uint32_t> GroupOfHello(std::string_view private_data) {
  if (IsClientHello(private_data)) {
    const absl::StatusOr<ClientHello> client = DecodeClientHello(private_data);
    if (!client.ok()) return std::nullopt;
    return GroupOf(client->log_id);
  }
  const absl::StatusOr<Hello> hello = DecodeHello(private_data);
  if (!hello.ok()) return std::nullopt;
  return GroupOf(hello->log_id);
}

}  // namespace alpheus::recovery
