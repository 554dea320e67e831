// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/operator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/faults/region_damage.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

// Incarnations of replicas that are to join; those of other faults are lower.
constexpr uint64_t kFirstIncarnation = 100'000;
constexpr size_t kMembersOfAList = 5;
constexpr int kListDrawsMax = 8;
// Odds, 1 in this many acts: makes a change again; exchanges a medium; begins
// from any list; gives a list away too early.
constexpr uint64_t kAgainOdds = 6;
constexpr uint64_t kExchangeOdds = 4;
constexpr uint64_t kOldListOdds = 4;
constexpr uint64_t kEarlyOdds = 8;
// While it finishes changes.
constexpr int64_t kFinishNanos = 3'000'000;
constexpr size_t kFinishSteps = 5;
constexpr int64_t kPowerNanos = 100'000;

}  // namespace

Operator::Operator(World& world)
    : world_(world), random_(world.options().seed ^ 0x0be7a) {
  world_.network().Schedule(world_.options().change_ns_max, [this] { Act(); });
}

recovery::MembersChange Operator::Describe(const ListChange& change) const {
  const MemberList& from = world_.lists().list(change.from);
  const MemberList& to = world_.lists().list(change.to);
  recovery::MembersChange described{
      from.id, from.sizes(), from.nodes(), to.id, to.sizes(), to.nodes(), {}};
  for (const int machine : change.replaced) {
    described.replaced.push_back(world_.machine(machine).id());
  }
  return described;
}

void Operator::Made(size_t number, Epoch epoch) {
  ++world_.counters().changes_made;
  if (!changes_[number].replaced.empty()) ++world_.counters().replacements_made;
  if (epoch < made_in_) return;
  made_in_ = epoch;
  made_ = changes_[number].to;
  GiveFiles();
}

void Operator::Failed(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) ++world_.counters().changes_refused;
}

void Operator::FinishChanges() { finishes_changes_ = true; }

// `alpheus status`.
void Operator::CheckStatus() {
  const Configuration& in_force = world_.checkers().configurations.in_force();
  for (size_t number = 0; number < world_.lists().count(); ++number) {
    const MemberList& list = world_.lists().list(number);
    if (list.id == in_force.id && list.sizes() == recovery::SizesOf(in_force) &&
        list.machines == ConfigurationChecker::MachinesOf(in_force)) {
      made_ = number;
    }
  }
}

void Operator::GiveListInForce() {
  CheckStatus();
  for (const World::Machine& machine : world_.machines()) {
    world_.lists().Give(machine.number, made_);
  }
}

bool Operator::IsInProgress() const {
  return std::ranges::any_of(
      world_.machines(), [](const World::Machine& machine) {
        return machine.primary != nullptr &&
               (machine.primary->is_change() || machine.primary->is_changing());
      });
}

void Operator::Act() {
  const int64_t next =
      finishes_changes_
          ? kFinishNanos
          : 1 + static_cast<int64_t>(random_.Below(
                    static_cast<uint64_t>(world_.options().change_ns_max)));
  world_.network().Schedule(next, [this] { Act(); });
  if (finishes_changes_) return FinishOn();
  if (random_.Below(2) == 0) CheckStatus();
  GiveFiles();
  if (const std::optional<size_t> number = Draw()) Begin(*number);
}

// A primary with the list in force may resync its members; then nothing is left
// to do. Otherwise it does what docs/use/operating.md tells an operator, in
// this order:
//   1. the change that got furthest, once more;
//   2. the list that a refused change says the log has, which some replica has,
//      under a new number;
//   3. each change, the last one first, and each list in the same way;
//   4. the list of the newest epoch, from that of a replica that stands against
//      it;
//   5. the change that got furthest except for one replica, while that one is
//      stopped.
void Operator::FinishOn() {
  if (IsInProgress()) return;
  StartStopped();
  GiveListInForce();
  if (world_.checkers().configurations.IsInForceEverywhere()) return;
  const size_t step = tries_ % kFinishSteps;
  const size_t round = tries_++ / kFinishSteps;
  const auto machine = static_cast<int>(round % world_.machines().size());
  std::optional<size_t> number;
  switch (step) {
    case 0:
      number = NewestOnMedia();
      break;
    case 1:
      if (const auto list = ListOnMedium(machine)) number = NewNumberFor(*list);
      break;
    case 2:
      number = InTurn(round);
      break;
    case 3:
      number = ToNewestEpoch(machine);
      break;
    default:
      Stop(machine);
      number = NewestOnMedia();
      break;
  }
  if (number) Begin(*number);
}

