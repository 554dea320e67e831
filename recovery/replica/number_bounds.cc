// SPDX-License-Identifier: Apache-2.0
#include "recovery/replica/number_bounds.h"

#include "absl/strings/str_cat.h"
#include "log/core/ring/region_state.h"
#include "log/format/remedy.h"

namespace alpheus::recovery {

absl::Status CheckRoomToContinue(const std::string& name, const Superline& next,
                                 uint64_t superline_seq,
                                 const LogPosition& end) {
  const bool has_room =
      end.lsn.value <= kLsnMax / 2 && end.offset.value <= kOffsetMax / 2 &&
      next.promised_epoch.value <= kNumberMax / 2 &&
      next.table_seq <= kNumberMax / 2 && superline_seq <= kNumberMax / 2;
  if (has_room) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      name, ": LSN ", end.lsn.value, ", ring offset ", end.offset.value,
      ", epoch ", next.promised_epoch.value, ", epoch table ", next.table_seq,
      " or superline ", superline_seq,
      " is beyond what any log reaches: not written by this program, or by a "
      "faulty one. Nothing was changed. ",
      kRemedyOfDamage));
}

}  // namespace alpheus::recovery
