// SPDX-License-Identifier: Apache-2.0
// number_bounds: checks that the numbers of a log leave room to write it
// further.
//
// Thread safety: a pure function.
#ifndef ALPHEUS_RECOVERY_REPLICA_NUMBER_BOUNDS_H_
#define ALPHEUS_RECOVERY_REPLICA_NUMBER_BOUNDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "log/core/read/record_cursor.h"
#include "log/format/superline.h"

namespace alpheus::recovery {

// Returns an error if the log's numbers are so near their bounds that it could
// be opened and written, and then never be read again. Only a forged region has
// such numbers. `name` is the region's. Errors: DataLoss.
absl::Status CheckRoomToContinue(const std::string& name, const Superline& next,
                                 uint64_t superline_seq,
                                 const LogPosition& end);

}  // namespace alpheus::recovery

#endif  // ALPHEUS_RECOVERY_REPLICA_NUMBER_BOUNDS_H_