std::optional<size_t> Operator::InTurn(size_t round) {
  const size_t lists = world_.lists().count();
  const size_t turn = round % (1 + changes_.size() + lists);
  if (turn == 0) return std::nullopt;
  if (turn <= changes_.size()) return changes_.size() - turn;
  return NewNumberFor(lists - (turn - changes_.size()));
}

// The members of both are asked.
std::optional<size_t> Operator::ToNewestEpoch(int machine) {
  const std::optional<size_t> from = ListOnMedium(machine);
  std::optional<size_t> to;
  Epoch newest;
  for (const World::Machine& other : world_.machines()) {
    const Epoch epoch = world_.checkers().epochs.log_epoch(other.number);
    const std::optional<size_t> list = ListOnMedium(other.number);
    if (!list || epoch < newest) continue;
    newest = epoch;
    to = list;
  }
  if (!from || !to || *from == *to) return std::nullopt;
  return Add({*from, *to, {}});
}

void Operator::Stop(int machine) {
  if (!world_.machine(machine).has_power) return;
  world_.Trace(absl::StrCat("machine ", machine, ": stopped by the operator"));
  world_.CutPower(world_.machine(machine));
  stopped_ = machine;
  ++world_.counters().stopped;
}

void Operator::StartStopped() {
  if (!stopped_) return;
  world_.RestorePower(world_.machine(*stopped_));
  stopped_.reset();
}

// The last change to the list with the highest number that a replica has which
// is not stopped.
std::optional<size_t> Operator::NewestOnMedia() const {
  uint64_t highest = 0;
  for (const World::Machine& machine : world_.machines()) {
    if (stopped_ == machine.number) continue;
    const Configuration* const found =
        world_.checkers().epochs.configuration(machine.number);
    if (found != nullptr && world_.store().IsOwn(machine.number)) {
      highest = std::max(highest, found->id);
    }
  }
  for (size_t number = changes_.size(); number > 0; --number) {
    const ListChange& change = changes_[number - 1];
    if (world_.lists().list(change.to).id == highest) return number - 1;
  }
  return std::nullopt;
}

std::optional<size_t> Operator::ListOnMedium(int machine) const {
  const Configuration* const found =
      world_.checkers().epochs.configuration(machine);
  if (found == nullptr || !world_.store().IsOwn(machine)) return std::nullopt;
  for (size_t number = 0; number < world_.lists().count(); ++number) {
    if (world_.lists().list(number).id == found->id) return number;
  }
  return std::nullopt;
}

void Operator::GiveFiles() {
  for (const World::Machine& machine : world_.machines()) {
    if (world_.lists().Has(machine.number, made_)) continue;
    if (random_.Below(4) != 0) world_.lists().Give(machine.number, made_);
  }
}

std::optional<size_t> Operator::Draw() {
  if (const auto number = DrawReplacement()) return number;
  if (!changes_.empty() && random_.Below(kAgainOdds) == 0) {
    return random_.Below(changes_.size());
  }
  if (random_.Below(kExchangeOdds) == 0) {
    ExchangeMedium();
    return DrawReplacement();
  }
  return DrawList();
}

std::optional<size_t> Operator::DrawReplacement() {
  const RegionStore& store = world_.store();
  for (const int machine : world_.lists().list(made_).machines) {
    if (!store.IsGone(machine) && !store.IsNewcomer(machine)) continue;
    if (random_.Below(2) == 0) return Add({made_, made_, {machine}});
  }
  return std::nullopt;
}

// Exchanges the medium of a member whose replica nobody needs.
void Operator::ExchangeMedium() {
  const std::vector<int> members = world_.checkers().configurations.Members();
  World::Machine& machine =
      world_.machine(members[random_.Below(members.size())]);
  if (!world_.store().IsOwn(machine.number) || !machine.has_power ||
      !FaultBudget(world_).MayLose(machine.number)) {
    return;
  }
  world_.Trace(absl::StrCat("machine ", machine.number, ": another medium"));
  Renew(machine);
}

std::optional<size_t> Operator::DrawList() {
  for (int i = 0; i < kListDrawsMax; ++i) {
    const size_t from = random_.Below(kOldListOdds) == 0
                            ? random_.Below(world_.lists().count())
                            : made_;
    MemberList to = world_.lists().list(from);
    for (uint64_t toggled = random_.Below(3); toggled > 0; --toggled) {
      const auto machine = static_cast<int>(
          random_.Below(static_cast<uint64_t>(world_.options().nodes)));
      if (std::erase(to.machines, machine) == 0) to.machines.push_back(machine);
    }
    std::ranges::sort(to.machines);
    if (to.machines.empty() || to.machines.size() > kMembersOfAList) continue;
    to.id = world_.lists().count() + 1;
    to.write_quorum =
        1 + static_cast<uint32_t>(random_.Below(to.machines.size()));
    ListChange change{from, world_.lists().Write(std::move(to)), {}};
    if (const auto number = Add(std::move(change))) return number;
  }
  return std::nullopt;
}

