// SPDX-License-Identifier: Apache-2.0
// The cost of summing payloads at a backup: by itself, and as a part of what an
// Append takes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"
#include "log/format/checksum.h"
#include "log/format/record.h"

namespace alpheus::bench::replicated {
namespace {

constexpr int kBackups = 1;
constexpr const char* kScenario = "sums";
constexpr const char* kSummed = "summed";
constexpr const char* kUnsummed = "unsummed";

// ns a payload of so many bytes, one after the other through a ring: as cold as
// a ring is of which the last lap is long gone, so rather too much.
double SumAlone(std::span<const std::byte> ring, uint64_t bytes) {
  uint32_t sums = 0;
  uint64_t count = 0;
  const int64_t begin = NowNanos();
  for (uint64_t at = 0; at + bytes <= ring.size(); at += RecordBytes(bytes)) {
    sums ^= Crc32c(kCrcStart, ring.subspan(at, bytes));
    ++count;
  }
  const int64_t end = NowNanos();
  // The sums are wanted by nobody but the compiler.
  volatile uint32_t wanted = sums;
  (void)wanted;
  return static_cast<double>(end - begin) / static_cast<double>(count);
}

}  // namespace

absl::Status MeasureSums(const Settings& settings, Report* report) {
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = kBackups};
  const std::vector<Contestant> contestants = {
      {kSummed, Alpheus({.name = kSummed})},
      {kUnsummed, Alpheus({.name = kUnsummed, .is_unsummed = true})}};
  std::vector<std::byte> ring(settings.ring_bytes);
  for (size_t i = 0; i < ring.size(); ++i) ring[i] = std::byte(i * 167 >> 3);
  for (const uint64_t bytes : settings.sizes) {
    const Contest contest{.scenario = kScenario,
                          .parameters = {{"backups", kBackups}},
                          .bytes = bytes,
                          .waiting = Waiting::kSpin,
                          .warm_up_ops = settings.warm_up_ops,
                          .ops = settings.spin_ops};
    ALPHEUS_RETURN_IF_ERROR(
        MeasureOne(settings.rounds, contestants, work, contest, report));
    Measurement alone{.scenario = kScenario,
                      .candidate = "cost",
                      .metric = "sum",
                      .unit = "ns",
                      .parameters = {{"bytes", bytes}},
                      .samples = {},
                      .details = {}};
    for (uint64_t round = 0; round < settings.rounds; ++round) {
      alone.samples.push_back(SumAlone(ring, bytes));
    }
    report->measurements.push_back(std::move(alone));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
