// SPDX-License-Identifier: Apache-2.0
#include "api/admin/instruct_candidates.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/admin/node_rounds.h"
#include "api/wiring/adapter.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/messages.h"

namespace alpheus {

using recovery::Heard;
using recovery::InstructionKind;

namespace {

// Silence of a primary, for a look at it.
constexpr uint64_t kSilenceNanos = 1'000'000'000;

class Instructing {
 public:
  Instructing(const ElectOptions& options,
              const quorum::ClusterConfiguration& cluster,
              Connectivity& connectivity, InstructionKind kind)
      : options_(options),
        configuration_id_(cluster.id),
        instruction_{kind, NodeId(options.node),
                     connectivity.random.Next() | 1},
        stands_by_(
            Deadline::In(std::chrono::milliseconds(options.timeout_ms / 3))),
        deadline_(Deadline::In(std::chrono::milliseconds(options.timeout_ms))),
        rounds_(cluster, connectivity,
                HelloOf(cluster, options.log_name, connectivity.random),
                deadline_) {
    for (const quorum::ClusterMember& member : cluster.members) {
      nodes_.push_back({member.node, std::nullopt, {}});
      rounds_.Add(member.node, member.address.ToString());
    }
  }

  // Errors: as Candidate::Elect and Drain.
  absl::StatusOr<PrimaryReport> Run() {
    // First a look: an instruction for nobody would only end a primary.
    ALPHEUS_RETURN_IF_ERROR(CheckStands());
    for (;;) {
      Round();
      if (const std::optional<PrimaryReport> done = Obeyed()) return *done;
      if (GivesUp()) return Cancelled(/*is_told=*/true);
      if (deadline_.HasPassed(Clock::Real().NowNanos())) return TooLate();
      rounds_.Rest();
    }
  }

 private:
  struct Node {
    NodeId id;
    std::optional<Heard> heard;  // what it said last
    absl::Status status;
    bool tells = false;  // it is asked with the instruction
    bool is_told = false;
  };

  static recovery::Hello HelloOf(const quorum::ClusterConfiguration& cluster,
                                 const std::string& log_name,
                                 RandomSource& random) {
    recovery::Hello hello;
    hello.cluster_id = cluster.cluster_id;
    hello.log_id = quorum::LogIdOf(cluster.cluster_id, log_name);
    hello.primary = {cluster.members.front().node, random.Next() | 1};
    return hello;
  }

  static recovery::Hear Look() {
    recovery::Hear look;
    look.silence_ns = kSilenceNanos;
    return look;
  }

  // Asks all nodes once, or tells them, if they were not told.
  void Round(bool is_look = false) {
    rounds_.Ask([&](size_t number) {
      Node& node = nodes_[number];
      node.tells = !is_look && !node.is_told;
      return node.tells ? recovery::Message(recovery::Instruct{instruction_})
                        : recovery::Message(Look());
    });
    for (size_t i = 0; i < nodes_.size(); ++i)
      Take(nodes_[i], rounds_.answer(i));
  }

  static void Take(Node& node, const NodeRounds::Answer& answer) {
    node.heard.reset();
    node.status = answer.failure;
    if (!answer.reply) {
      if (node.status.ok()) {
        node.status = absl::UnavailableError("it does not answer");
      }
    } else if (const auto* heard = std::get_if<Heard>(&*answer.reply)) {
      node.heard = *heard;
      node.is_told |= node.tells;
    }
  }

  // ICA1. A candidate is there when a node knows it; one that has just begun to
  // stand may not be known yet.
  absl::Status CheckStands() {
    const bool needs_another = instruction_.kind == InstructionKind::kDrain;
    for (;;) {
      Round(/*is_look=*/true);
      ALPHEUS_RETURN_IF_ERROR(CheckList());
      ALPHEUS_RETURN_IF_ERROR(CheckHasReplicas());
      const absl::Status why = WhyNobodyCould(needs_another);
      if (why.ok()) return why;
      if (GivesUp()) return Cancelled(/*is_told=*/false);
      const bool is_reached = std::ranges::any_of(
          nodes_, [](const Node& node) { return node.heard.has_value(); });
      if (is_reached && stands_by_.HasPassed(Clock::Real().NowNanos())) {
        return why;
      }
      if (deadline_.HasPassed(Clock::Real().NowNanos())) return Unreached();
      rounds_.Rest();
    }
  }

  bool GivesUp() const { return options_.gives_up && options_.gives_up(); }

  absl::Status Cancelled(bool is_told) const {
    return absl::CancelledError(
        absl::StrCat("log ", options_.log_name, ": the caller waits no more. ",
                     is_told ? "The nodes were told, and may obey yet"
                             : "Nobody was told anything"));
  }

