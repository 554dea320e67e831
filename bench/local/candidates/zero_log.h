// SPDX-License-Identifier: Apache-2.0
// zero_log: a log whose records prove by the number of their one bits that they
// are whole. A baseline of the benchmarks.
//
// Idea: the log is all zeros before it is written, so a power cut can only
// leave ones away. A record stores how many ones it has; if as many are read,
// nothing is missing. One fence per record, no checksum, no order of stores;
// the price is that space must be zeroed, persistently, before it is used
// again, and that errors of the medium are mostly not seen.
//
// Invariants:
//   ZL1. Behind the last record everything is zero on media.
// Persistence: length and count share one 8-byte word; without it the count is
// 0, which no record has, since its LSN has a one.
// Thread safety: one thread at a time.
// References: van Renen and others, "Building Blocks for Persistent Memory",
// VLDB Journal 2020 (zero logging).
#ifndef ALPHEUS_BENCH_LOCAL_CANDIDATES_ZERO_LOG_H_
#define ALPHEUS_BENCH_LOCAL_CANDIDATES_ZERO_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"

namespace alpheus::bench {

class ZeroLog {
 public:
  struct Header {
    uint64_t lsn;    // from 1
    uint32_t bytes;  // of payload
    uint32_t ones;   // one bits in lsn, bytes and payload
  };

  static constexpr const char* kName = "zero-init";

  // On `memory`, whole lines that hold nothing but zeros or such a log; goes on
  // behind its last record.
  explicit ZeroLog(std::span<std::byte> memory);

  // Durable when it returns. False, and nothing stored: full.
  bool Append(std::span<const std::byte> payload);

  // Takes all records back: zeroes what they used.
  void Clear();

  // Gives each whole record from the start to `visit`, up to the first that is
  // not. Returns their number.
  uint64_t ForEach(
      const std::function<void(std::span<const std::byte>)>& visit) const;

  // The same for memory that nobody has opened, as after a crash;
  // never an error.
  static absl::StatusOr<uint64_t> Recover(
      std::span<std::byte> memory,
      const std::function<void(std::span<const std::byte>)>& visit);

  uint64_t records() const { return next_lsn_ - 1; }

  // The steps of Append, in order, for who times them apart; a Fence follows.
  bool HasRoom(uint64_t payload_bytes) const;
  Header Seal(std::span<const std::byte> payload) const;  // counts the ones
  void Store(const Header& header, std::span<const std::byte> payload);

 private:
  const std::span<std::byte> area_;
  uint64_t end_ = 0;
  uint64_t next_lsn_ = 1;
};

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_LOCAL_CANDIDATES_ZERO_LOG_H_
