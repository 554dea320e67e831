// SPDX-License-Identifier: Apache-2.0
#include "api/admin/ask_primary.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/admin/node_rounds.h"
#include "api/wiring/adapter.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/opening_peer.h"

namespace alpheus {

using recovery::AskChange;
using recovery::ChangeState;
using recovery::ChangeWord;
using recovery::PeerAddress;

namespace {

// Time without a primary after which one that had begun is taken for gone. It
// tells its node where it is once a second (RegionClaimOptions::retry_ns).
constexpr int64_t kGoneNanos = 2'000'000'000;

class PrimaryAsker {
 public:
  PrimaryAsker(const quorum::ClusterConfiguration& cluster,
               const AskPrimaryOptions& options, Connectivity& connectivity,
               const recovery::MembersChange& change,
               const std::vector<PeerAddress>& peers)
      : options_(options),
        request_{connectivity.random.Next() | 1, change, peers},
        log_id_(quorum::LogIdOf(cluster.cluster_id, options.log_name)),
        rounds_(cluster, connectivity,
                HelloOf(cluster.cluster_id, log_id_, connectivity.random),
                options.deadline) {
    for (const PeerAddress& peer : request_.peers) {
      nodes_.push_back({&peer, std::nullopt, {}});
      rounds_.Add(peer.node, peer.address);
    }
  }

  absl::StatusOr<std::optional<RecoveryReport>> Run() {
    for (;;) {
      Round();
      const int64_t now = Clock::Real().NowNanos();
      const bool is_late = options_.deadline.HasPassed(now);
      if (const ChangeState* const made = Find(ChangeWord::kInstalled)) {
        if (!made_) gathers_until_ = now + options_.gather_ns;
        made_ = *made;
        const bool is_gathered =
            made_->missing.empty() || now >= gathers_until_;
        if (is_late || (is_gathered && !Misses(*made_))) return Report();
      } else if (made_) {
        return Report();  // it was made, by a primary that is gone
      } else if (Find(ChangeWord::kRunning) != nullptr) {
        begun_at_ = now;
      } else if (const ChangeState* const cut = Find(ChangeWord::kCutOff)) {
        return NotMade(*cut);
      } else if (const ChangeState* const no = Find(ChangeWord::kRefused)) {
        return NotMade(*no);
      } else if (NobodyIsLeft(now)) {
        return std::nullopt;
      }
      if (is_late) return Unknown();
    }
  }

 private:
  struct Node {
    const PeerAddress* at = nullptr;
    std::optional<ChangeState> said;  // in this round
    // Why it said nothing; OK: it does not answer yet.
    absl::Status failure;
  };

  static recovery::Hello HelloOf(const Uuid& cluster_id, const Uuid& log_id,
                                 RandomSource& random) {
    recovery::Hello hello;
    hello.cluster_id = cluster_id;
    hello.log_id = log_id;
    hello.primary.incarnation = random.Next() | 1;
    return hello;
  }

  void Round() {
    rounds_.Ask(
        [this](size_t /*number*/) { return recovery::Message(request_); });
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const NodeRounds::Answer& answer = rounds_.answer(i);
      nodes_[i].said.reset();
      nodes_[i].failure = answer.failure;
      if (!answer.reply) continue;
      const auto* const said = std::get_if<ChangeState>(&*answer.reply);
      if (said != nullptr && said->id == request_.id) nodes_[i].said = *said;
    }
  }

  const ChangeState* Find(ChangeWord word) const {
    for (const Node& node : nodes_) {
      if (node.said && node.said->word == word) return &*node.said;
    }
    return nullptr;
  }

  // A node that does not answer yet, or whose replica is some process's that
  // says nothing, may be the primary's. One that is busy with another change
  // says so.
  bool NobodyIsLeft(int64_t now) const {
    if (begun_at_ && now < *begun_at_ + kGoneNanos) return false;
    const ChangeState* const waits = Find(ChangeWord::kWaiting);
    const bool some_are_slow = std::ranges::any_of(
        nodes_,
        [](const Node& node) { return !node.said && node.failure.ok(); });
    if (waits == nullptr && !some_are_slow) return true;
    const bool is_busy = waits != nullptr && !waits->why.ok();
    return !begun_at_ && !is_busy && options_.begun_by.HasPassed(now);
  }

  // Returns whether a newcomer is not in sync: it gets a copy of the log while
  // that runs.
  bool Misses(const ChangeState& made) const {
    const recovery::MembersChange& change = request_.change;
    return std::ranges::any_of(made.missing, [&change](NodeId node) {
      const bool stays =
          std::ranges::find(change.from_nodes, node) != change.from_nodes.end();
      return !stays ||
             std::ranges::find(change.replaced, node) != change.replaced.end();
    });
  }

  RecoveryReport Report() const {
    RecoveryReport report;
    report.log_id = log_id_;
    report.epoch = made_->epoch;
    report.head_lsn = made_->head_lsn;
    report.read_from_lsn = report.head_lsn;
    report.end_lsn = made_->next_lsn - 1;
    report.was_running = true;
    for (const NodeId node : made_->missing) {
      report.absent_members.push_back(
          absl::StrCat("node ", node.value,
                       ": not in sync yet; the primary goes on trying"));
    }
    return report;
  }

  absl::Status NotMade(const ChangeState& said) const {
    const absl::Status why = said.why.ok()
                                 ? absl::UnavailableError("it does not say why")
                                 : said.why;
    const char* const end =
        said.word == ChangeWord::kRefused
            ? "Nothing was changed, and the log goes on"
            : "Some members may have the new list; run the same command "
              "again, which completes the change";
    return {why.code(),
            absl::StrCat("log ", options_.log_name, ": its primary, in epoch ",
                         said.epoch.value, ", did not change the members: ",
                         why.message(), ". ", end)};
  }

  absl::Status Unknown() const {
    return absl::UnavailableError(absl::StrCat(
        "log ", options_.log_name, ": the outcome is unknown: its primary ",
        begun_at_ ? "began to change the members" : "may have heard of it",
        ", and did not say in time what became of it; ", Answers(),
        ". `alpheus status` shows which list the members have; the same "
        "command completes the change"));
  }

  std::string Answers() const {
    return absl::StrJoin(nodes_, "; ", [](std::string* text, const Node& node) {
      absl::StrAppend(text, recovery::DescribePeer(*node.at), ": ");
      if (!node.failure.ok()) {
        absl::StrAppend(text, node.failure.message());
      } else if (!node.said) {
        absl::StrAppend(text, "it does not answer");
      } else if (!node.said->why.ok()) {
        absl::StrAppend(text, node.said->why.message());
      } else {
        absl::StrAppend(text,
                        "the process that has its replica says "
                        "nothing yet");
      }
    });
  }

  const AskPrimaryOptions& options_;
  const AskChange request_;
  const Uuid log_id_;
  NodeRounds rounds_;
  std::vector<Node> nodes_;
  std::optional<int64_t> begun_at_;  // when a primary said so last
  std::optional<ChangeState> made_;  // as it said last
  int64_t gathers_until_ = 0;        // once it is made
};

}  // namespace

absl::StatusOr<std::optional<RecoveryReport>> AskPrimary(
    const quorum::ClusterConfiguration& cluster,
    const AskPrimaryOptions& options, const recovery::MembersChange& change,
    const std::vector<PeerAddress>& peers) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Connectivity> connectivity,
                           Connectivity::Open(cluster, NodeId(0)));
  return PrimaryAsker(cluster, options, *connectivity, change, peers).Run();
}

}  // namespace alpheus
