// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/naive_store.h"

#include <cstddef>

namespace alpheus::testing {
namespace {

uint64_t Number(const std::string& bytes, size_t from, size_t count) {
  uint64_t number = 0;
  for (size_t i = count; i > 0; --i) {
    number = number * 256 + static_cast<unsigned char>(bytes[from + i - 1]);
  }
  return number;
}

// Bit by bit: polynomial 0x1edc6f41, reflected.
uint32_t SlowCrc32c(const std::string& bytes) {
  uint32_t crc = 0xffff'ffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f6'3b78 : crc >> 1;
    }
  }
  return ~crc;
}

// Reads the object at the front of `rest`, and takes it off.
std::optional<NaiveObject> TakeObject(std::string& rest) {
  constexpr int kSum = 16;
  if (rest.size() < 8) return std::nullopt;
  const uint64_t key_bytes = Number(rest, 0, 2);
  const auto flags = static_cast<int>(Number(rest, 2, 1));
  const uint64_t value_bytes = Number(rest, 4, 4);
  if (key_bytes == 0 || flags >= 32) return std::nullopt;
  NaiveObject object;
  object.lap = static_cast<int>(Number(rest, 3, 1));
  object.is_deleted = flags % 2 == 1;
  if (object.is_deleted && value_bytes != 0) return std::nullopt;
  size_t at = 8;
  size_t sum_at = 0;
  for (const auto& [flag, words] :
       std::map<int, int>{{2, 1}, {4, 1}, {8, 2}, {kSum, 1}}) {
    if (flags / flag % 2 == 0) continue;
    for (int i = 0; i < words; ++i) {
      if (rest.size() < at + 8) return std::nullopt;
      if (flag == kSum) sum_at = at;
      object.words[flag].push_back(Number(rest, at, 8));
      at += 8;
    }
  }
  if (rest.size() < at + key_bytes + value_bytes) return std::nullopt;
  object.key = rest.substr(at, key_bytes);
  object.value = rest.substr(at + key_bytes, value_bytes);
  at += key_bytes + value_bytes;
  for (; at % 8 != 0; ++at) {
    if (rest.size() <= at || rest[at] != 0) return std::nullopt;
  }
  if (sum_at != 0) {
    const uint64_t sum = object.words[kSum][0];
    if (sum >= uint64_t{1} << 32) return std::nullopt;
    object.sum_is_right =
        sum == SlowCrc32c(rest.substr(0, sum_at) +
                          rest.substr(sum_at + 8, at - sum_at - 8));
  }
  rest.erase(0, at);
  return object;
}

}  // namespace

std::optional<NaiveStoreRecord> ReadStoreRecordNaively(
    const std::string& payload) {
  if (payload.size() < 16 || payload.substr(0, 3) != "AO\1") {
    return std::nullopt;
  }
  NaiveStoreRecord record;
  record.kind = static_cast<int>(Number(payload, 3, 1));
  const uint64_t count = Number(payload, 4, 4);
  record.time = Number(payload, 8, 8);
  std::string rest = payload.substr(16);
  if (record.kind == 2) {
    if (count != 0 || !rest.empty()) return std::nullopt;
    return record;
  }
  if (record.kind != 1 || count == 0) return std::nullopt;
  while (record.objects.size() < count) {
    const size_t offset = payload.size() - rest.size();
    std::optional<NaiveObject> object = TakeObject(rest);
    if (!object) return std::nullopt;
    object->offset = offset;
    record.objects.push_back(*object);
  }
  if (!rest.empty()) return std::nullopt;
  return record;
}

}  // namespace alpheus::testing
