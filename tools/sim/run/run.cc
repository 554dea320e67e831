// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/run.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/deleter.h"
#include "tools/sim/actors/operator.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service/service_clients.h"
#include "tools/sim/checkers/calm_checker.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/checkers/end_checker.h"
#include "tools/sim/faults/fault_budget.h"
#include "tools/sim/faults/faults.h"
#include "tools/sim/world/region_images.h"
#include "tools/sim/world/surviving_core.h"

namespace alpheus::sim {
namespace {

// Interval between two looks whether there is a primary.
constexpr int64_t kCheckNanos = 500'000;
// Time in which a healed cluster must open its log, and make records durable.
constexpr int64_t kLivenessNanosMax = 300'000'000;
constexpr uint64_t kLivenessRecords = 10;
// Time to come to rest after that, to close and to open again.
constexpr int64_t kEndNanosMax = 300'000'000;
// Time until changes of members are cut off at the end.
constexpr int64_t kChangeNanos = 3'000'000;
constexpr int64_t kIdleStepNanos = 1'000'000;
// Time in which a deleted log must not open.
constexpr int64_t kLastTriesNanos = 10'000'000;
constexpr int kFinalOpenings = 2;
// Number of events between two looks at all media.
constexpr uint64_t kCheckEvents = 500;
// Number of these looks until a copy of all is kept.
constexpr uint64_t kChecksPerImage = 5;
// Most events of a run that ends.
constexpr uint64_t kEventsMax = 5'000'000;

class Run {
 public:
  Run(const RunOptions& options,
      const std::function<void(std::string_view)>& trace)
      : world_(options), faults_(DrawFaults(options)) {
    if (trace) world_.SetTrace(trace);
    for (const Fault& fault : faults_) {
      if (options.left_out.contains(fault.number)) continue;
      world_.network().Schedule(fault.at_ns, [this, &fault] { Strike(fault); });
    }
    Check();
  }

  RunResult Go() {
    const int64_t safe_until =
        faults_.empty() ? 20 * kCheckNanos : faults_.back().at_ns + kCheckNanos;
    StepUntil([&] { return world_.now() >= safe_until; });
    if (world_.deleter() != nullptr) {
      if (Continues()) EndByDeletion();
    } else {
      if (Continues()) LetSurvivingCoreLive();
      if (Continues()) LetItLive();
      if (Continues()) LetItIdle();
      if (Continues()) OpenAgain();
    }
    CalmChecker(world_.oracle(), world_.options())
        .WithoutCredit(world_.network().receivers_not_ready());
    RunResult result;
    result.violation = world_.oracle().violation();
    result.counters = world_.counters();
    result.counters.mark_checks = world_.checkers().marks.checks();
    result.counters.ballots = world_.checkers().ballots.given();
    result.counters.breaks = world_.network().breaks();
    result.counters.late_landings = world_.network().late_landings();
    result.acknowledged = world_.history().records_acknowledged();
    result.virtual_ns = world_.now();
    return result;
  }

 private:
  bool Continues() const {
    return !world_.oracle().violation() && !is_abandoned_;
  }

  // There is no progress. A log that was never shortened may stay closed if
  // more is damaged than it must survive.
  void Overdue(const std::string& what, const char* invariant = "P-C8") {
    TraceConfigurations();
    if (FaultBudget(world_).MustSurvive()) {
      return world_.oracle().Violate(invariant, what);
    }
    is_abandoned_ = true;
    ++world_.counters().progress_undemanded;
    world_.Trace(absl::StrCat("given up: ", what));
  }

  // They explain a change that does not end.
  void TraceConfigurations() {
    if (!world_.IsTraced()) return;
    for (const World::Machine& machine : world_.machines()) {
      const Configuration* const found =
          world_.checkers().epochs.configuration(machine.number);
      if (found == nullptr) continue;
      std::string members;
      for (const int member : ConfigurationChecker::MachinesOf(*found)) {
        absl::StrAppend(&members, members.empty() ? "" : ",", member);
      }
      world_.Trace(absl::StrCat(
          "machine ", machine.number, " has configuration ", found->id,
          " of machines ", members, ", W ", found->write_quorum, ", of epoch ",
          world_.checkers().epochs.log_epoch(machine.number).value));
    }
  }

  template <class Done>
  void StepUntil(const Done& done) {
    while (!done() && Continues()) {
      if (!world_.network().Step() || ++world_.counters().events > kEventsMax) {
        world_.oracle().Violate("P-C8", "the run does not come to an end");
      }
      world_.checkers().epochs.CheckNews();
      if (world_.counters().events % kCheckEvents == 0) CheckAll();
    }
  }

  void CheckAll() {
    for (const World::Machine& machine : world_.machines()) {
      world_.checkers().epochs.Check(machine.number);
      if (machine.primary != nullptr) machine.primary->CheckInvariants();
    }
    world_.checkers().durability.Check();
    if (world_.options()
                .weights[static_cast<size_t>(FaultKind::kRollBackRegion)] !=
            0 &&
        ++checks_ % kChecksPerImage == 0) {
      world_.images().Take();
    }
  }

