// SPDX-License-Identifier: Apache-2.0
// What primary_process does around the calls of its clients.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

bool PrimaryProcess::Returned(const BegunCall& call, Lsn lsn,
                              const absl::Status& status) {
  ++world_.counters().calls;
  CheckInvariants();
  if (world_.IsTraced()) {
    world_.Trace(absl::StrCat("client of primary ", number_, ": ",
                              CallName(call.call), " LSN ", lsn.value, ": ",
                              status.ToString()));
  }
  judge_->Returned(call, lsn, status, has_failed(),
                   clock_.SteadySince(world_.threads().SteadySince(process_)));
  if (!status.ok() && has_failed()) Close();
  return status.ok();
}

void PrimaryProcess::AskToBeTold(
    Lsn lsn, std::function<void(const absl::Status&)> then) {
  const BegunCall call = Begin(ClientCall::kOnDurable);
  judge_->AskedToBeTold();
  const absl::Status asked = log_->OnDurable(
      lsn, [this, lsn, then = std::move(then)](const absl::Status& told) {
        judge_->Told();
        if (told.ok()) world_.history().Acknowledged(number_, lsn);
        if (then) then(told);
      });
  // Then it is not called.
  if (!asked.ok()) judge_->Told();
  Returned(call, lsn, asked);
}

bool PrimaryProcess::CleanupAll() {
  // What others append in between is cleaned, too.
  const Lsn before = log_->next_lsn();
  History& history = world_.history();
  history.MayBeCleanedThrough(number_, before - 1);
  const Lsn open = log_->first_open_lsn();
  const BegunCall call = Begin(ClientCall::kCleanupAll);
  const absl::Status status = log_->CleanupAll();
  if (Returned(call, before - 1, status)) {
    world_.checkers().epochs.LookAtNews();
    history.Emptied(
        before, open,
        world_.checkers().configurations.DurableHeadOf(opened_->configuration));
  } else if (absl::IsFailedPrecondition(status)) {
    // It was refused, and has cleaned nothing.
    history.NotEmptied(number_, before, open);
  }
  return status.ok();
}

}  // namespace alpheus::sim
