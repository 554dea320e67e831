// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/execute/update_responder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/pmem/backends.h"
#include "log/pmem/libpmem_persistence.h"
#include "log/pmem/msync_persistence.h"
#include "replication/persist/platform/method_table.h"

namespace alpheus::replication {
namespace {

// Slots: one for each half of the credits, an ack, and one more.
constexpr size_t kReportSlots = 4;

std::vector<Step> StepsOfResponder(std::span<const Step> steps) {
  std::vector<Step> program;
  for (const Step& step : steps) {
    if (IsOfResponder(step.action)) program.push_back(step);
  }
  return program;
}

bool IsReceiveStep(StepAction action) {
  return action == StepAction::kResponderReceive ||
         action == StepAction::kResponderReceiveAddress;
}

}  // namespace

template <Persistence P>
UpdateResponder<P>::UpdateResponder(P& pmem, std::span<const Step> steps,
                                    const Options& options,
                                    fabric::Fabric& fabric,
                                    fabric::ConnectionId connection)
    : pmem_(pmem),
      options_(options),
      fabric_(fabric),
      connection_(connection),
      program_(StepsOfResponder(steps)),
      is_message_log_(NeedsMessagesApplied(steps)),
      free_reports_(kReportSlots) {
  std::iota(free_reports_.begin(), free_reports_.end(), 0);
  ALPHEUS_CHECK(program_.empty() || IsReceiveStep(program_.front().action),
                "a program that begins with what wakes it");
}

template <Persistence P>
absl::StatusOr<std::unique_ptr<UpdateResponder<P>>> UpdateResponder<P>::Start(
    P& pmem, std::span<const Step> steps, const Options& options,
    fabric::Fabric& fabric, fabric::ConnectionId connection) {
  ALPHEUS_CHECK(options.session.value != 0 && options.credits >= 2,
                "a session, and a receive for each half of the credits");
  std::unique_ptr<UpdateResponder> responder(
      new UpdateResponder(pmem, steps, options, fabric, connection));
  ALPHEUS_ASSIGN_OR_RETURN(
      responder->reports_,
      MessageSlots::Make(fabric, kReportSlots, kUpdateReportBytes));
  if (!options.buffers.bytes.empty()) {
    responder->log_.emplace(pmem, options.buffers.bytes,
                            options.message_bytes_max, options.region);
  } else {
    ALPHEUS_ASSIGN_OR_RETURN(
        responder->dram_,
        MessageSlots::Make(fabric, options.credits, options.message_bytes_max));
  }
  if (responder->is_message_log_) {
    if (!responder->log_) {
      return absl::FailedPreconditionError(absl::StrCat(
          StepsToString(steps),
          ": messages are the log, and these receive buffers are DRAM; plan "
          "for a platform with DRAM buffers"));
    }
    ALPHEUS_RETURN_IF_ERROR(responder->log_->Begin(options.session));
  }
  for (uint64_t slot = 0; slot < options.credits; ++slot) {
    ALPHEUS_RETURN_IF_ERROR(fabric.PostReceive(connection, fabric::WorkId(slot),
                                               responder->Buffer(slot)));
  }
  return responder;
}

template <Persistence P>
fabric::LocalBytes UpdateResponder<P>::Buffer(uint64_t slot) const {
  if (!log_) return dram_->At(slot);
  return {options_.buffers.key, log_->At(slot)};
}

template <Persistence P>
absl::Status UpdateResponder<P>::OnCompletion(
    const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    return absl::UnavailableError(absl::StrCat(
        "update ", sequence_ + 1, ": the connection to the requester broke: ",
        fabric::OperationName(completion.operation), ": ",
        fabric::CompletionStatusName(completion.status)));
  }
  if (completion.operation == fabric::Operation::kSend) {
    free_reports_.push_back(completion.work.value);
    return owes_report_ ? Report() : absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(const Announcement announcement, Read(completion));
  if (!program_.empty()) return Run(announcement);
  if (completion.operation == fabric::Operation::kReceive && is_message_log_) {
    unapplied_.push_back(announcement);
    // P-R5.
    return absl::OkStatus();
  }
  ALPHEUS_RETURN_IF_ERROR(Repost(announcement.slot));
  return ReportCredits();
}

// UR3. Reads a receive, if the row has receives of its kind.
template <Persistence P>
auto UpdateResponder<P>::Read(const fabric::Completion& completion)
    -> absl::StatusOr<Announcement> {
  if (completion.operation == fabric::Operation::kReceive) {
    return ReadMessage(completion);
  }
  Announcement announcement = {.slot = completion.work.value,
                               .is_address = true};
  const UpdatePlace place = {uint64_t{completion.immediate} * sizeof(uint64_t),
                             completion.bytes};
  if (completion.operation != fabric::Operation::kReceiveImmediate ||
      !IsInRegion(place, options_.region.size())) {
    return absl::DataLossError(absl::StrCat(
        "update ", sequence_ + 1, ": the requester did what none does: ",
        fabric::OperationName(completion.operation), ", ", place.bytes,
        " bytes at ", place.offset, " of a region of ", options_.region.size(),
        "; close the session, its memory may be damaged"));
  }
  announcement.message.a = place;
  return announcement;
}

template <Persistence P>
auto UpdateResponder<P>::ReadMessage(const fabric::Completion& completion)
    -> absl::StatusOr<Announcement> {
  const uint64_t slot = completion.work.value;
  const auto message =
      DecodeUpdateMessage(Buffer(slot).bytes.first(completion.bytes));
  const bool is_ours = message && message->session == options_.session;
  const bool is_next =
      is_ours && (message->sequence == sequence_ + 1 ||
                  (message->is_address() && message->sequence == sequence_));
  const bool is_inside = is_next &&
                         IsInRegion(message->a, options_.region.size()) &&
                         IsInRegion(message->b, options_.region.size());
  if (!is_inside) {
    return absl::DataLossError(absl::StrCat(
        "update ", sequence_ + 1, ": the requester sent ", completion.bytes,
        " bytes that are no whole message of this session, in turn, with "
        "places in a region of ",
        options_.region.size(), "; close the session"));
  }
  sequence_ = message->sequence;
  Announcement announcement = {
      .slot = slot, .is_address = message->is_address(), .message = *message};
  // The address of b.
  if (announcement.is_address && message->a.bytes == 0)
    announcement.message.a = message->b;
  return announcement;
}

template <Persistence P>
absl::Status UpdateResponder<P>::Run(const Announcement& announcement) {
  const bool is_awaited =
      (program_[at_].action == StepAction::kResponderReceiveAddress) ==
      announcement.is_address;
  if (!is_awaited) {
    return absl::DataLossError(absl::StrCat(
        "update ", sequence_, ": ", StepName(program_[at_]),
        " was to come, and something else came; both ends need one plan"));
  }
  ++wake_ups_;
  const uint64_t receives_before = receives_;
  for (++at_; at_ < program_.size() && !IsReceiveStep(program_[at_].action);
       ++at_) {
    ALPHEUS_RETURN_IF_ERROR(Perform(program_[at_], announcement));
  }
  if (at_ == program_.size()) at_ = 0;
  if (receives_ != receives_before) return absl::OkStatus();
  return Repost(announcement.slot);
}

template <Persistence P>
absl::Status UpdateResponder<P>::Perform(const Step& step,
                                         const Announcement& announcement) {
  switch (step.action) {
    case StepAction::kResponderCopy:
      return CopyUpdate(pmem_, options_.region, announcement.message,
                        /*persists=*/false);
    case StepAction::kResponderCopyAndFlush:
      return CopyUpdate(pmem_, options_.region, announcement.message,
                        /*persists=*/true);
    case StepAction::kResponderFlush:
      return Flush(announcement.message.a);
    default:  // kResponderSendAck: the credit goes with it
      ALPHEUS_RETURN_IF_ERROR(Repost(announcement.slot));
      ++acks_;
      return Report();
  }
}

template <Persistence P>
absl::Status UpdateResponder<P>::Flush(const UpdatePlace& place) {
  return Persist(pmem_, options_.region.data() + place.offset, place.bytes)
             ? absl::OkStatus()
             : pmem_.Error();
}

template <Persistence P>
absl::Status UpdateResponder<P>::ApplyReceived() {
  while (!unapplied_.empty()) {
    const Announcement announcement = unapplied_.front();
    ALPHEUS_RETURN_IF_ERROR(log_->Apply(announcement.message));
    unapplied_.pop_front();
    ALPHEUS_RETURN_IF_ERROR(Repost(announcement.slot));
  }
  return ReportCredits();
}

template <Persistence P>
absl::Status UpdateResponder<P>::Repost(uint64_t slot) {
  ++receives_;
  return fabric_.PostReceive(connection_, fabric::WorkId(slot), Buffer(slot));
}

// No row has a step for credits: they go back from time to time, many at once.
template <Persistence P>
absl::Status UpdateResponder<P>::ReportCredits() {
  if (receives_ - reported_ < options_.credits / 2) return absl::OkStatus();
  return Report();
}

template <Persistence P>
absl::Status UpdateResponder<P>::Report() {
  owes_report_ = free_reports_.empty();
  if (owes_report_) return absl::OkStatus();
  const size_t slot = free_reports_.back();
  const fabric::LocalBytes message = reports_->At(slot);
  EncodeUpdateReport({options_.session, acks_, receives_},
                     message.bytes.first<kUpdateReportBytes>());
  ALPHEUS_RETURN_IF_ERROR(
      fabric_.PostSend(connection_, fabric::WorkId(slot), message));
  free_reports_.pop_back();
  reported_ = receives_;
  ++reports_sent_;
  return absl::OkStatus();
}

ALPHEUS_INSTANTIATE_CLASS(UpdateResponder);

}  // namespace alpheus::replication
