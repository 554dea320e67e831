// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/candidate_agent.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/node_process.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {
namespace {

// How often the agent of a first candidate looks after its application.
constexpr int64_t kLookAtApplicationNanos = 200'000;

}  // namespace

CandidateAgent::CandidateAgent(World& world, World::Machine& machine,
                               ProcessId process)
    : world_(world),
      machine_(machine),
      process_(process),
      own_clock_(world.network().clock(), world.DrawClock()),
      clock_(machine.node != nullptr ? machine.node->clock() : own_clock_),
      random_(world.random().Next()),
      self_{machine.id(), random_.Next() | 1},
      is_cautious_(random_.Below(4) == 0),
      membership_(MakeSimMembership(
          *world.membership(), clock_, random_, machine.number, self_,
          [&threads = world.threads(), key = this] { threads.Wake(key); })) {
  world_.threads().Start(process_, [this] { Run(); });
}

void CandidateAgent::Run() {
  Epoch log_epoch;
  if (machine_.pmem != nullptr) {
    log_epoch = world_.checkers().epochs.log_epoch(machine_.number);
  }
  membership_->Register({machine_.id(), self_.incarnation,
                         absl::StrCat("machine ", machine_.number), log_epoch});
  membership_->Stand();
  while (!world_.is_quiet()) {
    membership_->Poll();
    TakeEvents();
    Act();
    int64_t next = membership_->NextPoll().at_nanos();
    if (application_ != 0 || has_stepped_down_) {
      next = std::min(next, clock_.NowNanos() + kLookAtApplicationNanos);
    }
    world_.threads().WaitFor(this, clock_.InWorld(Deadline::AtNanos(next)));
  }
}

void CandidateAgent::TakeEvents() {
  for (const quorum::MembershipEvent event : membership_->TakeEvents()) {
    const quorum::SessionState state = membership_->session().state;
    if (event == quorum::MembershipEvent::kSessionChanged) {
      const std::string_view name = quorum::NameOf(state);
      world_.Trace(absl::StrCat("machine ", machine_.number, ": session ",
                                membership_->session().id, " ",
                                absl::string_view(name.data(), name.size())));
    }
    if (event == quorum::MembershipEvent::kCandidatesChanged &&
        state == quorum::SessionState::kConnected && !has_stepped_down_ &&
        !quorum::IsFirst(*membership_, self_)) {
      Abandon();
    }
    if (event != quorum::MembershipEvent::kSessionChanged) continue;
    if (state == quorum::SessionState::kSuspended && is_cautious_) Abandon();
    if (state != quorum::SessionState::kExpired) continue;
    Abandon();
    membership_->Renew();
  }
}

bool CandidateAgent::IsRunning() const {
  return machine_.primary != nullptr &&
         machine_.primary->process() == application_;
}

void CandidateAgent::Act() {
  if (has_stepped_down_ && clock_.NowNanos() >= stands_again_at_) {
    has_stepped_down_ = false;
    membership_->Stand();
  }
  if (application_ != 0 && !IsRunning()) {
    application_ = 0;
    if (random_.Below(2) == 0) return LetOthersGoFirst();
  }
  if (has_stepped_down_ || machine_.primary != nullptr) return;
  if (!quorum::IsFirst(*membership_, self_)) return;
  const Operator* const changes = world_.operator_at_work();
  if (changes != nullptr && changes->wants_rest()) return;
  world_.Trace(absl::StrCat("machine ", machine_.number, ": is first"));
  ++world_.counters().elections;
  world_.StartPrimary(machine_);
  application_ = machine_.primary->process();
}

void CandidateAgent::LetOthersGoFirst() {
  has_stepped_down_ = true;
  stands_again_at_ = clock_.NowNanos() + kLookAtApplicationNanos;
  membership_->Withdraw();
}

void CandidateAgent::Abandon() {
  if (!IsRunning()) return;
  const auto end = static_cast<End>(random_.Below(3));
  switch (end) {
    case End::kInOrder:
      ++world_.counters().stepped_down;
      machine_.primary->Close();
      break;
    case End::kKilled:
      ++world_.counters().stepped_down;
      world_.KillPrimary(machine_);
      break;
    case End::kUnnoticed:
      ++world_.counters().overtaken;
      break;
  }
  application_ = 0;
}

}  // namespace alpheus::sim
