// SPDX-License-Identifier: Apache-2.0
// row_exploration: checks whether steps make an update persistent on a
// platform, by trying everything that may happen (row_world.h), with a power
// cut in each state.
//
// Idea: once the requester takes the update for persistent, every cut must
// leave it whole. And no cut at all may leave b of a compound update without a.
// An event that reaches the requester only after the cut needs no case of its
// own: that it arrives at once is one of the ways.
// Thread safety: pure functions.
// References: remote persistence taxonomy §3;
// docs/design/remote_persistence.md.
#ifndef ALPHEUS_TOOLS_MODEL_METHODS_ROW_EXPLORATION_H_
#define ALPHEUS_TOOLS_MODEL_METHODS_ROW_EXPLORATION_H_

#include <cstdint>
#include <span>

#include "replication/persist/platform/method.h"
#include "tools/model/methods/row_world.h"

namespace alpheus::model {

// From best to worst.
enum class RowVerdict {
  kOk,
  // A program waits for an event that never comes; nothing false was said.
  kEndless,
  kOrder,  // b without a, of an unacknowledged update
  kLoss,   // the requester took for persistent an update that is not
};
// Returns "OK", "ENDLESS", "ORDER" or "LOSS".
const char* RowVerdictName(RowVerdict verdict);

struct RowResult {
  RowVerdict verdict = RowVerdict::kOk;
  uint64_t states = 0;
  uint64_t images = 0;  // images left by cuts and checked
};

// Explores all states, or until a loss.
RowResult ExploreRow(const RowWorld::Options& options,
                     replication::UpdateKind kind,
                     std::span<const replication::Step> steps);

}  // namespace alpheus::model

#endif  // ALPHEUS_TOOLS_MODEL_METHODS_ROW_EXPLORATION_H_
