// SPDX-License-Identifier: Apache-2.0
#include "api/admin/cluster_scrub.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "api/wiring/adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/deadline.h"
#include "log/base/polled.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/cluster/cluster_file.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/control_call.h"
#include "recovery/protocol/readers_list.h"
#include "replication/fabric/fabric.h"

namespace alpheus {

using recovery::ControlCall;

namespace {

class ScrubAsker {
 public:
  ScrubAsker(const ClusterScrubOptions& options,
             quorum::ClusterConfiguration cluster)
      : options_(options), cluster_(std::move(cluster)) {}

  absl::StatusOr<std::vector<ScrubResult>> Run() {
    ALPHEUS_ASSIGN_OR_RETURN(
        fabric_, OpenAdapter(cluster_, NodeId(options_.as_node), random_,
                             {.patience_ms = options_.timeout_ms}));
    for (const quorum::ClusterMember& member : cluster_.members) {
      if (options_.node != 0 && member.node.value != options_.node) continue;
      AddNode(member);
    }
    if (nodes_.empty()) {
      return absl::NotFoundError(
          absl::StrCat(options_.cluster_file, ": node ", options_.node,
                       " is not a member of the cluster"));
    }
    FabricPump(*fabric_).RunUntilDone(*this);
    std::vector<ScrubResult> scrubs;
    for (Asked& asked : nodes_) scrubs.push_back(std::move(asked.scrub));
    return scrubs;
  }

  // The four below are for the pump.
  void OnConnectionEvent(const fabric::ConnectionEvent& event) {
    for (Asked& asked : nodes_) {
      if (asked.control_call->OnConnectionEvent(event)) return;
    }
  }
  void OnCompletion(const fabric::Completion& completion) {
    for (Asked& asked : nodes_) {
      if (asked.control_call->OnCompletion(completion)) return;
    }
  }
  Polled Poll() {
    const int64_t now = Now();
    const bool gives_up = options_.gives_up && options_.gives_up();
    Polled polled = Polled::kDone;
    for (Asked& asked : nodes_) {
      if (!asked.is_over) StepOf(asked, now);
      if (!asked.is_over && gives_up) End(asked, NotWaitedFor(asked));
      if (!asked.is_over) polled = Polled::kIdle;
    }
    return polled;
  }
  Deadline NextPoll() const {
    Deadline next;
    if (options_.gives_up) {
      next = Deadline::AtNanos(Now() + options_.interval_ms * kNanosPerMs);
    }
    for (const Asked& asked : nodes_) {
      if (asked.is_over) continue;
      const int64_t due = asked.is_asked ? asked.silent_at : asked.ask_again_at;
      if (due < next.at_nanos()) next = Deadline::AtNanos(due);
    }
    return next;
  }

 private:
  struct Asked {
    ScrubResult scrub;
    std::unique_ptr<ControlCall> control_call;
    std::optional<uint64_t> passes;  // number at which it is over
    bool is_over = false;
    bool is_asked = true;   // and has not replied yet
    int64_t silent_at = 0;  // deadline of that reply
    int64_t ask_again_at = 0;
  };

  void AddNode(const quorum::ClusterMember& member) {
    Asked asked;
    asked.scrub.node = member.node.value;
    asked.scrub.address = member.address.ToString();
    asked.silent_at = Now() + options_.timeout_ms * kNanosPerMs;
    recovery::Hello hello;
    hello.cluster_id = cluster_.cluster_id;
    hello.log_id = quorum::LogIdOf(cluster_.cluster_id, options_.log_name);
    hello.primary.incarnation = random_.Next() | 1;  // never 0
    asked.control_call = std::make_unique<ControlCall>(
        *fabric_,
        ControlCall::Options{asked.scrub.address,
                             member.node,
                             hello,
                             Deadline(),  // StepOf gives up, and says why
                             {cluster_.key, &random_}},
        recovery::Scrub{/*start=*/true});
    nodes_.push_back(std::move(asked));
  }

  static int64_t Now() { return Clock::Real().NowNanos(); }

  void StepOf(Asked& asked, int64_t now) {
    ControlCall& control_call = *asked.control_call;
    if (!control_call.status().ok()) return End(asked, control_call.status());
    if (const absl::Status listed = CheckList(control_call); !listed.ok()) {
      return End(asked, listed);
    }
    if (asked.is_asked && control_call.may_ask()) OnReply(asked, now);
    if (asked.is_over) return;
    if (asked.is_asked) {
      if (now < asked.silent_at) return;
      return End(asked, absl::UnavailableError(absl::StrCat(
                            asked.scrub.address, ": sent nothing for ",
                            options_.timeout_ms,
                            " ms; start the node if it does not run")));
    }
    if (now < asked.ask_again_at) return;
    asked.is_asked = true;
    asked.silent_at = now + options_.timeout_ms * kNanosPerMs;
    control_call.Ask(recovery::Scrub{});
  }

  // Fails for an outdated list: it would leave replicas out, unnoticed.
  absl::Status CheckList(const ControlCall& control_call) const {
    const recovery::ReadersList list{cluster_.id, cluster_.sizes.replica_count,
                                     cluster_.sizes.write_quorum,
                                     options_.cluster_file};
    if (!control_call.is_proved()) return absl::OkStatus();
    const uint64_t shown = control_call.server_hello()->configuration_id;
    return recovery::IsOutdated(list, shown) ? recovery::Outdated(list, shown)
                                             : absl::OkStatus();
  }

  void OnReply(Asked& asked, int64_t now) {
    const auto* said =
        std::get_if<recovery::Scrubbed>(&*asked.control_call->reply());
    if (said == nullptr) {
      return End(asked,
                 absl::DataLossError(absl::StrCat(
                     asked.scrub.address,
                     ": replied to a Scrub request with a message of another "
                     "kind. The node is faulty: see its messages")));
    }
    asked.is_asked = false;
    asked.ask_again_at = now + options_.interval_ms * kNanosPerMs;
    asked.scrub.said = *said;
    if (!asked.passes.has_value()) asked.passes = said->passes + 1;
    if (options_.progress) options_.progress(asked.scrub);
    if (said->passes < *asked.passes || said->is_running) return;
    if (said->pass.unrepairable == 0) return End(asked, absl::OkStatus());
    End(asked,
        absl::DataLossError(absl::StrCat(
            asked.scrub.address, ": ", said->pass.unrepairable,
            said->pass.unrepairable == 1 ? " damage" : " damages",
            " could not be repaired: no peer that the node reached has these "
            "records whole. The node's messages say why. Start the missing "
            "nodes, and scrub again; if no node is missing, \"Damage on all "
            "replicas\" in docs/use/operating.md says how to go on")));
  }

  static absl::Status NotWaitedFor(const Asked& asked) {
    return absl::CancelledError(absl::StrCat(
        asked.scrub.address,
        ": is not waited for any more; it scrubs on by itself, if it was "
        "reached. Scrub again to hear what it finds"));
  }

  void End(Asked& asked, const absl::Status& status) {
    asked.is_over = true;
    asked.scrub.status = status;
  }

  const ClusterScrubOptions& options_;
  const quorum::ClusterConfiguration cluster_;
  EntropyRandom random_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::vector<Asked> nodes_;
};

}  // namespace

absl::StatusOr<std::vector<ScrubResult>> ScrubCluster(
    const ClusterScrubOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log_name));
  ALPHEUS_ASSIGN_OR_RETURN(quorum::ClusterConfiguration cluster,
                           quorum::LoadClusterFile(options.cluster_file));
  return ScrubAsker(options, std::move(cluster)).Run();
}

}  // namespace alpheus
