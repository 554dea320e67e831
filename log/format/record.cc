// SPDX-License-Identifier: Apache-2.0
#include "log/format/record.h"

namespace alpheus {

EpochKey::EpochKey(Uuid log_id, Epoch epoch, uint64_t nonce) {
  if (IsMutant("kSeedWithoutLog")) log_id = {};
  if (IsMutant("kSeedWithoutEpoch")) epoch = Epoch(0);
  if (IsMutant("kSeedWithoutNonce")) nonce = 0;
  key_ = Mix(Mix(Mix(log_id.high, log_id.low), epoch.value), nonce);
}

}  // namespace alpheus