std::optional<size_t> Operator::NewNumberFor(size_t list) {
  MemberList to = world_.lists().list(list);
  to.id = world_.lists().count() + 1;
  return Add({list, world_.lists().Write(std::move(to)), {}});
}

std::optional<size_t> Operator::Add(ListChange change) {
  if (!recovery::CheckChange(Describe(change)).ok()) return std::nullopt;
  changes_.push_back(std::move(change));
  return changes_.size() - 1;
}

// No process asks for its records: a list that names it is older than the list
// in force.
bool Operator::IsRemovable(int machine) const {
  for (size_t number = made_; number < world_.lists().count(); ++number) {
    if (world_.lists().list(number).Has(machine)) return false;
  }
  const std::vector<int> members = world_.checkers().configurations.Members();
  return std::ranges::find(members, machine) == members.end();
}

void Operator::Renew(World::Machine& machine) {
  if (machine.region_user != World::RegionUser::kNobody) {
    world_.CutPower(machine);
    world_.network().Schedule(kPowerNanos, [&world = world_, &machine] {
      world.RestorePower(machine);
    });
  }
  ++world_.counters().newcomers;
  const uint64_t incarnation = kFirstIncarnation + ++incarnations_;
  Epoch newest;
  for (const World::Machine& other : world_.machines()) {
    newest = std::max(newest, world_.checkers().epochs.log_epoch(other.number));
  }
  world_.store().Renew(
      machine.number, incarnation,
      FormattedRegion({kClusterId, kLogId, machine.id()}, incarnation,
                      world_.checkers().configurations.Of(newest),
                      world_.layout()));
}

// Does what PrepareNewcomers of api/admin/change_members.cc does. Returns false
// if its node can't be reached.
bool Operator::PrepareNewcomer(int number, const ListChange& change) {
  World::Machine& machine = world_.machine(number);
  const RegionStore& store = world_.store();
  if (!machine.has_power || store.IsMisplaced(number)) return false;
  if (store.IsNewcomer(number)) return true;
  const bool joins = change.replaced.empty();
  // It must be refused if its content is of an earlier membership.
  if (!store.IsGone(number) && (!joins || !IsRemovable(number))) return joins;
  Renew(machine);
  return true;
}

bool Operator::Prepare(const ListChange& change) {
  std::vector<int> newcomers = change.replaced;
  const MemberList& from = world_.lists().list(change.from);
  for (const int machine : world_.lists().list(change.to).machines) {
    if (!from.Has(machine)) newcomers.push_back(machine);
  }
  bool all = true;
  for (const int machine : newcomers) {
    all = PrepareNewcomer(machine, change) && all;
  }
  return all;
}

void Operator::EndApplications() {
  for (World::Machine& machine : world_.machines()) {
    if (machine.primary != nullptr) machine.primary->Close();
  }
}

bool Operator::BeginOnline(size_t number) {
  if (!world_.options().background_actors.online || finishes_changes_ ||
      random_.Below(4) == 0) {
    return false;
  }
  World::Machine* const machine =
      world_.FindMachine(random_.Next() >> 8, [](const World::Machine& m) {
        return m.has_power && m.primary != nullptr && m.primary->is_open();
      });
  if (machine == nullptr || !machine->primary->AskChange(number)) return false;
  ++world_.counters().changes;
  world_.Trace(absl::StrCat("change ", number, ": machine ", machine->number,
                            " is asked to make it while its log runs"));
  return true;
}

bool Operator::Begin(size_t number) {
  const ListChange change = changes_[number];
  if (finishes_changes_) EndApplications();
  if (!Prepare(change)) return false;
  if (BeginOnline(number)) return true;
  World::Machine* const machine =
      world_.FindMachine(random_.Next() >> 8, [](const World::Machine& m) {
        return m.has_power && m.primary == nullptr;
      });
  if (machine == nullptr) return false;
  ++world_.counters().changes;
  if (IsInProgress()) ++world_.counters().competing_changes;
  const MemberLists& lists = world_.lists();
  world_.Trace(absl::StrCat(
      "change ", number, ": from ", lists.list(change.from).ToString(), " to ",
      lists.list(change.to).ToString(),
      change.replaced.empty() ? "" : ", replaced ",
      change.replaced.empty() ? "" : absl::StrCat(change.replaced.front())));
  if (!finishes_changes_ && random_.Below(kEarlyOdds) == 0) {
    world_.lists().Give(
        static_cast<int>(random_.Below(world_.machines().size())), change.to);
  }
  world_.StartChange(*machine, number);
  return true;
}

}  // namespace alpheus::sim
