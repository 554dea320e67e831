// SPDX-License-Identifier: Apache-2.0
#include "log/core/ring/region_repair.h"

#include <vector>

#include "log/base/status_macros.h"
#include "log/format/atomic_cell.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
std::byte* RegionRepair<P>::RingOnMedium() const {
  return OnMedium(pmem_, ring_.data());
}

template <Persistence P>
absl::Status RegionRepair<P>::RestoreBytes(RingOffset offset,
                                           std::span<const std::byte> bytes) {
  std::byte* const place = ring_.At(offset);
  pmem_.Copy(place, bytes.data(), bytes.size());
  if (Persist(pmem_, place, bytes.size())) return absl::OkStatus();
  failure_.Fail(pmem_.Error());
  return failure_.status();
}

template <Persistence P>
absl::StatusOr<int> RegionRepair<P>::RepairCopies() {
  ALPHEUS_ASSIGN_OR_RETURN(const bool superline, superline_.Repair());
  ALPHEUS_ASSIGN_OR_RETURN(const bool table, RepairTable());
  return (superline ? 1 : 0) + (table ? 1 : 0);
}

// Safe: no thread writes the table while its epoch runs.
template <Persistence P>
absl::StatusOr<bool> RegionRepair<P>::RepairTable() {
  const Superline superline = superline_.Current();
  const CellPlace place = EpochTablePlace(region_, superline);
  const std::vector<std::byte> content = reclaimer_.table().Encode();
  absl::StatusOr<bool> repaired = RepairCellOnMedium(pmem_, place);
  if (!repaired.ok()) {
    failure_.Fail(repaired.status());
    return failure_.status();
  }
  bool is_repaired = *repaired;
  for (const int copy : {0, 1}) {
    const CellCopy read = ReadCellCopy(place, copy);
    if (read == CellCopy{true, superline.table_seq, content}) continue;
    if (!WriteCellCopy(pmem_, place, copy, superline.table_seq, content)) {
      failure_.Fail(pmem_.Error());
      return failure_.status();
    }
    is_repaired = true;
  }
  return is_repaired;
}

ALPHEUS_INSTANTIATE_CLASS(RegionRepair);

}  // namespace alpheus
