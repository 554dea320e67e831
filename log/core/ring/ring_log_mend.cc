// SPDX-License-Identifier: Apache-2.0
// What ring_log does for whoever scrubs its region while it is written.
#include <cstddef>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "log/base/status_macros.h"
#include "log/core/ring/ring_log.h"
#include "log/format/atomic_cell.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/pmem/backends.h"

namespace alpheus {

template <Persistence P>
void RingLog<P>::WhileAtRest(absl::FunctionRef<void()> work) const {
  reclaimer_.WhileAtRest(work);
}

template <Persistence P>
std::byte* RingLog<P>::RingOnMedium() const {
  return OnMedium(pmem_, ring_.data());
}

template <Persistence P>
absl::Status RingLog<P>::RestoreBytes(RingOffset offset,
                                      std::span<const std::byte> bytes) {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  std::byte* const place = ring_.At(offset);
  pmem_.Copy(place, bytes.data(), bytes.size());
  if (Persist(pmem_, place, bytes.size())) return absl::OkStatus();
  failure_.Fail(pmem_.Error());
  return failure_.status();
}

template <Persistence P>
absl::StatusOr<int> RingLog<P>::MendCopies() {
  ALPHEUS_RETURN_IF_ERROR(Usable());
  ALPHEUS_ASSIGN_OR_RETURN(const bool superline, superline_.Mend());
  ALPHEUS_ASSIGN_OR_RETURN(const bool table, MendTable());
  return (superline ? 1 : 0) + (table ? 1 : 0);
}

// Nobody writes the table while its epoch runs.
template <Persistence P>
absl::StatusOr<bool> RingLog<P>::MendTable() {
  const Superline superline = superline_.Current();
  const CellPlace place = EpochTablePlace(region_, superline);
  const std::vector<std::byte> content = table().Encode();
  absl::StatusOr<bool> mended = MendCellOnMedium(pmem_, place);
  if (!mended.ok()) {
    failure_.Fail(mended.status());
    return failure_.status();
  }
  bool is_mended = *mended;
  for (const int copy : {0, 1}) {
    const CellCopy read = ReadCellCopy(place, copy);
    if (read == CellCopy{true, superline.table_seq, content}) continue;
    if (!WriteCellCopy(pmem_, place, copy, superline.table_seq, content)) {
      failure_.Fail(pmem_.Error());
      return failure_.status();
    }
    is_mended = true;
  }
  return is_mended;
}

// Members, not the class: that is for ring_log.cc.
#define ALPHEUS_INSTANTIATE(P)                                                \
  template void RingLog<P>::WhileAtRest(absl::FunctionRef<void()>) const;     \
  template std::byte* RingLog<P>::RingOnMedium() const;                       \
  template absl::Status RingLog<P>::RestoreBytes(RingOffset,                  \
                                                 std::span<const std::byte>); \
  template absl::StatusOr<int> RingLog<P>::MendCopies();                      \
  template absl::StatusOr<bool> RingLog<P>::MendTable()

ALPHEUS_FOR_EACH_BACKEND(ALPHEUS_INSTANTIATE);

#undef ALPHEUS_INSTANTIATE

}  // namespace alpheus