  // ICA2.
  absl::Status CheckList() const {
    for (const Node& node : nodes_) {
      if (!node.heard || node.heard->configuration_id <= configuration_id_) {
        continue;
      }
      return absl::FailedPreconditionError(absl::StrCat(
          "log ", options_.log_name, ": node ", node.id.value,
          " has list of members ", node.heard->configuration_id,
          ", newer than ", configuration_id_, " in ", options_.cluster_file,
          ". Nobody was told anything. Take the newest cluster file, here and "
          "at the nodes"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckHasReplicas() const {
    const bool is_nowhere = std::ranges::all_of(
        nodes_, [](const Node& node) { return absl::IsNotFound(node.status); });
    if (!is_nowhere) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(
        "log ", options_.log_name,
        ": all nodes answer, and none has a replica. Is the name right? "
        "`alpheus format` makes a log"));
  }

  absl::Status WhyNobodyCould(bool needs_another) const {
    if (!Stands(/*at_the_node=*/true)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "log ", options_.log_name, ": nobody stands for primary at node ",
          options_.node,
          needs_another
              ? ", so there is nothing to hand over"
              : absl::StrCat(". Start `alpheusd --stand ", options_.log_name,
                             "` there, or a program that stands"),
          NotReached()));
    }
    if (!needs_another || Stands(/*at_the_node=*/false)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "log ", options_.log_name, ": nobody but node ", options_.node,
        " stands for primary, so nobody would take the log over. Nothing was "
        "changed. ",
        Drained(), "Start `alpheusd --stand ", options_.log_name,
        "` at another node, or a program that stands; to leave the log without "
        "a primary, end the program at node ",
        options_.node, NotReached()));
  }

  // Returns what to do with candidates that were drained, as a sentence; "":
  // there are none.
  std::string Drained() const {
    std::set<uint64_t> drained;
    for (const Node& node : nodes_) {
      if (!node.heard) continue;
      for (const recovery::CandidateState& state : node.heard->candidates) {
        if (state.standing == recovery::Standing::kDrained &&
            state.candidate.node != instruction_.node) {
          drained.insert(state.candidate.node.value);
        }
      }
    }
    if (drained.empty()) return "";
    return absl::StrCat(
        "A program that was drained stands again once it is elected (`alpheus "
        "elect`): node ",
        absl::StrJoin(drained, ", "), ". ");
  }

  // Names the nodes that may know more, as a part of a sentence.
  std::string NotReached() const {
    std::string text;
    for (const Node& node : nodes_) {
      if (node.heard) continue;
      absl::StrAppend(&text, "; node ", node.id.value,
                      " was not asked: ", node.status.message());
    }
    return text;
  }

  // Returns true if a node names a candidate of the instructed node, or one of
  // another node that may take the log over.
  bool Stands(bool at_the_node) const {
    const auto is_one = [&](const recovery::CandidateState& state) {
      const bool is_there = state.candidate.node == instruction_.node;
      return is_there == at_the_node &&
             (is_there || state.standing == recovery::Standing::kReady);
    };
    return std::ranges::any_of(nodes_, [&](const Node& node) {
      return node.heard.has_value() &&
             std::ranges::any_of(node.heard->candidates, is_one);
    });
  }

  // Returns the primary of the latest epoch that a node hears.
  PrimaryReport Primary() const {
    PrimaryReport report;
    for (const Node& node : nodes_) {
      if (!node.heard.has_value()) continue;
      for (const recovery::CandidateState& state : node.heard->candidates) {
        if (state.holds > report.epoch) {
          report = {state.candidate.node.value, state.holds};
        }
      }
    }
    return report;
  }

  std::optional<PrimaryReport> Obeyed() const {
    const PrimaryReport primary = Primary();
    const bool is_there = primary.node == options_.node;
    if (primary.node == 0) return std::nullopt;
    if (is_there != (instruction_.kind == InstructionKind::kElect)) {
      return std::nullopt;
    }
    return primary;
  }

  absl::Status Unreached() const {
    std::string text = absl::StrCat(
        "log ", options_.log_name, ": no node was reached in ",
        options_.timeout_ms,
        " ms, so nobody was told anything. Check that alpheusd runs at the "
        "addresses of the cluster file");
    for (const Node& node : nodes_) {
      absl::StrAppend(&text, "; node ", node.id.value, ": ",
                      node.status.message());
    }
    return absl::UnavailableError(text);
  }

  absl::Status TooLate() const {
    const PrimaryReport primary = Primary();
    return absl::DeadlineExceededError(absl::StrCat(
        "log ", options_.log_name, ": after ", options_.timeout_ms, " ms ",
        primary.ToString(), ", expected ",
        instruction_.kind == InstructionKind::kElect
            ? absl::StrCat("node ", options_.node,
                           ". It may become primary yet")
            : absl::StrCat("another node. The program at node ", options_.node,
                           " may not have given the log back, or nobody else "
                           "could open it yet"),
        "; `alpheus status` shows the log's members"));
  }

  const ElectOptions& options_;
  const uint64_t configuration_id_;
  const recovery::Instruction instruction_;
  const Deadline stands_by_;  // the node's candidate is there by then
  const Deadline deadline_;
  NodeRounds rounds_;
  std::vector<Node> nodes_;
};

}  // namespace

absl::StatusOr<PrimaryReport> InstructCandidates(const ElectOptions& options,
                                                 InstructionKind kind) {
  ALPHEUS_ASSIGN_OR_RETURN(const quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  if (quorum::FindMember(cluster, NodeId(options.node)) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.cluster_file, ": node ", options.node,
                     " is not a member of the cluster"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<Connectivity> connectivity,
      Connectivity::Open(cluster, NodeId(options.as_node)));
  return Instructing(options, cluster, *connectivity, kind).Run();
}

}  // namespace alpheus
