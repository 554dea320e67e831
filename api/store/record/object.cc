// SPDX-License-Identifier: Apache-2.0
#include "api/store/record/object.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/format/checksum.h"

namespace alpheus::store {
namespace {

static_assert(std::endian::native == std::endian::little);

enum Flag : uint8_t {
  kDeleted = 1,
  kExpires = 2,
  kCopied = 4,
  kHasRequest = 8,
  kHasSum = 16,
};
constexpr uint8_t kFlagsKnown =
    kDeleted | kExpires | kCopied | kHasRequest | kHasSum;

constexpr size_t kFlagsAt = 2;
constexpr size_t kWordBytes = 8;
constexpr size_t kRequestBytes = 16;
constexpr uint32_t kSumSeed = 0xffff'ffff;

uint8_t FlagsOf(const Object& object) {
  uint8_t flags = 0;
  if (object.is_deleted) flags |= kDeleted;
  if (object.expires_ns) flags |= kExpires;
  if (object.copied_version) flags |= kCopied;
  if (object.request) flags |= kHasRequest;
  if (object.has_sum) flags |= kHasSum;
  return flags;
}

// Returns the bytes of what the flags name.
size_t OptionalBytes(uint8_t flags) {
  return ((flags & kExpires) != 0 ? kWordBytes : 0) +
         ((flags & kCopied) != 0 ? kWordBytes : 0) +
         ((flags & kHasRequest) != 0 ? kRequestBytes : 0) +
         ((flags & kHasSum) != 0 ? kWordBytes : 0);
}

// Offset of the sum, which is the last of the optional fields.
size_t SumAt(uint8_t flags) {
  return kObjectHeaderBytes + OptionalBytes(flags) - kWordBytes;
}

size_t SizeOf(uint8_t flags, size_t key_bytes, size_t value_bytes) {
  return RoundUp(
      kObjectHeaderBytes + OptionalBytes(flags) + key_bytes + value_bytes,
      kObjectUnitBytes);
}

uint32_t SumOf(std::span<const std::byte> encoded, size_t sum_at) {
  const uint32_t front = Crc32c(kSumSeed, encoded.first(sum_at));
  return ~Crc32c(front, encoded.subspan(sum_at + kWordBytes));
}

// Writes fields one behind the other.
class Writer {
 public:
  explicit Writer(std::byte* at) : at_(at) {}

  template <class Value>
  void Put(Value value) {
    std::memcpy(at_, &value, sizeof(value));
    at_ += sizeof(value);
  }
  void Put(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }
  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

class Reader {
 public:
  explicit Reader(const std::byte* at) : at_(at) {}

  template <class Value>
  Value Take() {
    Value value{};
    std::memcpy(&value, at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  std::span<const std::byte> Take(size_t bytes) {
    const std::byte* const begin = at_;
    at_ += bytes;
    return {begin, bytes};
  }

 private:
  const std::byte* at_;
};

absl::Status NoObject(absl::string_view why) {
  return absl::DataLossError(absl::StrCat("no object of the store: ", why));
}

bool AreZeros(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes,
                             [](std::byte one) { return one == std::byte{0}; });
}

}  // namespace

size_t EncodedBytes(const Object& object) {
  return SizeOf(FlagsOf(object), object.key.size(), object.value.size());
}

void EncodeObject(const Object& object, std::span<std::byte> out) {
  const uint8_t flags = FlagsOf(object);
  ALPHEUS_CHECK(!object.key.empty() && object.key.size() <= kKeyBytesMax &&
                    object.value.size() <= UINT32_MAX &&
                    (!object.is_deleted || object.value.empty()) &&
                    out.size() == EncodedBytes(object),
                "EncodeObject requires this (object.h)");
  Writer writer(out.data());
  writer.Put(static_cast<uint16_t>(object.key.size()));
  writer.Put(flags);
  writer.Put(object.lap);
  writer.Put(static_cast<uint32_t>(object.value.size()));
  if (object.expires_ns) writer.Put(*object.expires_ns);
  if (object.copied_version) writer.Put(*object.copied_version);
  if (object.request) {
    writer.Put(object.request->client);
    writer.Put(object.request->sequence);
  }
  if (object.has_sum) writer.Put(uint64_t{0});
  writer.Put(object.key);
  writer.Put(object.value);
  std::fill(writer.at(), out.data() + out.size(), std::byte{0});
  if (!object.has_sum) return;
  const size_t sum_at = SumAt(flags);
  Writer(&out[sum_at]).Put(SumOf(out, sum_at));
}

absl::StatusOr<DecodedObject> DecodeObject(std::span<const std::byte> bytes) {
  if (bytes.size() < kObjectHeaderBytes) return NoObject("its header is cut");
  Reader reader(bytes.data());
  const auto key_bytes = reader.Take<uint16_t>();
  const auto flags = reader.Take<uint8_t>();
  const auto lap = reader.Take<uint8_t>();
  const auto value_bytes = reader.Take<uint32_t>();
  if (key_bytes == 0) return NoObject("it has no key");
  if ((flags & ~kFlagsKnown) != 0) {
    return NoObject(absl::StrCat("unknown flags ", static_cast<int>(flags)));
  }
  const bool is_deleted = (flags & kDeleted) != 0;
  if (is_deleted && value_bytes != 0) {
    return NoObject("it is deleted, and has a value");
  }
  const size_t encoded_bytes = SizeOf(flags, key_bytes, value_bytes);
  if (encoded_bytes > bytes.size()) {
    return NoObject(absl::StrCat("it has ", encoded_bytes, " bytes, of which ",
                                 bytes.size(), " are here"));
  }
  Object object{.key = {}, .value = {}, .is_deleted = is_deleted, .lap = lap};
  if ((flags & kExpires) != 0) object.expires_ns = reader.Take<int64_t>();
  if ((flags & kCopied) != 0) object.copied_version = reader.Take<uint64_t>();
  if ((flags & kHasRequest) != 0) {
    const auto client = reader.Take<uint64_t>();
    object.request = RequestId{client, reader.Take<uint64_t>()};
  }
  object.has_sum = (flags & kHasSum) != 0;
  if (object.has_sum) {
    reader.Take<uint32_t>();
    if (reader.Take<uint32_t>() != 0) return NoObject("bytes behind its sum");
  }
  object.key = reader.Take(key_bytes);
  object.value = reader.Take(value_bytes);
  const size_t used =
      kObjectHeaderBytes + OptionalBytes(flags) + key_bytes + value_bytes;
  if (!AreZeros(bytes.subspan(used, encoded_bytes - used))) {
    return NoObject("bytes behind its value");
  }
  return DecodedObject{object, encoded_bytes};
}

absl::Status CheckSum(std::span<const std::byte> encoded) {
  const auto flags = static_cast<uint8_t>(encoded[kFlagsAt]);
  const size_t sum_at = SumAt(flags);
  const auto sum = Reader(&encoded[sum_at]).Take<uint32_t>();
  const uint32_t expected = SumOf(encoded, sum_at);
  if (sum == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("object of the store: its sum is ",
                                          sum, ", and its bytes have ",
                                          expected));
}

}  // namespace alpheus::store
