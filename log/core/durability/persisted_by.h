// SPDX-License-Identifier: Apache-2.0
// persisted_by: which replicas have persisted a record, and all before it.
#ifndef ALPHEUS_LOG_CORE_DURABILITY_PERSISTED_BY_H_
#define ALPHEUS_LOG_CORE_DURABILITY_PERSISTED_BY_H_

#include <cstddef>

namespace alpheus {

enum class PersistedBy {
  // This process's own. A crash may take the record, if this replica is lost
  // or does not take part in the next opening.
  kOwnReplica,
  // W replicas: the record is durable.
  kQuorum,
  // All that are in sync at some moment, at least W. A member that is out of
  // sync is not waited for; one that has just joined is.
  kAllInSync,
};

inline constexpr size_t kPersistedByCount = 3;

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_DURABILITY_PERSISTED_BY_H_
