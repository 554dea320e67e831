// SPDX-License-Identifier: Apache-2.0
// What primary_process does around the calls of its clients.
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/checkers.h"
#include "tools/sim/primary_process.h"

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
                   world_.threads().SteadySince(process_));
  if (!status.ok() && has_failed()) Close();
  return status.ok();
}

void PrimaryProcess::AskToBeTold(
    Lsn lsn, std::function<void(const absl::Status&)> then) {
  const BegunCall call = Begin(ClientCall::kOnDurable);
  ++callbacks_;
  const absl::Status asked = log_->OnDurable(
      lsn, [this, lsn, then = std::move(then)](const absl::Status& told) {
        --callbacks_;
        if (told.ok()) world_.history().Acknowledged(number_, lsn);
        if (then) then(told);
      });
  // Then it is not called.
  if (!asked.ok()) --callbacks_;
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
  if (status.ok() && open < before) {
    world_.referee().Violate(
        "L11",
        absl::StrCat("all before LSN ", before.value, " was cleaned, and LSN ",
                     open.value, " was still open"));
  }
  if (Returned(call, before - 1, status)) {
    history.Emptied(before);
    world_.checkers().epochs.LookAtNews();
    const Lsn head =
        world_.checkers().marks.DurableHead(world_.options().write_quorum);
    if (head < before) {
      world_.referee().Violate(
          "L11", absl::StrCat("all before LSN ", before.value,
                              " was cleaned, and on W media the log begins "
                              "with LSN ",
                              head.value));
    }
  } else if (absl::IsFailedPrecondition(status)) {
    // It was refused, and has cleaned nothing.
    history.NotCleanedThrough(number_, before - 1);
  }
  return status.ok();
}

// Whoever asked to be told of a record is told of the log's end, too.
void PrimaryProcess::JudgeCallbacks(const char* end) {
  const bool has_ended = log_ == nullptr || has_failed();
  if (!has_ended || callbacks_ == 0) return;
  world_.referee().Violate(
      "F7", absl::StrCat("the log of primary ", number_, " has ", end, ", and ",
                         callbacks_, " callbacks were not told of it"));
}

}  // namespace alpheus::sim
