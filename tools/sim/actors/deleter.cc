// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/deleter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/checkers/deletion_checker.h"

namespace alpheus::sim {
namespace {

// Time until the first deletion, and between two; the first one mostly comes
// when much was written.
constexpr int64_t kFirstNanosMax = 60'000'000;
constexpr int64_t kNextNanosMax = 8'000'000;
constexpr int64_t kFinishNanosMax = 2'000'000;
constexpr int64_t kDeadlineNanos = 30'000'000;
// Turns after which one that is killed ends: mostly in the middle.
constexpr uint64_t kTurnsMax = 60;
// The number of a process that is no member.
constexpr uint64_t kNode = 77;

}  // namespace

Deleter::Deleter(World& world, int host)
    : world_(world),
      host_(host),
      random_(world.options().seed ^ 0xde1e7e),
      clock_(world.network().clock(),
             static_cast<int64_t>(random_.Below(uint64_t{1} << 40))),
      fabric_(world.network().fabric(host_), clock_,
              [&world] { world.SwitchByLot(); }) {
  world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
}

// The members of the list that some machine has.
recovery::LogDeletionOptions Deleter::DrawDeletion() {
  const auto& machines = world_.machines();
  const MemberList* list =
      &world_.lists().of(static_cast<int>(random_.Below(machines.size())));
  for (const World::Machine& machine : machines) {
    const MemberList& other = world_.lists().of(machine.number);
    if (finishes_ && other.id > list->id) list = &other;
  }
  recovery::LogDeletionOptions options;
  options.cluster_id = kClusterId;
  options.log_id = kLogId;
  options.key = SimulatedKey();
  options.self = {NodeId(kNode), random_.Next() | 1};
  options.sizes = list->sizes();
  options.configuration_id = list->id;
  for (const int number : list->machines) {
    options.peers.push_back(
        {world_.machine(number).id(), world_.NodeAddress(number)});
  }
  options.above = above_;
  options.step_timeout_ns = 5'000'000;
  options.reconnect_ns = 300'000;
  options.gather_ns = 500'000;
  options.deadline = Deadline::AtNanos(clock_.NowNanos() + kDeadlineNanos);
  return options;
}

bool Deleter::Turn() {
  world_.ClearActivity(host_);
  const size_t count = fabric_.Poll(completions_, &events_);
  const bool any = count != 0 || !events_.empty();
  for (const fabric::ConnectionEvent& event : std::exchange(events_, {})) {
    deletion_->OnConnectionEvent(event);
  }
  for (size_t i = 0; i < count; ++i) deletion_->OnCompletion(completions_[i]);
  return any;
}

void Deleter::Judge(const recovery::LogDeletion& deletion) {
  const absl::Status& status = deletion.status();
  world_.Trace(absl::StrCat("deletion: ", status.ToString()));
  above_ = std::max(above_, deletion.refused_by());
  if (status.ok()) {
    is_done_ = true;
    ++world_.counters().deletions_made;
    return world_.checkers().deletion.Returned();
  }
  const bool may_fail = absl::IsUnavailable(status) ||
                        absl::IsFailedPrecondition(status) ||
                        absl::IsNotFound(status);
  if (!may_fail) {
    world_.oracle().Violate(
        "P-D1", absl::StrCat("a deletion fails: ", status.ToString()));
  }
}

void Deleter::DeleteOnce() {
  const recovery::LogDeletionOptions options = DrawDeletion();
  ballots_ = std::make_unique<quorum::StaticMembership>(
      *quorum::StaticMembership::Make(options.self));
  auto started = recovery::LogDeletion::Start(fabric_, clock_, random_,
                                              *ballots_, options);
  if (!started.ok()) {
    return world_.oracle().Violate("P-D1",
                                   absl::StrCat("a deletion does not start: ",
                                                started.status().ToString()));
  }
  ++world_.counters().deletions;
  deletion_ = *std::move(started);
  const bool is_killed = !finishes_ && random_.Below(3) != 0;
  uint64_t turns = is_killed ? 1 + random_.Below(kTurnsMax) : ~uint64_t{0};
  while (deletion_->Poll() != Polled::kDone && turns-- > 0) {
    if (Turn()) {
      world_.threads().Yield();
    } else {
      world_.WaitForActivity(host_, clock_.InWorld(deletion_->NextPoll()));
    }
  }
  if (turns + 1 != 0) Judge(*deletion_);
  deletion_ = nullptr;
}

void Deleter::Run() {
  int64_t pause_ns_max = kFirstNanosMax;
  while (!is_done_) {
    world_.threads().SleepUntil(world_.now() + 1 +
                                static_cast<int64_t>(random_.Below(
                                    static_cast<uint64_t>(pause_ns_max))));
    DeleteOnce();
    pause_ns_max = finishes_ ? kFinishNanosMax : kNextNanosMax;
  }
  for (;;) world_.threads().SleepUntil(world_.now() + kDeadlineNanos);
}

}  // namespace alpheus::sim
