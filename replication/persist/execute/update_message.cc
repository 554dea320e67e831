// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/execute/update_message.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "log/base/check.h"
#include "log/format/checksum.h"

namespace alpheus::replication {
namespace {

constexpr uint64_t kBytesMagic = 0x3164707553555048;    // "HPUSupd1"
constexpr uint64_t kAddressMagic = 0x3172646153555048;  // "HPUSadr1"
constexpr uint64_t kReportMagic = 0x3170657253555048;   // "HPUSrep1"
constexpr size_t kHeaderWords = kUpdateMessageHeaderBytes / sizeof(uint64_t);
constexpr size_t kChecksumWord = kHeaderWords - 1;
using MessageHeader = std::array<uint64_t, kHeaderWords>;
using ReportWords = std::array<uint64_t, kUpdateReportBytes / sizeof(uint64_t)>;
static_assert(std::endian::native == std::endian::little);

// Returns the checksum of the words before it and the bytes after the header.
// Never 0, or a line of zeros would be valid.
uint64_t ChecksumOf(const MessageHeader& header,
                    std::span<const std::byte> payload) {
  const auto words = std::as_bytes(std::span(header).first(kChecksumWord));
  const uint32_t sum = Crc32c(Crc32c(~0U, words), payload);
  return uint64_t{~sum} << 32 | sum;
}

}  // namespace

size_t EncodeUpdateMessage(const UpdateMessage& message,
                           std::span<std::byte> into) {
  const size_t bytes = kUpdateMessageHeaderBytes + message.bytes_of_a.size() +
                       message.bytes_of_b.size();
  ALPHEUS_CHECK(bytes <= into.size(), "the message fits");
  MessageHeader header = {message.is_address() ? kAddressMagic : kBytesMagic,
                          message.session.value,
                          message.sequence,
                          message.a.offset,
                          message.a.bytes,
                          message.b.offset,
                          message.b.bytes,
                          0};
  const std::span<std::byte> payload = into.first(bytes).subspan(sizeof header);
  const auto after_a =
      std::ranges::copy(message.bytes_of_a, payload.begin()).out;
  std::ranges::copy(message.bytes_of_b, after_a);
  header[kChecksumWord] = ChecksumOf(header, payload);
  std::memcpy(into.data(), header.data(), sizeof header);
  return bytes;
}

std::optional<UpdateMessage> DecodeUpdateMessage(
    std::span<const std::byte> bytes) {
  MessageHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const bool has_bytes = header[0] == kBytesMagic;
  if (!has_bytes && header[0] != kAddressMagic) return std::nullopt;
  UpdateMessage message = {.session = SessionId(header[1]),
                           .sequence = header[2],
                           .a = {header[3], header[4]},
                           .b = {header[5], header[6]}};
  std::span<const std::byte> payload = bytes.subspan(sizeof header);
  const bool fits =
      message.a.bytes <= payload.size() &&
      message.b.bytes <=
          payload.size() - std::min(message.a.bytes, uint64_t{payload.size()});
  if (has_bytes && !fits) return std::nullopt;
  payload = payload.first(has_bytes ? message.a.bytes + message.b.bytes : 0);
  const bool is_whole = header[kChecksumWord] == ChecksumOf(header, payload);
  if (!is_whole) return std::nullopt;
  if (has_bytes) {
    message.bytes_of_a = payload.first(message.a.bytes);
    message.bytes_of_b = payload.subspan(message.a.bytes);
  }
  return message;
}

void EncodeUpdateReport(const UpdateReport& report,
                        std::span<std::byte, kUpdateReportBytes> into) {
  const ReportWords words = {kReportMagic, report.session.value, report.acks,
                             report.receives};
  std::memcpy(into.data(), words.data(), kUpdateReportBytes);
}

std::optional<UpdateReport> DecodeUpdateReport(
    std::span<const std::byte> bytes) {
  ReportWords words;
  if (bytes.size() != kUpdateReportBytes) return std::nullopt;
  std::memcpy(words.data(), bytes.data(), kUpdateReportBytes);
  if (words[0] != kReportMagic) return std::nullopt;
  return UpdateReport{SessionId(words[1]), words[2], words[3]};
}

}  // namespace alpheus::replication
