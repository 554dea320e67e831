// SPDX-License-Identifier: Apache-2.0
// opening_quorums_fixture: replicas that answer an opening with several
// configurations, and what is judged of them.
#ifndef ALPHEUS_TESTS_RECOVERY_OPENING_OPENING_QUORUMS_FIXTURE_H_
#define ALPHEUS_TESTS_RECOVERY_OPENING_OPENING_QUORUMS_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "recovery/opening/chooser.h"
#include "recovery/opening/opening_quorums.h"

namespace alpheus::testing {

class OpeningQuorumsFixture : public ::testing::Test {
 protected:
  // Node n has incarnation 100 + n.
  static Member At(int node) {
    const auto number = static_cast<uint64_t>(node);
    return {NodeId(number), 100 + number};
  }

  static Configuration Of(uint64_t id, const std::vector<int>& nodes,
                          uint32_t w) {
    Configuration configuration{
        {id, static_cast<uint32_t>(nodes.size()), w, {}}};
    for (const int node : nodes) configuration.members.push_back(At(node));
    return configuration;
  }

  static Configuration MadeFrom(const MemberList& from,
                                Configuration configuration) {
    configuration.made_from = from;
    return configuration;
  }

  static recovery::MembersChange ChangeOf(const Configuration& from,
                                          const Configuration& to) {
    recovery::MembersChange change{from.id, recovery::SizesOf(from), {},
                                   to.id,   recovery::SizesOf(to),   {},
                                   {}};
    for (const Member& m : from.members) change.from_nodes.push_back(m.node);
    for (const Member& m : to.members) change.to_nodes.push_back(m.node);
    return change;
  }

  void Add(int node, const Configuration& configuration, uint64_t epoch) {
    recovery::StateReport report;
    report.node = At(node).node;
    report.incarnation = At(node).incarnation;
    report.configuration = configuration;
    report.ring_capacity = 1024;
    report.log_epoch = Epoch(epoch);
    report.table = EpochTable::Empty({1, 1}).With(
        {Epoch(epoch), epoch, Lsn(1), RingOffset(), 0}, Lsn(1));
    report.head = {Lsn(1), RingOffset(), 0};
    reports_.push_back(std::move(report));
  }
  void AddBlank(int node, const Configuration& configuration) {
    recovery::StateReport report;
    report.node = At(node).node;
    report.incarnation = At(node).incarnation;
    report.configuration = configuration;
    report.ring_capacity = 1024;
    report.table = EpochTable::Empty({1, 1});
    report.head = {Lsn(1), RingOffset(), 0};
    report.blank = true;
    reports_.push_back(std::move(report));
  }
  // By E's own sizes. An opening that changes nothing, or this.
  absl::Status Judge(const Configuration& target,
                     const recovery::MembersChange* change = nullptr) {
    const Configuration* const newest = recovery::NewestConfiguration(reports_);
    auto decision = recovery::Choose(recovery::SizesOf(*newest), reports_);
    if (!decision.ok()) return decision.status();
    decision_ = *std::move(decision);
    if (decision_.outcome != recovery::Outcome::kChosen) {
      return absl::UnavailableError(decision_.reason);
    }
    promises_ = recovery::JudgePromises(decision_, reports_, target, change);
    const quorum::QuorumSizes sizes = recovery::SizesOf(*newest);
    return recovery::CheckPromises(
        promises_, decision_, reports_, target, change != nullptr,
        std::max(sizes.read_quorum, sizes.write_quorum));
  }
  recovery::InstallQuorums ToInstall(const Configuration& target,
                                     bool is_change) {
    return recovery::QuorumsToInstall(promises_, decision_, reports_, target,
                                      is_change);
  }

  std::vector<recovery::StateReport> reports_;
  recovery::Decision decision_;
  recovery::Promises promises_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_RECOVERY_OPENING_OPENING_QUORUMS_FIXTURE_H_
