// SPDX-License-Identifier: Apache-2.0
#include "recovery/opening/plan_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "recovery/opening/copy_ranges.h"

namespace alpheus::recovery {
PlanRunner::PlanRunner(const PlanTerms& terms, PlanInput input,
                       fabric::Fabric& fabric, RandomSource& random)
    : terms_(terms),
      input_(std::move(input)),
      fabric_(fabric),
      random_(random) {
  own_ring_.ring = input_.own->ring();
  own_ring_.key = input_.own_key;
  for (size_t i = 0; i < input_.peers.size(); ++i) {
    if (input_.peers[i] == nullptr) own_ring_.reports |= ReportSet{1} << i;
  }
  for (const ReplicaRepair& repair : input_.plan.repairs) {
    Run& run = runs_.emplace_back();
    run.repair = repair;
    run.peer = input_.peers[repair.report];
  }
}

Installation PlanRunner::WhatIsInstalled() const {
  const LogPosition& head = input_.decision.head;
  const LogPosition& end = input_.decision.end;
  return {terms_.promise.epoch, input_.plan.table, head, end, Ceiling(),
          terms_.configuration};
}

// Returns the ceiling that all install. Repeated calls agree: before its own
// installation the own replica's ceiling is raised at most to the log's end.
RingOffset PlanRunner::Ceiling() const {
  const RingOffset head = input_.decision.head.offset;
  const uint64_t lap = own_ring_.ring.capacity();
  const RingOffset ceiling = CeilingAfter(input_.decision.end.offset, head, lap,
                                          terms_.ceiling_step_bytes);
  if (!terms_.keeps_ceiling) return ceiling;
  return std::max(ceiling,
                  std::min(input_.own->superline().ceiling, head + lap));
}

// Returns the ring offset before which the repair writes; 0 if it writes
// nothing.
RingOffset PlanRunner::WrittenEnd(const ReplicaRepair& repair) const {
  return repair.copies.empty() ? RingOffset(0) : input_.decision.end.offset;
}

absl::StatusOr<std::unique_ptr<RingCopier>> PlanRunner::MakeCopier(
    size_t number, OpeningPeer* destination,
    const std::vector<CopyRun>& copies) {
  return RingCopier::Make(static_cast<uint32_t>(number),
                          {input_.peers, destination, own_ring_},
                          RangesOf(input_.decision, input_.reports, copies,
                                   own_ring_.ring.capacity()),
                          terms_.copy_bytes_max, fabric_);
}

absl::Status PlanRunner::Advance() {
  if (stopped_) {
    for (Run& run : runs_) {
      if (run.copier != nullptr) ALPHEUS_RETURN_IF_ERROR(run.copier->Post());
    }
    return absl::OkStatus();
  }
  if (input_.is_working_copy && !own_installed_) {
    ALPHEUS_RETURN_IF_ERROR(FillCache());
  }
  if (!input_.is_working_copy || own_installed_) {
    // Repeats until nothing changes: an installed replica may let another
    // begin.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < runs_.size(); ++i) {
        const Step before = runs_[i].step;
        ALPHEUS_RETURN_IF_ERROR(Advance(i));
        if (runs_[i].step == before) continue;
        changed = true;
        ++steps_;
      }
    }
  }
  return CheckPossible();
}

absl::Status PlanRunner::CheckPossible() const {
  for (const InstallQuorum& quorum : terms_.quorums.to_show) {
    const uint32_t possible =
        Count(quorum, [this](const Run& run) { return MayInstall(run); });
    if (possible >= quorum.needed) continue;
    bool any_barred = false;
    for (size_t i = 0; i < runs_.size(); ++i) any_barred |= IsBarred(i);
    return absl::UnavailableError(absl::StrCat(
        possible, " replicas can still install the epoch, ", quorum.needed,
        " of ", quorum.members.size(), " members are needed",
        any_barred ? "; others hold records that were not chosen, which are "
                     "overwritten only once another replica holds the log"
                   : "",
        any_barred && runs_.front().repair.destructive
            ? ". The replica that holds the log leaves with this change: open "
              "the log once without the change, so that the members that stay "
              "get it, then change the members"
            : ""));
  }
  return absl::OkStatus();
}

// PLR2, PLR4.
bool PlanRunner::MayBegin(size_t index) const {
  if (runs_[index].repair.is_newcomer) {
    return HaveInstalled(terms_.quorums.before_newcomers);
  }
  if (!runs_[index].repair.destructive) return true;
  if (HaveInstalled(terms_.quorums.to_show)) return true;
  return !IsBarred(index) &&
         std::all_of(runs_.begin(),
                     runs_.begin() + static_cast<ptrdiff_t>(index), IsOver);
}