  void Strike(const Fault& fault) {
    if (is_healed_) return;
    const bool strikes = Inject(world_, fault);
    if (strikes) world_.Count(fault.kind);
    if (world_.IsTraced()) {
      world_.Trace(
          absl::StrCat("fault ", Describe(fault), strikes ? "" : ": not now"));
    }
  }

  // The supervisor of the cluster: some process shall write the log. Where
  // processes stand for primary they see to it, until all is to come to rest.
  void Check() {
    world_.network().Schedule(kCheckNanos, [this] { Check(); });
    const bool has_candidates = world_.membership() != nullptr ||
                                world_.options().background_actors.elect;
    if (has_candidates && !world_.is_quiet()) return;
    std::vector<int> all(world_.machines().size());
    std::iota(all.begin(), all.end(), 0);
    const std::vector<int>& machines =
        surviving_core_ ? surviving_core_->machines() : all;
    const bool somebody = std::ranges::any_of(machines, [this](int number) {
      const World::Machine& machine = world_.machine(number);
      return machine.primary != nullptr && !machine.primary->is_change() &&
             !world_.threads().IsPaused(machine.primary->process());
    });
    if (somebody || is_over_ || IsOperatorAlone()) return;
    world_.StartPrimary(
        world_.machine(machines[world_.random().Below(machines.size())]));
  }

  bool IsOperatorAlone() {
    const Operator* const changes = world_.operator_at_work();
    return changes != nullptr && changes->wants_rest();
  }

  // A core suffices to continue (P-C8). In a run without faults nothing is
  // broken here, either.
  void LetSurvivingCoreLive() {
    is_healed_ = true;
    EndChanges();
    // Repeating a change of members needs all that stay.
    if (!world_.checkers().configurations.IsInForceEverywhere()) return;
    if (faults_.empty() || !FaultBudget(world_).MustSurvive()) return;
    surviving_core_.emplace(world_);
    if (!surviving_core_->is_all()) {
      surviving_core_->Heal();
      MustContinue("a core is well");
      ++world_.counters().cores;
      surviving_core_->EndFaults();
    }
    surviving_core_.reset();
  }

  // Changes in progress may end. Then they are cut off, and their messages
  // arrive: one may cause an installation.
  void EndChanges() {
    Operator* const changes = world_.operator_at_work();
    if (changes == nullptr) return;
    changes->FinishChanges();
    StepFor(kChangeNanos);
    bool is_any_cut_off = false;
    for (World::Machine& machine : world_.machines()) {
      if (machine.primary != nullptr && machine.primary->is_change()) {
        world_.KillPrimary(machine);
        is_any_cut_off = true;
      }
    }
    if (is_any_cut_off) StepFor(kChangeNanos);
    if (world_.checkers().configurations.IsInForceEverywhere()) {
      changes->GiveListInForce();
    }
  }

  // All is well: a deletion is decided in the end, wherever earlier ones were
  // cut off, and all members remove their records. Applications that release
  // their replicas go on trying to open the log; others would keep their
  // replicas from the deletion. Afterwards all try (P-D3).
  void EndByDeletion() {
    is_healed_ = true;
    Heal(world_);
    world_.BeQuiet();
    is_over_ = !world_.options().background_actors.claim;
    for (World::Machine& machine : world_.machines()) {
      world_.KillPrimary(machine);
    }
    if (world_.operator_at_work() != nullptr) {
      world_.operator_at_work()->FinishChanges();
    }
    world_.deleter()->Finish();
    end_by_ = world_.now() + 2 * kEndNanosMax;
    StepToTheEnd("the log is not deleted",
                 [&] { return world_.deleter()->is_done(); });
    // One that missed it asks while no application of its machine has its
    // replica. It counts marks, of which a fault of storage may have taken too
    // many.
    is_over_ = true;
    DeletionChecker& deletion = world_.checkers().deletion;
    StepToTheEnd("a member keeps its records", [&] {
      return deletion.IsRemovedEverywhere() || !deletion.IsDecided();
    });
    is_over_ = false;
    StepFor(kLastTriesNanos);
  }

  void MustFinishChanges() {
    if (world_.operator_at_work() == nullptr) return;
    end_by_ = world_.now() + kEndNanosMax;
    StepToTheEnd("a change of members does not come to an end", [&] {
      return world_.checkers().configurations.IsInForceEverywhere();
    });
    world_.operator_at_work()->GiveListInForce();
  }

  void LetItLive() {
    world_.Trace("healed");
    Heal(world_);
    for (World::Machine& machine : world_.machines()) {
      world_.KillPrimary(machine);
    }
    if (Continues()) MustFinishChanges();
    if (Continues()) MustContinue("all is well");
    if (Continues()) MustAnswerAll();
  }

