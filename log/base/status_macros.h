// SPDX-License-Identifier: Apache-2.0
// status_macros: early return on a failed absl::Status or StatusOr.
#ifndef ALPHEUS_LOG_BASE_STATUS_MACROS_H_
#define ALPHEUS_LOG_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define ALPHEUS_RETURN_IF_ERROR(expression)                                   \
  do {                                                                        \
    if (::absl::Status alpheus_status_ = (expression); !alpheus_status_.ok()) \
        [[unlikely]] {                                                        \
      return alpheus_status_;                                                 \
    }                                                                         \
  } while (false)

#define ALPHEUS_CONCAT_INNER_(a, b) a##b
#define ALPHEUS_CONCAT_(a, b) ALPHEUS_CONCAT_INNER_(a, b)

// Declares (or assigns) `lhs` from the value of a StatusOr expression.
#define ALPHEUS_ASSIGN_OR_RETURN(lhs, expression)                              \
  ALPHEUS_ASSIGN_OR_RETURN_INNER_(ALPHEUS_CONCAT_(alpheus_or_, __LINE__), lhs, \
                                  expression)
#define ALPHEUS_ASSIGN_OR_RETURN_INNER_(temporary, lhs, expression) \
  auto temporary = (expression);                                    \
  if (!temporary.ok()) [[unlikely]]                                 \
    return std::move(temporary).status();                           \
  lhs = *std::move(temporary)

#endif  // ALPHEUS_LOG_BASE_STATUS_MACROS_H_
