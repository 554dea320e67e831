// SPDX-License-Identifier: Apache-2.0
// options: converts the versioned option structs of the C interface to
// options.h.
//
// Idea: a struct holds its own size. Fields that the caller is too old to know
// are 0, which means the default; fields that the library is too old to know
// must be 0.
//
// Thread safety: free functions.
#ifndef ALPHEUS_API_C_OPTIONS_H_
#define ALPHEUS_API_C_OPTIONS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "alpheus/alpheus.h"
#include "alpheus/options.h"

namespace alpheus::c {

// Errors of all: InvalidArgument (size not set, or an option that this library
// does not know).
absl::StatusOr<FormatOptions> FormatOptionsOf(
    const alpheus_format_options* given);
absl::StatusOr<LogOptions> LogOptionsOf(const alpheus_log_options* given);
absl::StatusOr<ForceOptions> ForceOptionsOf(const alpheus_force_options* given);

// Returns the deadline; 0: none.
Deadline DeadlineOf(int64_t deadline_ns);

}  // namespace alpheus::c

#endif  // ALPHEUS_API_C_OPTIONS_H_