  // SVC7 (service_checker.h).
  void MustAnswerAll() {
    ServiceClients* const clients = world_.service_clients();
    if (clients == nullptr) return;
    clients->Rest();
    const int64_t until = world_.now() + kEndNanosMax;
    StepUntil([&] {
      if (clients->AreAllAnswered()) return true;
      if (world_.now() > until) {
        Overdue("all is well, and requests of clients have no answer", "SVC7");
      }
      return false;
    });
  }

  void MustContinue(const char* what) {
    const int64_t until = world_.now() + kLivenessNanosMax;
    const uint64_t target =
        world_.history().records_acknowledged() + kLivenessRecords;
    StepUntil([&] {
      if (world_.now() > until) {
        Overdue(absl::StrCat(what, " for ", kLivenessNanosMax,
                             " ns, and nothing is acknowledged"));
      }
      return world_.history().records_acknowledged() >= target;
    });
  }

  PrimaryProcess* Writer() {
    for (World::Machine& machine : world_.machines()) {
      if (machine.primary != nullptr && machine.primary->is_open()) {
        writer_ = machine.number;
        return machine.primary.get();
      }
    }
    return nullptr;
  }

  bool IsGone(int machine) {
    return world_.machine(machine).primary == nullptr;
  }

  void StepFor(int64_t ns) {
    const int64_t until = world_.now() + ns;
    StepUntil([&] { return world_.now() >= until; });
  }

  // Steps until it is done, or the time of the end has passed.
  template <class Done>
  void StepToTheEnd(const char* what, const Done& done) {
    StepUntil([&] {
      if (done()) return true;
      if (world_.now() > end_by_) {
        Overdue(absl::StrCat("all is well, and ", what));
      }
      return false;
    });
  }

  // No client calls any more: equal replicas, and a close in good order. A
  // connection may break even now; then another primary has its turn.
  void LetItIdle() {
    end_by_ = world_.now() + kEndNanosMax;
    world_.BeQuiet();
    EndChecker checker(world_);
    while (!closed_ && Continues()) {
      StepToTheEnd("no log comes to rest", [&] {
        PrimaryProcess* const writer = Writer();
        if (writer == nullptr) return false;
        writer->Idle();
        return writer->is_idle();
      });
      if (!Continues()) return;
      PrimaryProcess* const writer = Writer();
      epoch_ = writer->epoch();
      checker.CompareMedia(epoch_, writer->next_lsn(), writer->in_sync());
      // Drops the entries of logs that were closed before.
      static_cast<void>(world_.TakeClosed());
      writer->CloseInOrder();
      StepToTheEnd("a log does not close", [&] { return IsGone(writer_); });
      closed_ = world_.TakeClosed();
    }
    is_over_ = true;
    StepUntil([&] {
      CloseTheRest();
      return AllGone();
    });
    StepFor(kIdleStepNanos);
    checker.CheckWhenIdle(epoch_);
  }

  // Candidates may have started two; the other one has no client, either.
  void CloseTheRest() {
    if (PrimaryProcess* const other = Writer(); other != nullptr) {
      epoch_ = std::max(epoch_, other->epoch());
      other->CloseInOrder();
    }
  }

  bool AllGone() {
    return std::ranges::all_of(world_.machines(),
                               [](const World::Machine& machine) {
                                 return machine.primary == nullptr;
                               });
  }

  // Other machines, also the one without a replica, must read the same log.
  void OpenAgain() {
    EndChecker checker(world_);
    int machine = writer_;
    int opened = 0;
    while (opened < kFinalOpenings && Continues()) {
      machine = (machine + 1) % static_cast<int>(world_.machines().size());
      world_.StartPrimary(world_.machine(machine));
      std::optional<Lsn> end;
      StepToTheEnd("no log is opened again", [&] {
        if (IsGone(machine)) return true;
        PrimaryProcess& primary = *world_.machine(machine).primary;
        if (end || !primary.is_open()) return false;
        end = primary.opened_end();
        epoch_ = primary.epoch();
        primary.CloseInOrder();
        return false;
      });
      if (!end) continue;
      ++opened;
      ++world_.counters().final_openings;
      checker.CompareEnds(*closed_, *end);
    }
    StepFor(kIdleStepNanos);
    checker.CheckWhenIdle(epoch_);
  }

  World world_;
  const std::vector<Fault> faults_;
  uint64_t checks_ = 0;
  std::optional<SurvivingCore> surviving_core_;  // while only that is healed
  bool is_healed_ = false;
  bool is_abandoned_ = false;
  bool is_over_ = false;  // nobody starts a primary any more
  int writer_ = 0;        // its machine
  int64_t end_by_ = 0;
  Epoch epoch_;
  std::optional<Lsn> closed_;
};

}  // namespace

RunResult RunSeed(const RunOptions& options,
                  const std::function<void(std::string_view)>& trace) {
  return Run(options, trace).Go();
}

}  // namespace alpheus::sim
