// SPDX-License-Identifier: Apache-2.0
// Counts what appends of a local log in anonymous memory execute, and prints a
// line for each: its name, instructions, locked ones.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/base/waiter.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/ring_log.h"
#include "log/format/layout.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/region.h"
#include "recovery/replica/local_opening.h"
#include "tests/log/core/ring/instruction_counter.h"

namespace alpheus {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{1} << 20;

absl::Status PrintAppend(AnyRingLog& log, size_t bytes, uint32_t frequency) {
  const std::string text(bytes, 'x');
  const std::span<const std::byte> part = AsBytes(text);
  ALPHEUS_ASSIGN_OR_RETURN(
      const testing::InstructionCounts counts, testing::CountInstructions([&] {
        if (!log.Append({&part, 1}, frequency, Deadline(), nullptr).ok()) {
          _exit(1);
        }
      }));
  std::printf("%zu-bytes-of-%u %d %d\n", bytes, frequency, counts.instructions,
              counts.locked);
  return absl::OkStatus();
}

absl::Status Run() {
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                           Layout::ForRegion(kRegionBytes));
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::Anonymous(kRegionBytes));
  LibpmemPersistence pmem(
      {.auto_flush = LibpmemPersistence::DetectAutoFlush()});
  Random random(1);
  ALPHEUS_RETURN_IF_ERROR(
      FormatRegion(pmem, region.bytes(), layout, NewLocalIdentity(random)));
  recovery::LocalOpeningOptions opening;
  opening.name = "anonymous";
  ALPHEUS_ASSIGN_OR_RETURN(
      const recovery::OpenedEpoch opened,
      recovery::OpenEpochLocally(pmem, region.bytes(), opening, random));
  FutexWaiter waiter(Clock::Real());
  RingLog<LibpmemPersistence> log(pmem, region.bytes(), opened.start,
                                  {.name = "anonymous"}, Clock::Real(), waiter);
  // LSN 1 comes before the count, LSN 2 in it: no policy but that of each
  // record forces it.
  for (const uint32_t frequency : {1U, 16U}) {
    for (const size_t bytes : {0, 16, 64, 256, 700, 1000, 4096}) {
      ALPHEUS_RETURN_IF_ERROR(PrintAppend(log, bytes, frequency));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace alpheus

int main() {
  const absl::Status status = alpheus::Run();
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
