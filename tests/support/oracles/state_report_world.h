// SPDX-License-Identifier: Apache-2.0
// state_report_world: answers of replicas from a few letters, for tests of
// recovery.
//
// Every record is one line; its checksum follows from its identity, so that
// chains agree wherever histories do.
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_STATE_REPORT_WORLD_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_STATE_REPORT_WORLD_H_

#include <string>
#include <utility>
#include <vector>

#include "recovery/opening/chooser.h"
#include "recovery/protocol/state_report.h"
#include "tests/support/oracles/naive_chooser.h"

namespace alpheus::testing {

inline constexpr quorum::QuorumSizes kTwoOfThree{3, 2, 2};
inline constexpr uint64_t kWorldRingBytes = 8 * kLineBytes;

// The report that says what `reply` says, of a member of a log with N replicas
// (nodes 1 to N, incarnation 100 + node). A blank one has another incarnation.
recovery::StateReport ReportOf(const naive::Reply& reply,
                               const quorum::QuorumSizes& sizes);
std::vector<recovery::StateReport> ReportsOf(
    const std::vector<naive::Reply>& replies, const quorum::QuorumSizes& sizes);

// Returns the report of the same replica whose place is after `records` records
// from its head on, or after the last one before a gap if those are fewer.
recovery::StateReport Shortened(const recovery::StateReport& report,
                                uint64_t records);

// A reply whose cells are `verdicts`, haves of the epochs that own them.
naive::Reply ReplyOf(int node, int log_epoch,
                     std::vector<std::pair<int, int>> table,
                     const std::string& verdicts);

// W with the smallest R that meets it.
quorum::QuorumSizes SizesOf(int replicas, int write);

// The chooser's result in the naive one's words.
naive::Choice ChoiceOf(const absl::StatusOr<recovery::Decision>& decision,
                       const std::vector<recovery::StateReport>& reports);

// One line for messages.
std::string Describe(const std::vector<naive::Reply>& replies);
std::string Describe(const naive::Choice& choice);

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_STATE_REPORT_WORLD_H_
