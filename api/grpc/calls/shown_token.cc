// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/calls/shown_token.h"

#include <grpcpp/support/string_ref.h>

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "api/grpc/access/crypto.h"

namespace alpheus::rpc {

Shown ShownIn(const grpc::CallbackServerContext& context,
              const Access& access) {
  if (!access.asks_for_tokens()) return std::nullopt;
  const auto [begin, end] =
      context.client_metadata().equal_range("authorization");
  if (begin == end || std::next(begin) != end) return std::nullopt;
  constexpr absl::string_view kScheme = "Bearer ";
  const absl::string_view text(begin->second.data(), begin->second.size());
  // The scheme in any case (RFC 7235).
  if (!absl::StartsWithIgnoreCase(text, kScheme)) return std::nullopt;
  return Sha256({text.data() + kScheme.size(), text.size() - kScheme.size()});
}

}  // namespace alpheus::rpc
