// SPDX-License-Identifier: Apache-2.0
// region_check: checks that the region of an open log is still that log's.
//
// Idea: a mapped file can be overwritten, or truncated and extended again. It
// still has its name, but is no log any more, so that records persisted in it
// will not be found. So the process that has it open checks from time to time
// that the path leads to it and that its beginning names the log. One copy of
// the superline is enough: a bad one is repaired from the other.
//
// Thread safety: concurrent with all writers of the region: an update of the
// superline writes the same name.
#ifndef ALPHEUS_LOG_CORE_READ_REGION_CHECK_H_
#define ALPHEUS_LOG_CORE_READ_REGION_CHECK_H_

#include "log/base/ids.h"
#include "log/pmem/region.h"

namespace alpheus {

// Raises the region's alarm if it no longer belongs to `log_id`. Takes some
// microseconds. Requires: the region belonged to that log, and was not
// detached.
void CheckRegionFile(const Region& region, Uuid log_id);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_READ_REGION_CHECK_H_
