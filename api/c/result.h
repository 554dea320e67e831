// SPDX-License-Identifier: Apache-2.0
// result: converts absl::Status to the codes and errors of the C interface.
//
// Thread safety: free functions; the error belongs to the caller.
#ifndef ALPHEUS_API_C_RESULT_H_
#define ALPHEUS_API_C_RESULT_H_

#include "absl/status/status.h"
#include "alpheus/alpheus.h"

namespace alpheus::c {

// Fills `error`, unless it is nullptr, and returns the code of `status`.
alpheus_code Return(const absl::Status& status, alpheus_error* error);

// Returns OK, without a Status.
alpheus_code ReturnOk(alpheus_error* error);

// Returns ALPHEUS_INVALID_ARGUMENT: `argument` of `function` is NULL.
alpheus_code ReturnNull(const char* function, const char* argument,
                        alpheus_error* error);

// Checks a pointer and size of data. Errors: InvalidArgument (no data, yet a
// size above 0).
absl::Status CheckData(const char* function, const void* data, size_t size);

}  // namespace alpheus::c

#endif  // ALPHEUS_API_C_RESULT_H_
