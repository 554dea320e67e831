// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/checkers/mark_checker.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "absl/strings/str_cat.h"
#include "log/format/layout.h"

namespace alpheus::sim {

void MarkChecker::OnSuperline(int machine, Epoch log_epoch, Lsn head) {
  Seen& seen = seen_[machine];
  if (log_epoch != seen.log_epoch) {
    seen.log_epoch = log_epoch;
    seen.proven = Lsn(0);
    seen.lines = {};  // their values are news in this epoch
  } else if (head < seen.head) {
    oracle_.Violate(
        "P-A6", absl::StrCat("machine ", machine, ": the head goes back from ",
                             "LSN ", seen.head.value, " to LSN ", head.value,
                             " within epoch ", log_epoch.value));
  }
  seen.head = head;
}

void MarkChecker::Check(int machine, std::span<const std::byte> medium) {
  Seen& seen = seen_[machine];
  WatermarkPair pair;
  bool is_news = false;
  for (int line = 0; line < 2; ++line) {
    const std::byte* const there = medium.data() + kWatermarkOffset +
                                   static_cast<uint64_t>(line) * kPageBytes;
    WatermarkFormat& known = seen.lines[line];
    is_news |= std::memcmp(&known, there, sizeof(known)) != 0;
    std::memcpy(&known, there, sizeof(known));
  }
  if (!is_news) return;
  ++checks_;
  for (int line = 0; line < 2; ++line) {
    const auto* const bytes =
        reinterpret_cast<const std::byte*>(&seen.lines[line]);
    pair.lines[line] = DecodeWatermark(log_id_, line, bytes);
  }
  const Lsn proven = pair.Proven(seen.log_epoch);
  if (proven < seen.proven) {
    oracle_.Violate(
        "P-A3.5",
        absl::StrCat("machine ", machine, ": the watermark goes back ",
                     "from LSN ", seen.proven.value, " to LSN ", proven.value,
                     " within epoch ", seen.log_epoch.value));
  }
  seen.proven = proven;
}

Lsn MarkChecker::DurableHead(std::vector<Lsn> heads, int write_quorum) {
  if (heads.size() < static_cast<size_t>(write_quorum)) return Lsn(0);
  std::ranges::sort(heads, std::greater<>());
  return heads[static_cast<size_t>(write_quorum) - 1];
}

}  // namespace alpheus::sim
