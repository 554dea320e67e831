// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/client_messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/wire_parts.h"

namespace alpheus::recovery {
namespace {

constexpr uint32_t kClientHelloMagic = 0x48435041;      // "APCH"
constexpr uint32_t kClientWelcomeMagic = 0x57435041;    // "APCW"
constexpr uint32_t kClientRejectionMagic = 0x52435041;  // "APCR"
constexpr uint32_t kClientMessageMagic = 0x4d435041;    // "APCM"

// Kinds of messages; on the wire, never renumber.
enum class ClientKind : uint32_t {
  kProof = 1,
  kProved = 2,
  kOpen = 3,
  kOpened = 4,
  kRefused = 5,
};

constexpr uint32_t kClientCodeMax = 16;  // of a status
// Without magic, version, code and sum.
constexpr size_t kClientRejectionTextBytes = kClientHelloBytes - 16;

absl::Status NoClientBytes(const char* what, size_t bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("client: ", bytes, " bytes are not a ", what,
                   ". Another program sent them, or one of another version"));
}

// Returns the bytes behind magic and version. The sum holds.
absl::StatusOr<ByteReader> ReadClientStart(const char* what, uint32_t magic,
                                           std::string_view bytes) {
  ByteReader start(AsBytes(bytes));
  const bool is_magic = start.U32() == magic;
  const uint32_t version = start.U32();
  if (!start.good() || !is_magic) return NoClientBytes(what, bytes.size());
  ALPHEUS_ASSIGN_OR_RETURN(const std::span<const std::byte> summed,
                           ReadSummed(absl::StrCat("a ", what).c_str(), magic,
                                      Uuid(), AsBytes(bytes)));
  if (version != kClientProtocolVersion) {
    // A rejection cuts the text, so that its front must be enough.
    return absl::UnimplementedError(absl::StrCat(
        "peer: client version ", version, ", here: ", kClientProtocolVersion,
        ". Run client and node of one version"));
  }
  ByteReader from(summed);
  from.U64();
  return from;
}

std::string EndClientData(ByteWriter& to, uint32_t magic) {
  PutSum(to, magic, Uuid());
  return std::string(AsText(to.bytes()));
}

void PutClientNonce(ByteWriter& to, const Nonce& nonce) {
  to.U64(nonce.high);
  to.U64(nonce.low);
}

Nonce ReadClientNonce(ByteReader& from) {
  Nonce nonce;
  nonce.high = from.U64();
  nonce.low = from.U64();
  from.Expect(nonce != Nonce());
  return nonce;
}

bool ReadClientFlag(ByteReader& from) {
  const uint32_t flag = from.U32();
  from.Expect(flag <= 1);
  return flag == 1;
}

ClientKind ClientKindOf(const ClientMessage& message) {
  return static_cast<ClientKind>(message.index() + 1);
}

void PutClientBody(ByteWriter& to, const ClientProof& proof) {
  PutClientNonce(to, proof.nonce);
  to.Text(proof.masked_token);
}

void PutClientBody(ByteWriter& to, const ClientProved& proved) {
  to.Raw(proved.proof);
}

void PutClientBody(ByteWriter& to, const OpenMemory& open) {
  to.U32(open.for_updates ? 1 : 0);
  to.Text(open.name);
}

void PutClientBody(ByteWriter& to, const MemoryOpened& opened) {
  to.Id(opened.key);
  to.U64(opened.bytes);
  Put(to, opened.platform);
  to.U64(opened.session);
  to.U32(opened.credits);
  to.U32(opened.message_bytes_max);
}

void PutClientBody(ByteWriter& to, const ClientRefused& refused) {
  ALPHEUS_CHECK(!refused.why.ok(), "a refusal needs a reason");
  const absl::string_view text =
      refused.why.message().substr(0, kClientReasonBytesMax);
  to.U32(static_cast<uint32_t>(refused.why.code()));
  to.Text({text.data(), text.size()});
}

ClientProof ReadClientProof(ByteReader& from) {
  ClientProof proof;
  proof.nonce = ReadClientNonce(from);
  proof.masked_token = from.Text(kMaskedTokenBytesMax);
  from.Expect(!proof.masked_token.empty());
  return proof;
}

ClientProved ReadClientProved(ByteReader& from) {
  ClientProved proved;
  const std::span<const std::byte> bytes = from.Raw(proved.proof.size());
  std::ranges::copy(bytes, proved.proof.begin());
  return proved;
}

OpenMemory ReadOpenMemory(ByteReader& from) {
  OpenMemory open;
  open.for_updates = ReadClientFlag(from);
  open.name = from.Text(kMemoryNameBytesMax);
  from.Expect(!open.name.empty());
  return open;
}

MemoryOpened ReadMemoryOpened(ByteReader& from) {
  MemoryOpened opened;
  opened.key = from.As<fabric::RegionKey>();
  opened.bytes = from.U64();
  opened.platform = ReadPlatform(from);
  opened.session = from.U64();
  opened.credits = from.U32();
  opened.message_bytes_max = from.U32();
  const bool is_updated = opened.session != 0;
  from.Expect(opened.key != fabric::RegionKey() && opened.bytes != 0);
  // A session has two receives, which hold a message's line; reads have none.
  from.Expect(is_updated
                  ? opened.credits >= 2 &&
                        opened.message_bytes_max >= kLineBytes &&
                        opened.message_bytes_max <= kMessageBytesMax
                  : opened.credits == 0 && opened.message_bytes_max == 0 &&
                        opened.platform == replication::Platform());
  return opened;
}

ClientRefused ReadClientRefused(ByteReader& from) {
  const uint32_t code = from.U32();
  from.Expect(code >= 1 && code <= kClientCodeMax);
  const std::string text = from.Text(kClientReasonBytesMax);
  if (!from.good()) return {absl::UnknownError("")};
  return {absl::Status(static_cast<absl::StatusCode>(code), text)};
}

}  // namespace

