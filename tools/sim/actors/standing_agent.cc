// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/standing_agent.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/sim_znodes.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/checkers/election_checker.h"

namespace alpheus::sim {
namespace {

// How often the agent looks after its application.
constexpr int64_t kLookNanos = 200'000;
// Most of the time between two words of an operator.
constexpr uint64_t kInstructNanosMax = 40'000'000;

std::vector<recovery::PeerAddress> NodesOf(World& world,
                                           const MemberList& list) {
  std::vector<recovery::PeerAddress> nodes;
  for (const int number : list.machines) {
    nodes.push_back({world.machine(number).id(), world.NodeAddress(number)});
  }
  return nodes;
}

}  // namespace

recovery::ElectionOptions SimulatedElection() {
  recovery::ElectionOptions election;
  election.silence_ns = 1'500'000;
  election.silence_ns_max = 12'000'000;
  election.calm_ns = 100'000'000;
  election.rank_ns = 300'000;
  election.answer_ns = 1'500'000;
  election.rest_ns = 500'000;
  election.rest_ns_max = 4'000'000;
  election.hand_over_ns = 3'000'000;
  election.yield_ns = 8'000'000;
  election.lone_promise_ns = 5'000'000;
  election.lone_promise_ns_max = 40'000'000;
  return election;
}

recovery::ElectionDeskOptions SimulatedDesk() {
  recovery::ElectionDeskOptions desk;
  desk.opening_silence_ns = 5'000'000;
  desk.instruction_ns = 10'000'000;
  desk.pause_ns = 500'000;
  return desk;
}

StandingAgent::StandingAgent(World& world, World::Machine& machine)
    : world_(world),
      machine_(machine),
      host_(world.StandingHost(machine)),
      process_(world.threads().NewProcess()),
      random_(world.random().Next()),
      clock_(world.network().clock(), world.DrawClock()),
      fabric_(world.network().fabric(host_), clock_,
              [&world] { world.SwitchByLot(); }) {
  world_.threads().Start(process_, [this] { Run(); });
}

recovery::CandidacyOptions StandingAgent::Options() {
  recovery::CandidacyOptions options;
  options.cluster_id = kClusterId;
  options.log_id = kLogId;
  options.key = SimulatedKey();
  options.election = SimulatedElection();
  options.election.self = {machine_.id(), random_.Next() | 1};
  options.election.priority = static_cast<uint32_t>(random_.Below(2));
  const MemberList list = world_.lists().of(machine_.number);
  options.election.opening_quorum = quorum::OpeningQuorumSize(list.sizes());
  options.nodes = NodesOf(world_, list);
  list_id_ = list.id;
  options.wait_ns = 3'000'000;
  options.reply_ns = 3'000'000;
  options.retry_ns = 100'000;
  options.retry_ns_max = 2'000'000;
  return options;
}

bool StandingAgent::Turn() {
  world_.ClearActivity(host_);
  const size_t count = fabric_.Poll(completions_, &events_);
  const bool any = count != 0 || !events_.empty();
  for (const fabric::ConnectionEvent& event : std::exchange(events_, {})) {
    if (candidacy_->OnConnectionEvent(event)) continue;
    for (const auto& call : instructions_) call->OnConnectionEvent(event);
  }
  for (size_t i = 0; i < count; ++i) {
    if (candidacy_->OnCompletion(completions_[i])) continue;
    for (const auto& call : instructions_) call->OnCompletion(completions_[i]);
  }
  return any;
}

void StandingAgent::EnterMembership(const recovery::ElectionOptions& election) {
  if (world_.membership() == nullptr) return;
  membership_ = MakeSimMembership(
      *world_.membership(), clock_, random_, machine_.number, election.self,
      [&world = world_, host = host_] { world.NoteActivity(host); });
  recovery::MembershipEntries::Options entries;
  entries.self = election.self;
  entries.priority = election.priority;
  entries.address = absl::StrCat("machine ", machine_.number);
  entries_ = std::make_unique<recovery::MembershipEntries>(*membership_,
                                                           std::move(entries));
}

void StandingAgent::Run() {
  const recovery::CandidacyOptions options = Options();
  candidacy_ =
      std::make_unique<recovery::Candidacy>(fabric_, clock_, random_, options);
  EnterMembership(options.election);
  DrawNextInstruction();
  while (!world_.is_quiet()) {
    const bool any = Turn();
    Look();
    if (entries_ != nullptr) {
      const std::optional<Epoch> left = entries_->Poll(candidacy_->election());
      if (left.has_value()) candidacy_->OnPrimaryLeft(*left);
    }
    Act(candidacy_->Poll());
    if (clock_.NowNanos() >= instructs_at_) Instruct();
    if (any) {
      world_.threads().Yield();
      continue;
    }
    int64_t next = std::min(candidacy_->NextPoll().at_nanos(), instructs_at_);
    if (entries_ != nullptr) {
      next = std::min(next, entries_->NextPoll().at_nanos());
    }
    if (application_ != 0) {
      next = std::min(next, clock_.NowNanos() + kLookNanos);
    }
    world_.WaitForActivity(host_, clock_.InWorld(Deadline::AtNanos(next)));
  }
  instructions_.clear();
  entries_.reset();
  membership_.reset();
  candidacy_.reset();
}

// A program reads its file when it hears of a newer list. Here it may have the
// file before any node has the list, too.
void StandingAgent::FollowList() {
  const MemberList& list = world_.lists().of(machine_.number);
  if (list.id == std::exchange(list_id_, list.id)) return;
  candidacy_->SetNodes(NodesOf(world_, list),
                       quorum::OpeningQuorumSize(list.sizes()));
}

bool StandingAgent::MayNotOpen() const {
  const Operator* const changes = world_.operator_at_work();
  return machine_.primary != nullptr ||
         !world_.lists().of(machine_.number).Has(machine_.number) ||
         (changes != nullptr && changes->wants_rest());
}

bool StandingAgent::IsRunning() const {
  return machine_.primary != nullptr &&
         machine_.primary->process() == application_;
}

std::optional<Epoch> StandingAgent::PromisedMax() const {
  if (!IsRunning() || is_open_) return std::nullopt;
  return promised_max_;
}

void StandingAgent::Look() {
  FollowList();
  if (application_ == 0) return;
  if (!IsRunning()) {
    application_ = 0;
    if (std::exchange(is_open_, false)) {
      if (entries_ != nullptr) entries_->Ended();
      candidacy_->Ended();
    } else {
      candidacy_->OpeningFailed();
    }
    return;
  }
  if (!machine_.primary->is_open()) return;
  // A log that changes its members goes on in an epoch that it opened itself.
  const Epoch epoch = machine_.primary->epoch();
  if (is_open_ && epoch == candidacy_->election().holds()) return;
  if (!std::exchange(is_open_, true)) {
    world_.checkers().elections.Opened(machine_.number, world_.now());
  }
  candidacy_->Opened(epoch);
  if (entries_ != nullptr) entries_->Opened(epoch, Members());
}

quorum::MembersCopy StandingAgent::Members() const {
  const MemberList list = world_.lists().of(machine_.number);
  quorum::MembersCopy copy;
  copy.configuration_id = list.id;
  copy.write_quorum = list.sizes().write_quorum;
  copy.read_quorum = list.sizes().read_quorum;
  for (const int number : list.machines) {
    copy.members.emplace_back(world_.machine(number).id(),
                              world_.NodeAddress(number));
  }
  return copy;
}

void StandingAgent::Act(recovery::Candidacy::Advice advice) {
  switch (advice) {
    case recovery::Candidacy::Advice::kOpen:
      // An application that somebody else started is its rival.
      if (MayNotOpen()) return candidacy_->OpeningFailed();
      world_.Trace(absl::StrCat("machine ", machine_.number, ": is elected"));
      ++world_.counters().elections;
      CheckOpening();
      promised_max_ = candidacy_->election().PromisedMax();
      world_.StartPrimary(machine_);
      application_ =
          machine_.primary == nullptr ? 0 : machine_.primary->process();
      if (application_ == 0) candidacy_->OpeningFailed();
      break;
    case recovery::Candidacy::Advice::kHandOver:
      world_.Trace(absl::StrCat("machine ", machine_.number, ": hands over"));
      ++world_.counters().stepped_down;
      if (IsCalmButForDrains(world_.options())) {
        world_.checkers().elections.Leaves(machine_.number);
      }
      if (IsRunning()) machine_.primary->CloseInOrder();
      break;
    case recovery::Candidacy::Advice::kAsk:
    case recovery::Candidacy::Advice::kNothing:
      break;
  }
}

// An operator's word needs no other. An opening that follows one that failed
// has no limit, but needs the words of nodes all the same.
void StandingAgent::CheckOpening() const {
  const recovery::Election& election = candidacy_->election();
  if (election.opens_on_word()) return;
  if (election.failures() != 0) {
    ++world_.counters().elections_after_failure;
  }
  const MemberList& list = world_.lists().of(machine_.number);
  std::vector<ToldWord> told;
  for (const int number : list.machines) {
    ToldWord& word = told.emplace_back();
    word.is_own = number == machine_.number;
    const recovery::Heard* const heard =
        election.HeardAt(world_.machine(number).id());
    if (heard == nullptr) continue;
    word.word = heard->word;
    word.is_current =
        heard->promised.epoch == world_.checkers().epochs.promise(number).epoch;
  }
  world_.checkers().elections.Opens(
      machine_.number, quorum::OpeningQuorumSize(list.sizes()), told);
}

bool StandingAgent::is_drained() const {
  return candidacy_ != nullptr &&
         candidacy_->election().standing() == recovery::Standing::kDrained;
}

// A primary that is drained must have been one for a while: candidates that
// begin together may depose each other.
void StandingAgent::DrawNextInstruction() {
  instructs_at_ = clock_.NowNanos() +
                  static_cast<int64_t>(random_.Below(kInstructNanosMax));
  if (IsCalmButForDrains(world_.options())) {
    instructs_at_ += ElectionChecker::kSettledNanos;
  }
}

void StandingAgent::Instruct() {
  DrawNextInstruction();
  instructions_.clear();
  if (!IsCalm(world_.options())) return Tell(AnyInstruction());
  const bool is_operator = machine_.number == 0;
  if (!is_operator || !IsCalmButForDrains(world_.options())) return;
  if (const auto drain = NextDrain()) Tell(*drain);
}

// A machine that was drained is elected by and by.
recovery::Instruction StandingAgent::AnyInstruction() {
  const MemberList list = world_.lists().of(machine_.number);
  const int chosen = list.machines[random_.Below(list.machines.size())];
  recovery::Instruction instruction;
  instruction.kind = random_.Below(4) == 0 ? recovery::InstructionKind::kDrain
                                           : recovery::InstructionKind::kElect;
  instruction.node = world_.machine(chosen).id();
  instruction.id = random_.Next() | 1;
  return instruction;
}

std::optional<recovery::Instruction> StandingAgent::NextDrain() {
  std::vector<int> standing;
  for (const int number : world_.lists().of(machine_.number).machines) {
    const auto& agent = world_.machine(number).standing;
    if (agent == nullptr || agent->is_drained()) continue;
    // It has not heard of it yet.
    if (drains_ == number) return std::nullopt;
    standing.push_back(number);
  }
  if (standing.size() < 2) return std::nullopt;
  drains_ = standing[random_.Below(standing.size())];
  recovery::Instruction instruction;
  instruction.kind = recovery::InstructionKind::kDrain;
  instruction.node = world_.machine(*drains_).id();
  instruction.id = random_.Next() | 1;
  return instruction;
}

void StandingAgent::Tell(const recovery::Instruction& instruction) {
  world_.Trace(absl::StrCat(
      "node ", instruction.node.value, ": an operator ",
      instruction.kind == recovery::InstructionKind::kElect ? "elects"
                                                            : "drains",
      " it"));
  for (const int number : world_.lists().of(machine_.number).machines) {
    instructions_.push_back(std::make_unique<recovery::ControlCall>(
        fabric_,
        recovery::ControlCall::Options{
            world_.NodeAddress(number), world_.machine(number).id(),
            recovery::Hello{
                kClusterId, kLogId, {machine_.id(), random_.Next() | 1}},
            Deadline::AtNanos(clock_.NowNanos() + 3'000'000),
            recovery::Credentials{SimulatedKey(), &random_}},
        recovery::Instruct{instruction}));
  }
}

}  // namespace alpheus::sim
