// SPDX-License-Identifier: Apache-2.0
// region_look: whether the region of an open log is still the log's.
//
// Idea: a file can be overwritten, or cut off and extended again, while it is
// mapped: it is still there under its name, and is no log any more, so that
// what is persisted in it now will not be found. So whoever has it open looks
// from time to time whether the path leads to it, and whether its beginning
// still names the log. One copy of the superline is enough: a bad one is mended
// from the other.
//
// Thread safety: concurrently with all that writes to the region: an update of
// the superline writes the same name.
#ifndef ALPHEUS_LOG_CORE_READ_REGION_LOOK_H_
#define ALPHEUS_LOG_CORE_READ_REGION_LOOK_H_

#include "log/base/ids.h"
#include "log/pmem/region.h"

namespace alpheus {

// Raises the region's alarm if it is no longer that of `log_id`. Some
// microseconds. Requires: it was, and is not given up.
void LookAtRegion(const Region& region, Uuid log_id);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_REGION_LOOK_H_
