// SPDX-License-Identifier: Apache-2.0
#include "api/admin/instruct_candidates.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/control_call.h"

namespace alpheus {

using recovery::ControlCall;
using recovery::Heard;
using recovery::InstructionKind;

namespace {

// Nodes are asked again after this time; so are those that are not reached.
constexpr int64_t kAskNanos = 20'000'000;
// Silence of a primary, for a look at it.
constexpr uint64_t kSilenceNanos = 1'000'000'000;

class Instructing {
 public:
  Instructing(const ElectOptions& options,
              const quorum::ClusterConfiguration& cluster,
              Connectivity& connectivity, InstructionKind kind)
      : options_(options),
        cluster_(cluster),
        connectivity_(connectivity),
        instruction_{kind, NodeId(options.node),
                     connectivity.random.Next() | 1},
        stands_by_(
            Deadline::In(std::chrono::milliseconds(options.timeout_ms / 3))),
        deadline_(Deadline::In(std::chrono::milliseconds(options.timeout_ms))) {
    hello_.cluster_id = cluster.cluster_id;
    hello_.log_id = quorum::LogIdOf(cluster.cluster_id, options.log_name);
    hello_.primary = {cluster.members.front().node,
                      connectivity.random.Next() | 1};
    for (const quorum::ClusterMember& member : cluster.members) {
      nodes_.push_back({&member, nullptr, std::nullopt, {}});
    }
  }

  // Errors: as Candidate::Elect and Drain.
  absl::StatusOr<PrimaryReport> Run() {
    // First a look: an instruction for nobody would only end a primary.
    ALPHEUS_RETURN_IF_ERROR(CheckStands());
    for (;;) {
      Round();
      if (const std::optional<PrimaryReport> done = Obeyed()) return *done;
      if (deadline_.HasPassed(Clock::Real().NowNanos())) return TooLate();
    }
  }

  bool OnConnectionEvent(const fabric::ConnectionEvent& event) {
    return std::ranges::any_of(nodes_, [&](const Node& node) {
      return node.call != nullptr && node.call->OnConnectionEvent(event);
    });
  }
  bool OnCompletion(const fabric::Completion& completion) {
    return std::ranges::any_of(nodes_, [&](const Node& node) {
      return node.call != nullptr && node.call->OnCompletion(completion);
    });
  }

 private:
  struct Node {
    const quorum::ClusterMember* member = nullptr;
    std::unique_ptr<ControlCall> call;
    std::optional<Heard> heard;  // what it said last
    absl::Status status;
    bool tells = false;  // the call has the instruction
    bool is_told = false;
  };

  recovery::Hear Look() const {
    recovery::Hear look;
    look.silence_ns = kSilenceNanos;
    return look;
  }

  void Begin(Node& node, const recovery::Message& request) {
    // A node sees a process of its own as one that may wait for its replica.
    recovery::Hello hello = hello_;
    hello.primary.node = node.member->node;
    node.call = std::make_unique<ControlCall>(
        *connectivity_.fabric,
        ControlCall::Options{node.member->address.ToString(),
                             node.member->node,
                             hello,
                             deadline_,
                             {cluster_.key, &connectivity_.random}},
        request);
  }

  // Asks all nodes once, or tells them, if they were not told. One that is slow
  // is waited for in the next rounds, too.
  void Round(bool is_look = false) {
    for (Node& node : nodes_) {
      const bool is_pending = node.call != nullptr &&
                              node.call->status().ok() && !node.call->may_ask();
      if (is_pending) continue;
      node.tells = !is_look && !node.is_told;
      const recovery::Message request =
          node.tells ? recovery::Message(recovery::Instruct{instruction_})
                     : recovery::Message(Look());
      if (node.call != nullptr && node.call->may_ask()) {
        node.call->Ask(request);
      } else {
        Begin(node, request);
      }
    }
    FabricPump pump(*connectivity_.fabric);
    const Deadline until =
        Deadline::AtNanos(Clock::Real().NowNanos() + 10 * kAskNanos);
    pump.RunUntil(
        [&] {
          return std::ranges::all_of(
              nodes_, [](const Node& node) { return node.call->done(); });
        },
        until, *this);
    for (Node& node : nodes_) Take(node);
    pump.RunUntil([] { return false; },
                  Deadline::AtNanos(Clock::Real().NowNanos() + kAskNanos),
                  *this);
  }

  static void Take(Node& node) {
    node.heard.reset();
    if (!node.call->done()) {
      node.status = absl::UnavailableError("it does not answer");
      return;
    }
    node.status = node.call->status();
    if (!node.status.ok()) {
      node.call.reset();
    } else if (const auto* heard = std::get_if<Heard>(&*node.call->reply())) {
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
      const absl::Status why = WhyNobodyCould(needs_another);
      if (why.ok()) return why;
      const bool is_reached = std::ranges::any_of(
          nodes_, [](const Node& node) { return node.heard.has_value(); });
      if (is_reached && stands_by_.HasPassed(Clock::Real().NowNanos())) {
        return why;
      }
      if (deadline_.HasPassed(Clock::Real().NowNanos())) return Unreached();
    }
  }

  absl::Status WhyNobodyCould(bool needs_another) const {
    if (!Stands(/*at_the_node=*/true)) {
      return absl::FailedPreconditionError(absl::StrCat(
          "log ", options_.log_name, ": nobody stands for primary at node ",
          options_.node, ". Start `alpheusd --stand ", options_.log_name,
          "` there, or a program that stands"));
    }
    if (!needs_another || Stands(/*at_the_node=*/false)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "log ", options_.log_name, ": nobody but node ", options_.node,
        " stands for primary, so nobody would take the log over. Nothing was "
        "changed. Start `alpheusd --stand ",
        options_.log_name,
        "` at another node, or a program that stands; to leave the log without "
        "a primary, end the program at node ",
        options_.node));
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
      absl::StrAppend(&text, "; node ", node.member->node.value, ": ",
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
  const quorum::ClusterConfiguration& cluster_;
  Connectivity& connectivity_;
  const recovery::Instruction instruction_;
  const Deadline stands_by_;  // the node's candidate is there by then
  const Deadline deadline_;
  recovery::Hello hello_;
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
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Connectivity> connectivity,
                           Connectivity::Open(cluster, NodeId(0)));
  return Instructing(options, cluster, *connectivity, kind).Run();
}

}  // namespace alpheus