bool IsClientHello(std::string_view private_data) {
  return ByteReader(AsBytes(private_data)).U32() == kClientHelloMagic;
}

std::string EncodeClientHello(const ClientHello& hello) {
  ByteWriter to;
  to.U32(kClientHelloMagic);
  to.U32(kClientProtocolVersion);
  to.Id(hello.cluster_id);
  to.Id(hello.log_id);
  to.U64(hello.token_name);
  to.U32(0);
  return EndClientData(to, kClientHelloMagic);
}

absl::StatusOr<ClientHello> DecodeClientHello(std::string_view bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      ByteReader from,
      ReadClientStart("client's hello", kClientHelloMagic, bytes));
  ClientHello hello;
  hello.cluster_id = from.AsUuid();
  hello.log_id = from.AsUuid();
  hello.token_name = from.U64();
  const uint32_t zeros = from.U32();
  from.Expect(!hello.log_id.is_zero() && zeros == 0);
  if (!from.IsDone()) return NoClientBytes("client's hello", bytes.size());
  return hello;
}

std::string EncodeClientWelcome(const ClientWelcome& welcome) {
  ByteWriter to;
  to.U32(kClientWelcomeMagic);
  to.U32(kClientProtocolVersion);
  to.Id(welcome.node);
  to.U64(welcome.incarnation);
  PutClientNonce(to, welcome.nonce);
  for (int i = 0; i < 3; ++i) to.U32(0);
  return EndClientData(to, kClientWelcomeMagic);
}

absl::StatusOr<ClientWelcome> DecodeClientWelcome(std::string_view bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      ByteReader from,
      ReadClientStart("client's welcome", kClientWelcomeMagic, bytes));
  ClientWelcome welcome;
  welcome.node = from.As<NodeId>();
  welcome.incarnation = from.U64();
  welcome.nonce = ReadClientNonce(from);
  from.Expect(welcome.incarnation != 0);
  for (int i = 0; i < 3; ++i) {
    const uint32_t zeros = from.U32();
    from.Expect(zeros == 0);
  }
  if (!from.IsDone()) return NoClientBytes("client's welcome", bytes.size());
  return welcome;
}

std::string EncodeClientRejection(const absl::Status& why) {
  ALPHEUS_CHECK(!why.ok(), "a rejection needs a reason");
  const absl::string_view text =
      why.message().substr(0, kClientRejectionTextBytes);
  ByteWriter to;
  to.U32(kClientRejectionMagic);
  to.U32(kClientProtocolVersion);
  to.U32(static_cast<uint32_t>(why.code()));
  to.Raw(AsBytes({text.data(), text.size()}));
  return EndClientData(to, kClientRejectionMagic);
}

absl::Status DecodeClientRejection(std::string_view bytes) {
  const absl::Status unsaid = absl::UnavailableError(
      "it refused the connection, and did not say why in words of a client's "
      "version");
  if (bytes.size() > kClientHelloBytes) return unsaid;
  const absl::StatusOr<std::span<const std::byte>> summed =
      ReadSummed("a rejection", kClientRejectionMagic, Uuid(), AsBytes(bytes));
  if (!summed.ok()) return unsaid;
  ByteReader from(*summed);
  const bool is_magic = from.U32() == kClientRejectionMagic;
  from.U32();  // in all versions
  const uint32_t code = from.U32();
  if (!from.good() || !is_magic || code < 1 || code > kClientCodeMax) {
    return unsaid;
  }
  const std::string_view text = AsText(*summed).substr(12);
  return {static_cast<absl::StatusCode>(code),
          absl::string_view(text.data(), text.size())};
}

std::vector<std::byte> EncodeClientMessage(Uuid log_id,
                                           const ClientMessage& message) {
  ByteWriter to;
  to.U32(kClientMessageMagic);
  to.U32(static_cast<uint32_t>(ClientKindOf(message)));
  std::visit([&to](const auto& body) { PutClientBody(to, body); }, message);
  PutSum(to, kClientMessageMagic, log_id);
  ALPHEUS_CHECK(to.bytes().size() <= kClientMessageBytesMax,
                "all messages of clients are short");
  return to.Take();
}

absl::StatusOr<ClientMessage> DecodeClientMessage(
    Uuid log_id, std::span<const std::byte> bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::span<const std::byte> summed,
      ReadSummed("a client's message", kClientMessageMagic, log_id, bytes));
  ByteReader from(summed);
  const bool is_magic = from.U32() == kClientMessageMagic;
  const auto kind = static_cast<ClientKind>(from.U32());
  ClientMessage message;
  switch (kind) {
    case ClientKind::kProof:
      message = ReadClientProof(from);
      break;
    case ClientKind::kProved:
      message = ReadClientProved(from);
      break;
    case ClientKind::kOpen:
      message = ReadOpenMemory(from);
      break;
    case ClientKind::kOpened:
      message = ReadMemoryOpened(from);
      break;
    case ClientKind::kRefused:
      message = ReadClientRefused(from);
      break;
    default:
      return NoClientBytes("client's message", bytes.size());
  }
  if (!is_magic || !from.IsDone()) {
    return NoClientBytes("client's message", bytes.size());
  }
  return message;
}

}  // namespace alpheus::recovery