// True if each run before it failed, or is destructive and waits. The first run
// of all is destructive only if the holder of the log leaves it (PLR2).
bool PlanRunner::IsBarred(size_t index) const {
  if (any_installed_) return false;
  const auto waits = [](const Run& run) {
    return run.repair.destructive && run.step == Step::kWaiting;
  };
  if (!waits(runs_[index])) return false;
  return std::all_of(runs_.begin(),
                     runs_.begin() + static_cast<ptrdiff_t>(index),
                     [&](const Run& before) {
                       return before.step == Step::kFailed || waits(before);
                     });
}

absl::Status PlanRunner::Advance(size_t index) {
  Run& run = runs_[index];
  if (run.peer != nullptr && run.peer->failed() && run.step != Step::kFailed) {
    Fail(run, run.peer->failure());
  }
  switch (run.step) {
    case Step::kWaiting:
      if (MayBegin(index)) return Begin(run);
      // It was allowed to begin a moment ago.
      if (run.peer != nullptr) run.peer->SuspendReads(false);
      return absl::OkStatus();
    case Step::kOpeningForRepair:
      if (run.peer != nullptr &&
          run.peer->state() != OpeningPeer::State::kRepairOpened) {
        return absl::OkStatus();
      }
      return BeginCopying(index);
    case Step::kCopying:
      return ContinueCopy(run);
    case Step::kInstalling:
      if (run.peer == nullptr) {
        ALPHEUS_RETURN_IF_ERROR(ContinueInstallOwn());
        if (own_installed_) BecomeInstalled(run);
        return absl::OkStatus();
      }
      if (run.peer->state() == OpeningPeer::State::kInstalled) {
        BecomeInstalled(run);
      }
      return absl::OkStatus();
    default:
      // The copy's reads from other replicas still use its memory.
      return run.copier != nullptr ? run.copier->Post() : absl::OkStatus();
  }
}

// OpenForRepair changes the ring's key, so reads by others from this ring end
// first.
absl::Status PlanRunner::Begin(Run& run) {
  const Epoch epoch = terms_.promise.epoch;
  if (run.peer == nullptr) {
    if (run.repair.set_repairing) {
      ALPHEUS_RETURN_IF_ERROR(input_.own->BeginRepair(epoch));
    }
    ALPHEUS_RETURN_IF_ERROR(
        input_.own->RaiseCeiling(epoch, WrittenEnd(run.repair)));
    run.step = Step::kOpeningForRepair;
    return absl::OkStatus();
  }
  run.peer->SuspendReads(true);
  if (run.peer->posted() != 0) return absl::OkStatus();
  run.peer->SuspendReads(false);
  run.peer->Ask(
      OpenForRepair{epoch, run.repair.set_repairing, WrittenEnd(run.repair)});
  run.step = Step::kOpeningForRepair;
  return absl::OkStatus();
}

absl::Status PlanRunner::BeginCopying(size_t index) {
  Run& run = runs_[index];
  auto copier = MakeCopier(index, run.peer, run.repair.copies);
  ALPHEUS_RETURN_IF_ERROR(copier.status());
  run.copier = *std::move(copier);
  run.step = Step::kCopying;
  return ContinueCopy(run);
}

absl::Status PlanRunner::ContinueCopy(Run& run) {
  if (const absl::Status copied = run.copier->Post(); !copied.ok()) {
    if (run.peer == nullptr) return copied;
    Fail(run, copied);
    return absl::OkStatus();
  }
  return run.copier->is_done() ? ContinueInstall(run) : absl::OkStatus();
}

absl::Status PlanRunner::ContinueInstall(Run& run) {
  if (run.peer == nullptr) {
    run.step = Step::kInstalling;
    return StartInstallingOwn();
  }
  run.peer->Ask(Install{WhatIsInstalled(), NewSession(random_), terms_.credits,
                        terms_.heartbeat_ms},
                own_ring_.ring, own_ring_.key);
  run.step = Step::kInstalling;
  return absl::OkStatus();
}

absl::Status PlanRunner::StartInstallingOwn() {
  own_installing_ = true;
  Installation installation = WhatIsInstalled();
  if (input_.is_working_copy) installation.configuration = {};
  return input_.own->StartInstall(installation);
}

absl::Status PlanRunner::ContinueInstallOwn() {
  const absl::StatusOr<bool> done = input_.own->Continue(terms_.slice_bytes);
  if (!done.ok()) return done.status();
  own_installing_ = !*done;
  own_installed_ = *done;
  return absl::OkStatus();
}

