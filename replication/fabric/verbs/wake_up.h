// SPDX-License-Identifier: Apache-2.0
// wake_up: the descriptor that wakes a sleeping thread of a verbs adapter.
//
// Thread safety: WakeUp's members concurrently.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_WAKE_UP_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_WAKE_UP_H_

#include <array>
#include <cstdint>

#include "absl/status/status.h"

namespace alpheus::fabric::verbs {

// Makes reads of the descriptor never block. Errors: Unavailable.
absl::Status SetNonBlocking(int descriptor);

class WakeUp {
 public:
  WakeUp();
  ~WakeUp();
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  // Makes Wait return, now or when it is called next, until Clear.
  void Wake() const;
  void Clear() const;
  // Waits until one of three more descriptors can be read, or for the timeout;
  // -1: forever.
  void Wait(const std::array<int, 3>& others, int64_t timeout_ns) const;

 private:
  int descriptor_;
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_WAKE_UP_H_
