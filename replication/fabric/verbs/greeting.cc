// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/greeting.h"

#include <cstring>

#include "log/base/check.h"

namespace alpheus::fabric::verbs {
namespace {

struct Header {
  Calling calling;
  uint32_t kind = 0;
  uint32_t private_bytes = 0;
  uint64_t message_bytes_max = 0;
};
static_assert(sizeof(Header) == kGreetingHeaderBytes);

}  // namespace

size_t EncodeGreeting(const Greeting& greeting, std::span<std::byte> to) {
  const std::string& data = greeting.private_data;
  ALPHEUS_CHECK(sizeof(Header) + data.size() <= to.size(),
                "the fabric checks the length of private data");
  const Header header = {kCalling, static_cast<uint32_t>(greeting.kind),
                         static_cast<uint32_t>(data.size()),
                         greeting.message_bytes_max};
  std::memcpy(to.data(), &header, sizeof(header));
  std::memcpy(to.data() + sizeof(header), data.data(), data.size());
  return sizeof(header) + data.size();
}

std::optional<Greeting> DecodeGreeting(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::span<const std::byte> data = bytes.subspan(sizeof(header));
  const auto kind = static_cast<GreetingKind>(header.kind);
  if (header.calling != kCalling || header.private_bytes != data.size() ||
      header.message_bytes_max == 0 ||
      (kind != GreetingKind::kHello && kind != GreetingKind::kAccept &&
       kind != GreetingKind::kReject)) {
    return std::nullopt;
  }
  return Greeting{
      kind, header.message_bytes_max,
      std::string(reinterpret_cast<const char*>(data.data()), data.size())};
}

// The connection manager may append zeros.
bool IsCalling(std::span<const std::byte> private_data) {
  Calling calling;
  if (private_data.size() < sizeof(calling)) return false;
  std::memcpy(&calling, private_data.data(), sizeof(calling));
  return calling == kCalling;
}

}  // namespace alpheus::fabric::verbs
