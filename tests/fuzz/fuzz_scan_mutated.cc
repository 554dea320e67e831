// SPDX-License-Identifier: Apache-2.0
// Fuzzes opening and scanning over tiny logs that the production writer wrote
// and that were then damaged, torn, rolled back or forged.
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "log/base/random.h"
#include "log/core/read/scan.h"
#include "log/core/ring/region_state.h"
#include "log/pmem/libpmem_persistence.h"
#include "recovery/replica/local_opening.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/image_program.h"
#include "tests/fuzz/line_buffer.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/oracles/naive_format.h"
#include "tests/support/oracles/naive_scan.h"

namespace alpheus::testing {
namespace {

// IMP1 (image_program.h), judged by the naive scanner.
void ExpectWhole(const TinyImage& image) {
  const naive::Region region =
      naive::ReadRegion(image.bytes, naive::Mode::kExact);
  ExpectTrue(region.outcome == naive::Outcome::kGood, "a kill leaves a region");
  const naive::ScanOutcome scan =
      naive::Scan(naive::TaskOf(region, image.bytes));
  ExpectTrue(scan.verdict != "corrupt", "a kill corrupts nothing");
  ExpectTrue(scan.end.lsn > image.durable_lsn, "a kill takes nothing");
}

std::vector<naive::Record> NaiveRecords(std::span<std::byte> region,
                                        naive::ScanOutcome* scan) {
  const naive::Region state = naive::ReadRegion(region, naive::Mode::kExact);
  if (state.outcome != naive::Outcome::kGood) {
    Difference("what opens can be read", "opened it", state.why);
  }
  *scan = naive::Scan(naive::TaskOf(state, region));
  return scan->records;
}

// An opening that begins at the proven place believes it, even a forged one. It
// reads nothing outside, and changes no byte before its verdict (LO1).
void ExpectShortOpeningIsSafe(std::span<std::byte> bytes) {
  const LineBuffer region(bytes);
  LibpmemPersistence pmem({.auto_flush = true});
  Random random(2);
  const auto opened = recovery::OpenEpochLocally(
      pmem, region.bytes(), {.name = "fuzz", .read_whole_bytes_max = 0},
      random);
  if (opened.ok()) return;
  ExpectTrue(std::ranges::equal(bytes, region.bytes()),
             "a refusal changes no byte");
}

// Opening either changes no byte or keeps every record (LO1, SC1), repairs what
// can be repaired, and proves all of it from then on.
void ExpectOpensOrRefuses(std::span<std::byte> region) {
  const LineBuffer before(region);
  LibpmemPersistence pmem({.auto_flush = true});
  Random random(2);
  const auto opened =
      recovery::OpenEpochLocally(pmem, region, {.name = "fuzz"}, random);
  if (!opened.ok()) {
    ExpectTrue(std::ranges::equal(before.bytes(), region),
               "a refusal changes no byte");
    return;
  }
  naive::ScanOutcome scan_before;
  naive::ScanOutcome scan_after;
  const std::vector<naive::Record> old =
      NaiveRecords(before.bytes(), &scan_before);
  const std::vector<naive::Record> now = NaiveRecords(region, &scan_after);
  ExpectTrue(scan_before.verdict != "corrupt", "a corrupt log does not open");
  ExpectSame("records after opening", now.size(), old.size());
  for (size_t i = 0; i < now.size(); ++i) {
    ExpectTrue(now[i].lsn == old[i].lsn && now[i].payload == old[i].payload,
               "opening keeps each record");
  }
  // "torn" if the bytes at the end happen to name the new epoch.
  ExpectTrue(scan_after.verdict != "corrupt", "what opened opens again");
  ExpectSame("cut after opening", uint64_t{0}, scan_after.cut_records);
  ExpectSame("PADs after opening", size_t{0}, scan_after.damaged_pads.size());
  ExpectSame("proven after opening", opened->start.end.lsn - 1,
             scan_after.proven_lsn);
}

void FuzzOne(FuzzInput& input) {
  const bool open_it = input.Flag();
  TinyImage image = RunImageProgram(input);
  ExpectWhole(image);
  Mutate(input, MutationTarget::kAnything, /*mutations_max=*/8, &image);
  const LineBuffer region(image.bytes);
  ExpectSameRegion(region.bytes());
  if (!open_it) return;
  ExpectShortOpeningIsSafe(region.bytes());
  ExpectOpensOrRefuses(region.bytes());
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
