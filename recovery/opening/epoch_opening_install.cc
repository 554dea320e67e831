// SPDX-License-Identifier: Apache-2.0
// The second half of an opening: from what was chosen to an open epoch.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "recovery/opening/epoch_opening.h"
#include "recovery/opening/opening_cleanup.h"

namespace alpheus {
namespace {

using State = OpeningPeer::State;

// Returns the answer that ranks first in a decision.
const Answer& AnswerOfHighestEpoch(const Decision& decision,
                                   const std::vector<Answer>& answers) {
  size_t index = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (Contains(decision.members, i) &&
        answers[i].log_epoch == decision.epoch) {
      index = i;
    }
  }
  return answers[index];
}

}  // namespace

absl::Status EpochOpening::Begin(Decision decision, const Promises& promises,
                                 std::vector<Answer> answers,
                                 std::vector<OpeningPeer*> peers) {
  for (const auto& peer : peers_) {
    if (peer->state() == State::kAnswered) continue;
    peer->Fail(absl::UnavailableError(
        peer->state() == State::kRefused
            ? absl::StrCat("promised epoch ", peer->standing().epoch.value,
                           " to another primary")
            : "came too late: the log was chosen without it; let it rejoin"));
  }
  ALPHEUS_RETURN_IF_ERROR(
      CleanThrough(options_.cleanup_through, answers, decision));
  if (is_cache_) {
    ALPHEUS_RETURN_IF_ERROR(MakeCache(decision, answers));
  } else if (!Contains(decision.members, 0)) {
    return absl::FailedPreconditionError(absl::StrCat(
        own_->name(), ": incarnation ", own_->superline().incarnation,
        " of node ", own_->superline().node.value,
        " is no member of the log's configuration: its medium was replaced. "
        "Open the log on another node; the replica rejoins there"));
  }
  PlanInput input;
  input.plan = PlanRepair(
      SizesOf(decision.configuration), decision, answers,
      {options_.log_id, promise_.epoch, random_.Next(), configuration_});
  const size_t entries = input.plan.table.entries().size();
  if (entries > own_->superline().table_capacity ||
      entries > kEpochTableCapacity) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "epoch ", promise_.epoch.value,
        ": the epoch table is full: records of ", entries - 1,
        " openings are live. Nothing was changed but promises. "
        "Clean the oldest ones with `alpheus cleanup --cluster "
        "FILE --log NAME --through LSN`, or LogOptions::cleanup_through; "
        "epoch ",
        input.plan.table.entries()[1].epoch.value, " starts at LSN ",
        input.plan.table.entries()[1].start_lsn.value));
  }
  InstallQuorums quorums = QuorumsToInstall(
      promises, decision, answers, configuration_, options_.change.has_value());
  input.answers = std::move(answers);
  input.peers = std::move(peers);
  input.decision = std::move(decision);
  input.own = own_.get();
  input.is_cache = is_cache_;
  input.own_key = own_ring_->key();
  runner_ = std::make_unique<PlanRunner>(
      PlanTerms{std::move(quorums), configuration_, promise_, options_.credits,
                options_.copy_bytes_max, options_.slice_bytes},
      std::move(input), fabric_, random_);
  gathered_at_.reset();
  phase_ = Phase::kInstall;
  return absl::OkStatus();
}

absl::Status EpochOpening::MakeCache(const Decision& decision,
                                     const std::vector<Answer>& answers) {
  const Answer& highest = AnswerOfHighestEpoch(decision, answers);
  ALPHEUS_ASSIGN_OR_RETURN(
      own_, cache_factory_(highest.ring_capacity, highest.configuration));
  if (own_->ring().capacity() != highest.ring_capacity) {
    return absl::InvalidArgumentError(absl::StrCat(
        own_->name(), ": a cache with a ring of ", own_->ring().capacity(),
        " bytes, expected ", highest.ring_capacity, " as the replicas"));
  }
  ALPHEUS_RETURN_IF_ERROR(own_->AcceptPromise(promise_).status());
  return RegisterOwnRing();
}

absl::Status EpochOpening::InstallOn() {
  wake_at_ = kNever;
  ALPHEUS_RETURN_IF_ERROR(runner_->Poll());
  const bool late = DeadlineHasPassed();
  if (!runner_->is_enough()) {
    if (!late) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the deadline passed before W = ", options_.sizes.write_quorum,
        " replicas had installed",
        options_.change ? ", or as many as a change takes" : ""));
  }
  const int64_t now = clock_.NowNanos();
  const uint64_t progress = runner_->progress();
  const bool got_on = progress != progress_;
  if (!gathered_at_ || got_on) gathered_at_ = now;
  progress_ = progress;
  wake_at_ = *gathered_at_ + options_.gather_ns + runner_->PatienceNanos();
  if (!late && !runner_->is_settled() && now < wake_at_) {
    return absl::OkStatus();
  }
  wake_at_ = kNever;
  runner_->Stop(absl::UnavailableError(
      "was too slow: the epoch was opened without it; let it rejoin"));
  phase_ = Phase::kStop;
  return absl::OkStatus();
}

bool EpochOpening::IsLeaving(NodeId node) const {
  if (!options_.change) return false;
  const std::vector<NodeId>& stay = options_.change->to_nodes;
  return std::find(stay.begin(), stay.end(), node) == stay.end();
}

void EpochOpening::Finish() {
  if (!runner_->is_enough()) {
    return End(absl::UnavailableError(
        absl::StrCat("fewer than W = ", options_.sizes.write_quorum,
                     " of the replicas that had installed are left")));
  }
  if (OwnPromisedAnother()) {
    return End(TooFew("the own replica promised another primary"));
  }
  const Decision& decision = runner_->decision();
  EpochOpened& opened = opened_.emplace();
  opened.start = own_->StartOfLog();
  opened.epoch = promise_.epoch;
  opened.previous_epoch = decision.epoch;
  opened.head = decision.head;
  opened.end = decision.end;
  opened.repairs = runner_->Sentences();
  opened.configuration = std::move(configuration_);
  for (const auto& peer : peers_) {
    if (IsLeaving(peer->node())) {
      peer->Fail(absl::CancelledError("leaves the log"));
    } else if (peer->state() == State::kInstalled) {
      opened.backups.push_back({peer->node(), peer->address(),
                                peer->ReleaseConnection(),
                                peer->ReleaseSession()});
    } else {
      peer->Fail(absl::UnavailableError("is no member any more; replace it"));
      opened.not_installed.push_back(
          {peer->node(), std::string(peer->failure().message())});
    }
  }
  opened.ring = std::move(own_ring_);
  phase_ = Phase::kOver;
}

}  // namespace alpheus
