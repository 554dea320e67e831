// SPDX-License-Identifier: Apache-2.0
#include "log/core/read/region_check.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/base/attributes.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/superline.h"

namespace alpheus {
namespace {

// Not atomic, like the writers of these words; they write the value that is
// there.
ABSL_ATTRIBUTE_NO_SANITIZE_THREAD uint64_t WordAt(const std::byte* place) {
  return *reinterpret_cast<const volatile uint64_t*>(place);
}

bool NamesLog(std::span<std::byte> region, Uuid log_id) {
  constexpr size_t kLogIdOffset =
      kCellHeaderBytes + offsetof(SuperlineFormat, log_id);
  static_assert(kLogIdOffset % sizeof(uint64_t) == 0);
  for (const std::byte* const copy : SuperlinePlace(region).copies) {
    const std::byte* const named = copy + kLogIdOffset;
    if (WordAt(named) == log_id.high &&
        WordAt(named + sizeof(uint64_t)) == log_id.low) {
      return true;
    }
  }
  return false;
}

}  // namespace

void CheckRegionFile(const Region& region, Uuid log_id) {
  region.CheckFile();
  if (region.alarm()->is_raised()) return;
  if (NamesLog(region.medium_bytes(), log_id)) return;
  region.alarm()->Raise(absl::DataLossError(absl::StrCat(
      region.path(), ": its beginning names log ", log_id.ToString(),
      " no more: it was overwritten, or truncated and extended again, while it "
      "was in use: nothing is acknowledged there any more. Restore it from a "
      "copy")));
}

}  // namespace alpheus
