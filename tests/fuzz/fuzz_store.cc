// SPDX-License-Identifier: Apache-2.0
// Fuzzes records and objects of a store: payloads of arbitrary bytes, and those
// that a store wrote, then damaged, with sums put right where the input says
// so. A second reader (naive_store.h) says what is in them. What is accepted is
// written back byte for byte.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/store/record/object.h"
#include "api/store/record/store_record.h"
#include "log/base/bytes.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/oracles/naive_store.h"

namespace alpheus::testing {
namespace {

using store::DecodedObject;
using store::kStoreRecordHeaderBytes;
using store::Object;
using store::StoreRecordHeader;

std::string Text(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Encoded(const Object& object) {
  std::vector<std::byte> bytes(EncodedBytes(object), std::byte{0xee});
  EncodeObject(object, bytes);
  return std::string(AsText(bytes));
}

std::string Encoded(const StoreRecordHeader& header) {
  std::vector<std::byte> bytes(kStoreRecordHeaderBytes, std::byte{0xee});
  EncodeStoreRecordHeader(header,
                          std::span(bytes).first<kStoreRecordHeaderBytes>());
  return std::string(AsText(bytes));
}

std::string WrittenObject(FuzzInput& input) {
  const std::string key = "k" + Text(input.Take(input.Below(40)));
  const std::string value = Text(input.Take(input.Below(70)));
  const uint8_t flags = input.Byte();
  Object object{.key = AsBytes(key), .lap = input.Byte()};
  object.is_deleted = (flags & 1) != 0;
  if (!object.is_deleted) object.value = AsBytes(value);
  if ((flags & 2) != 0) object.expires_ns = static_cast<int64_t>(input.Word());
  if ((flags & 4) != 0) object.copied_version = input.Word();
  if ((flags & 8) != 0) {
    const uint64_t client = input.Word();
    object.request = store::RequestId{client, input.Word()};
  }
  object.has_sum = (flags & 16) != 0;
  return Encoded(object);
}

// As a store writes it, or nearly so.
std::string WrittenRecord(FuzzInput& input) {
  StoreRecordHeader header;
  header.count = static_cast<uint32_t>(input.Below(4));
  header.time_ns = static_cast<int64_t>(input.Word());
  if (header.count == 0) header.kind = store::StoreRecordKind::kTime;
  std::string payload = Encoded(header);
  for (uint32_t i = 0; i < header.count; ++i) payload += WrittenObject(input);
  for (uint64_t damages = input.Below(4); damages > 0; --damages) {
    const uint64_t at = input.Below(payload.size());
    payload[at] = static_cast<char>(input.Byte());
  }
  if (input.Flag()) payload.resize(input.Below(payload.size() + 20));
  return payload;
}

NaiveObject Naively(const Object& object, bool sum_is_right) {
  NaiveObject naive{.key = std::string(AsText(object.key)),
                    .value = std::string(AsText(object.value)),
                    .lap = object.lap,
                    .is_deleted = object.is_deleted,
                    .words = {},
                    .sum_is_right = sum_is_right};
  if (object.expires_ns) {
    naive.words[2] = {static_cast<uint64_t>(*object.expires_ns)};
  }
  if (object.copied_version) naive.words[4] = {*object.copied_version};
  if (object.request) {
    naive.words[8] = {object.request->client, object.request->sequence};
  }
  return naive;
}

void ExpectWrittenTheSame(const DecodedObject& decoded, std::string encoded,
                          bool sum_is_right) {
  if (!sum_is_right) return;
  ExpectTrue(Encoded(decoded.object) == encoded,
             "an object that is accepted is written the same way again");
}

void FuzzPayload(const std::string& text) {
  // Exactly so long: a sanitizer sees what is read beyond it.
  const auto bytes = std::make_unique<std::byte[]>(text.size());
  if (!text.empty()) std::memcpy(bytes.get(), text.data(), text.size());
  const std::span<const std::byte> payload(bytes.get(), text.size());
  const std::optional<NaiveStoreRecord> expected = ReadStoreRecordNaively(text);
  const absl::StatusOr<StoreRecordHeader> header =
      store::DecodeStoreRecordHeader(payload);
  if (!header.ok()) {
    ExpectTrue(!expected, "a record that a store wrote is not refused");
    return;
  }
  ExpectTrue(Encoded(*header) == text.substr(0, kStoreRecordHeaderBytes),
             "a header that is accepted is written the same way again");
  size_t next = 0;
  const absl::Status all = store::ForEachObject(
      payload, header->count, [&](size_t offset, const DecodedObject& decoded) {
        const std::span<const std::byte> encoded =
            payload.subspan(offset, decoded.encoded_bytes);
        const bool sum_is_right =
            !decoded.object.has_sum || store::CheckSum(encoded).ok();
        ExpectWrittenTheSame(decoded, std::string(AsText(encoded)),
                             sum_is_right);
        if (expected) {
          ExpectTrue(next < expected->objects.size(), "no object too many");
          NaiveObject there = expected->objects[next++];
          ExpectTrue(there.offset == offset, "each object lies where it does");
          there.offset = 0;
          ExpectTrue(decoded.object.has_sum == there.words.contains(16),
                     "both see that there is a sum");
          there.words.erase(16);
          ExpectTrue(there == Naively(decoded.object, sum_is_right),
                     "both read the same object");
        }
        return absl::OkStatus();
      });
  ExpectTrue(all.ok() == expected.has_value(),
             "a record is accepted if and only if a store wrote it");
  if (expected) {
    ExpectTrue(next == expected->objects.size(), "no object is left out");
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace alpheus::testing;  // NOLINT(google-build-using-namespace)
  FuzzInput input(data, bytes);
  switch (input.Byte() % 4) {
    case 0:
      FuzzPayload(Text(input.rest()));
      break;
    case 1:  // behind a right header
      FuzzPayload(Encoded(alpheus::store::StoreRecordHeader{
                      .count = 1 + static_cast<uint32_t>(input.Below(3))}) +
                  Text(input.rest()));
      break;
    default:
      FuzzPayload(WrittenRecord(input));
  }
  return 0;
}
