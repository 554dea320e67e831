// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/opening_choice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "quorum/arithmetic/ballot.h"

namespace alpheus::recovery {
namespace {

// Returns an error that names both lists if the log has another list: that is
// why nothing could be chosen.
absl::Status CheckList(const GivenMembers& given,
                       const std::vector<StateReport>& reports) {
  const Configuration* const found = NewestConfiguration(reports);
  if (found == nullptr) return absl::OkStatus();
  if (given.change != nullptr) return CheckFound(*given.change, *found);
  const bool is_other = found->id == given.configuration_id &&
                        (found->replica_count != given.sizes.replica_count ||
                         found->write_quorum != given.sizes.write_quorum);
  if (!is_other) return absl::OkStatus();
  std::vector<NodeId> nodes = given.nodes;
  std::sort(nodes.begin(), nodes.end());
  return absl::FailedPreconditionError(absl::StrCat(
      "the log has ", DescribeList(*found), ", the list of members is ",
      DescribeList(given.configuration_id, nodes, given.sizes.write_quorum),
      ". Give the list of members that the log has"));
}

// Returns the sizes of the configuration that the log has. In a change that is
// either of the two, as an earlier attempt may have been cut off.
quorum::QuorumSizes SizesToChooseBy(const GivenMembers& given,
                                    const std::vector<StateReport>& reports) {
  if (given.change == nullptr) return given.sizes;
  const Configuration* const found = NewestConfiguration(reports);
  const bool is_changed = found != nullptr && found->id == given.change->to_id;
  return is_changed ? given.change->to : given.change->from;
}

absl::StatusOr<Configuration> Target(const GivenMembers& given,
                                     const Decision& decision,
                                     const std::vector<StateReport>& reports) {
  if (given.change != nullptr) {
    return TargetOf(*given.change, decision, reports);
  }
  if (decision.configuration.id == given.configuration_id) {
    return decision.configuration;
  }
  return MembersAreNotYet(/*is_change=*/false, decision.configuration.id,
                          given.configuration_id);
}

}  // namespace

absl::Status MembersAreNotYet(bool is_change, uint64_t found,
                              uint64_t expected) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the log has configuration ", found, ", the list of members",
      is_change ? " before the change" : "", " is ", expected,
      ". Give the list that the log has, or change its members first "
      "(`alpheus reconfigure`)"));
}

absl::StatusOr<OpeningChoice> ChooseForOpening(
    const GivenMembers& given, const std::vector<StateReport>& reports) {
  const quorum::QuorumSizes sizes = SizesToChooseBy(given, reports);
  absl::StatusOr<Decision> chosen = Choose(sizes, reports);
  if (!chosen.ok()) {
    ALPHEUS_RETURN_IF_ERROR(CheckList(given, reports));
    return chosen.status();
  }
  OpeningChoice choice;
  choice.decision = *std::move(chosen);
  if (choice.decision.outcome != Outcome::kChosen) {
    choice.wait_reason = choice.decision.reason;
    return choice;
  }
  auto target = Target(given, choice.decision, reports);
  if (absl::IsUnavailable(target.status())) {
    choice.wait_reason = std::string(target.status().message());
    return choice;
  }
  ALPHEUS_RETURN_IF_ERROR(target.status());
  choice.target = *std::move(target);
  choice.promises =
      JudgePromises(choice.decision, reports, choice.target, given.change);
  const absl::Status enough =
      CheckPromises(choice.promises, choice.decision, reports, choice.target,
                    given.change != nullptr, quorum::OpeningQuorumSize(sizes));
  choice.is_chosen = enough.ok();
  if (!enough.ok()) choice.wait_reason = std::string(enough.message());
  return choice;
}

}  // namespace alpheus::recovery
