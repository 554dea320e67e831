// SPDX-License-Identifier: Apache-2.0
// remedy: what errors of damaged regions tell to do.
#ifndef ALPHEUS_LOG_FORMAT_REMEDY_H_
#define ALPHEUS_LOG_FORMAT_REMEDY_H_

namespace alpheus {

// What to do about a region that can't be read, for the end of an error.
inline constexpr char kRemedyOfDamage[] =
    "Restore the region from a copy; if it is a cluster's replica, remove the "
    "file instead and run `alpheus replace --cluster FILE --log NAME --node "
    "N`, "
    "which copies the log from the others";

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_REMEDY_H_
