// SPDX-License-Identifier: Apache-2.0
// flex_log: a log as FLEX keeps it: a file that is appended to from user
// space, with its tail in persistent memory. A baseline of the benchmarks.
//
// Idea: a record is two appends, of the header (length, checksum) and of the
// payload, each copied past the cache and persisted; then the tail is moved and
// persisted. Three fences per record. What lies before the tail is whole, the
// checksum guards against errors of the medium.
//
// Invariants:
//   FL1. Bytes before the tail on media are persistent.
// Persistence: the tail is one 8-byte word, moved after what it covers.
// Thread safety: one thread at a time.
// References: Xu and others, "Finding and fixing performance pathologies in
// persistent memory software stacks" (FLEX); Arcadia §5.2.
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_FLEX_LOG_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_FLEX_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"

namespace alpheus::bench {

class FlexLog {
 public:
  struct Header {
    uint64_t bytes;
    uint32_t checksum;  // over bytes and payload
    uint32_t reserved;
  };

  static constexpr const char* kName = "flex";

  // On `memory`, which holds nothing but zeros or such a log.
  explicit FlexLog(std::span<std::byte> memory);

  // Durable when it returns. False, and nothing stored: full.
  bool Append(std::span<const std::byte> payload);

  // Takes all records back.
  void Clear();

  // Verifies each record from the start to the tail and gives it to `visit`.
  // Returns their number. Errors: DataLoss (offset of the first bad one).
  absl::StatusOr<uint64_t> ForEach(
      const std::function<void(std::span<const std::byte>)>& visit) const;

  // The same for memory that nobody has opened, as after a crash.
  static absl::StatusOr<uint64_t> Recover(
      std::span<std::byte> memory,
      const std::function<void(std::span<const std::byte>)>& visit);

  uint64_t records() const { return records_; }  // appended since Clear

  // The steps of Append, in order, for who times them apart.
  bool HasRoom(uint64_t payload_bytes) const;
  static Header Seal(std::span<const std::byte> payload);  // the checksum
  void StoreHeader(const Header& header);
  void StorePayload(std::span<const std::byte> payload);
  void PersistTail();  // over what was stored
  // All bytes that were, header and payload alike.
  std::span<const std::byte> stored() const { return area_.first(end_); }

 private:
  std::byte* const tail_on_media_;  // 8 bytes, on a line of its own
  const std::span<std::byte> area_;
  uint64_t end_;  // of what is stored in area_, covered by the tail or not
  uint64_t records_ = 0;
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_FLEX_LOG_H_
