// SPDX-License-Identifier: Apache-2.0
// remedy: the remedies that errors of damaged regions name.
#ifndef ALPHEUS_LOG_FORMAT_REMEDY_H_
#define ALPHEUS_LOG_FORMAT_REMEDY_H_

namespace alpheus {

// Remedy for a region that can't be read, for the end of an error.
inline constexpr char kRemedyOfDamage[] =
    "Restore the region from a copy; if it is a cluster's replica, remove the "
    "file instead and run `alpheus replace --cluster FILE --log NAME --node "
    "N`, "
    "which copies the log from the others";

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_REMEDY_H_