void PlanRunner::BecomeInstalled(Run& run) {
  run.step = Step::kInstalled;
  any_installed_ = true;
}

absl::Status PlanRunner::FillCache() {
  if (cache_copier_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(
        cache_copier_,
        MakeCopier(runs_.size(), nullptr, CopiesOfAll(input_.decision)));
  }
  if (!own_installing_) {
    ALPHEUS_RETURN_IF_ERROR(cache_copier_->Post());
    if (!cache_copier_->is_done()) return absl::OkStatus();
    ALPHEUS_RETURN_IF_ERROR(StartInstallingOwn());
  }
  ALPHEUS_RETURN_IF_ERROR(ContinueInstallOwn());
  own_ring_.has_all = own_installed_;
  return absl::OkStatus();
}

// Closes the connection first: nothing is then written from freed memory.
void PlanRunner::Fail(Run& run, const absl::Status& status) {
  run.peer->Fail(status);
  if (run.copier != nullptr) run.copier->Stop();
  run.step = Step::kFailed;
}

void PlanRunner::OnCompletion(const fabric::Completion& completion) {
  const uint32_t number = RingCopier::NumberOf(completion.work);
  RingCopier* const copier =
      number < runs_.size() ? runs_[number].copier.get() : cache_copier_.get();
  ALPHEUS_CHECK(copier != nullptr, "only copies have such works");
  copier->OnCompletion(completion);
}

bool PlanRunner::is_enough() const {
  return own_installed_ && HaveInstalled(terms_.quorums.to_show);
}

uint64_t PlanRunner::progress() const {
  uint64_t progress = steps_;
  for (const Run& run : runs_) {
    if (run.copier != nullptr) progress += run.copier->progress();
  }
  return progress;
}

int64_t PlanRunner::PatienceNanos() const {
  const bool any_installs =
      std::any_of(runs_.begin(), runs_.end(), [](const Run& run) {
        return run.peer != nullptr && run.step == Step::kInstalling;
      });
  if (!any_installs) return 0;
  const Decision& decision = input_.decision;
  return ReadingNanos(decision.end.offset - decision.head.offset);
}

bool PlanRunner::is_over() const {
  return std::all_of(runs_.begin(), runs_.end(), IsOver);
}

void PlanRunner::Stop(const absl::Status& why) {
  stopped_ = true;
  for (Run& run : runs_) {
    if (!IsOver(run) && run.peer != nullptr) Fail(run, why);
  }
}

bool PlanRunner::is_quiet() const {
  return std::all_of(runs_.begin(), runs_.end(), [](const Run& run) {
    return run.copier == nullptr || run.copier->is_quiet();
  });
}

Member PlanRunner::MemberOf(const Run& run) const {
  const StateReport& report = input_.reports[run.repair.report];
  return {report.node, report.incarnation};
}

uint32_t PlanRunner::Count(const InstallQuorum& quorum,
                           const std::function<bool(const Run&)>& is_so) const {
  return static_cast<uint32_t>(
      std::count_if(runs_.begin(), runs_.end(), [&](const Run& run) {
        return std::find(quorum.members.begin(), quorum.members.end(),
                         MemberOf(run)) != quorum.members.end() &&
               is_so(run);
      }));
}

bool PlanRunner::HaveInstalled(
    const std::vector<InstallQuorum>& quorums) const {
  const auto has_installed = [](const Run& run) {
    return run.step == Step::kInstalled &&
           (run.peer == nullptr || !run.peer->failed());
  };
  return std::all_of(quorums.begin(), quorums.end(),
                     [&](const InstallQuorum& quorum) {
                       return Count(quorum, has_installed) >= quorum.needed;
                     });
}

bool PlanRunner::MayInstall(const Run& run) const {
  const bool failed =
      run.step == Step::kFailed || (run.peer != nullptr && run.peer->failed());
  return !failed && !IsBarred(static_cast<size_t>(&run - runs_.data()));
}

std::vector<std::string> PlanRunner::Sentences() const {
  std::vector<std::string> sentences;
  for (const Run& run : runs_) {
    const uint64_t records = RecordCount(run.repair.copies);
    if (run.step != Step::kInstalled || records == 0) continue;
    sentences.push_back(absl::StrCat(
        run.peer == nullptr ? input_.own->name() : run.peer->Describe(), ": ",
        records, " records from LSN ", run.repair.copies.front().first.value,
        " on copied from other replicas",
        run.repair.destructive ? ", over others that were not chosen" : ""));
  }
  return sentences;
}

}  // namespace alpheus::recovery
