// SPDX-License-Identifier: Apache-2.0
// byte_stream: a sequence of little-endian numbers and texts.
//
// Idea: once a reader runs out of bytes, or meets an impossible value, it gives
// zeros only. A decoder checks once, at the end.
// Thread safety: one thread.
#ifndef ALPHEUS_RECOVERY_PROTOCOL_BYTE_STREAM_H_
#define ALPHEUS_RECOVERY_PROTOCOL_BYTE_STREAM_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/ids.h"

namespace alpheus::recovery {

static_assert(std::endian::native == std::endian::little);

class ByteWriter {
 public:
  void U32(uint32_t value) { Raw(std::as_bytes(std::span(&value, 1))); }
  void U64(uint64_t value) { Raw(std::as_bytes(std::span(&value, 1))); }
  template <class Tag>
  void Id(StrongId<Tag> id) {
    U64(id.value);
  }
  void Id(const Uuid& uuid) {
    U64(uuid.high);
    U64(uuid.low);
  }
  // Writes the length, then the bytes.
  void Text(std::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    Raw(AsBytes(text));
  }
  void Raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Reserve(size_t bytes) { bytes_.reserve(bytes); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  // The bytes must outlive the reader.
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  template <class Id>
  Id As() {
    return Id(U64());
  }
  Uuid AsUuid() {
    const uint64_t high = U64();
    return {high, U64()};
  }
  // Reads what ByteWriter::Text wrote; a longer text is bad.
  std::string Text(size_t bytes_max) {
    const uint32_t bytes = U32();
    Expect(bytes <= bytes_max);
    return std::string(AsText(Raw(bytes)));
  }
  // Returns the next bytes, or nothing if there are fewer.
  std::span<const std::byte> Raw(uint64_t bytes) {
    Expect(bytes <= rest_.size());
    if (!good_) return {};
    const std::span<const std::byte> front = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return front;
  }
  // Returns true if `count` elements can still come. Call it before memory is
  // allocated for them.
  bool Holds(uint64_t count, size_t element_bytes) {
    return Expect(count <= rest_.size() / element_bytes);
  }

  // Marks the input as bad unless `holds`. Returns true if all was good.
  bool Expect(bool holds) {
    good_ = good_ && holds;
    return good_;
  }
  bool good() const { return good_; }
  // Returns true if all was good and nothing is left.
  bool IsDone() const { return good_ && rest_.empty(); }

 private:
  template <class T>
  T Number() {
    T value{};
    const std::span<const std::byte> bytes = Raw(sizeof(value));
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_PROTOCOL_BYTE_STREAM_H_
