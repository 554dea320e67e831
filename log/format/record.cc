// SPDX-License-Identifier: Apache-2.0
#include "log/format/record.h"

namespace alpheus {

EpochKey::EpochKey(Uuid log_id, Epoch epoch, uint64_t nonce) {
  key_ = Mix(Mix(Mix(log_id.high, log_id.low), epoch.value), nonce);
}

}  // namespace alpheus
