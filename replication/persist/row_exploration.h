// SPDX-License-Identifier: Apache-2.0
// row_exploration: whether steps make an update persistent on a platform, by
// trying everything that may happen (row_world.h), with the power cut in each
// state.
//
// Idea: once the requester takes the update for persistent every cut must leave
// it whole; and of a compound one no cut at all may leave b without a. What is
// known at the requester after the cut only, because it was on its way, needs
// no case of its own: that it is known at once is one of the ways.
// Thread safety: pure functions.
// References: remote persistence taxonomy §3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_REPLICATION_PERSIST_ROW_EXPLORATION_H_
#define ALPHEUS_REPLICATION_PERSIST_ROW_EXPLORATION_H_

#include <cstdint>
#include <span>

#include "replication/persist/method.h"
#include "replication/persist/row_world.h"

namespace alpheus {

// The worse, the later.
enum class RowVerdict {
  kOk,
  kEndless,  // somebody waits for what never comes; nothing wrong was said
  kOrder,    // b without a, of what was not acknowledged
  kLoss,     // the requester took for persistent what is not
};
// "OK", "ENDLESS", "ORDER", "LOSS".
const char* RowVerdictName(RowVerdict verdict);

struct RowResult {
  RowVerdict verdict = RowVerdict::kOk;
  uint64_t states = 0;
  uint64_t images = 0;  // what cuts left, looked at
};

// All states, or all until a loss.
RowResult ExploreRow(const RowWorld::Options& options, UpdateKind kind,
                     std::span<const Step> steps);

}  // namespace alpheus

#endif  // ALPHEUS_REPLICATION_PERSIST_ROW_EXPLORATION_H_
