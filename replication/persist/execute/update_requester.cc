// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/execute/update_requester.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "replication/persist/execute/update_message.h"

namespace alpheus::replication {
namespace {

constexpr uint64_t kUpdateWord = sizeof(uint64_t);
// Reports that the responder has in flight at most: one for each half of the
// credits, and an ack.
constexpr size_t kReports = 4;
// Messages: an update has two addresses at most.
constexpr size_t kMessages = 2;

bool TakesAReceive(StepAction action) {
  return action == StepAction::kRequesterWriteImmediate ||
         action == StepAction::kRequesterSend ||
         action == StepAction::kRequesterSendAddress;
}

UpdatePlace PlaceOf(const UpdateRequester::Part& part) {
  return {part.to.offset, part.from.bytes.size()};
}

bool IsOfWords(const UpdateRequester::Part& part) {
  return part.to.offset % kUpdateWord == 0 &&
         part.from.bytes.size() % kUpdateWord == 0;
}

// The immediate is the number of a word.
uint32_t ImmediateOf(const UpdateRequester::Part& part) {
  return static_cast<uint32_t>(part.to.offset / kUpdateWord);
}

}  // namespace

UpdateRequester::UpdateRequester(std::span<const Step> steps,
                                 const Options& options, fabric::Fabric& fabric,
                                 fabric::ConnectionId connection)
    : steps_(steps),
      options_(options),
      fabric_(fabric),
      connection_(connection),
      at_(steps.size()),
      posted_as_(steps.size()) {}

absl::StatusOr<std::unique_ptr<UpdateRequester>> UpdateRequester::Start(
    std::span<const Step> steps, const Options& options, fabric::Fabric& fabric,
    fabric::ConnectionId connection) {
  ALPHEUS_CHECK(options.session.value != 0 && options.credits >= 2,
                "a session, and a receive for each half of the credits");
  std::unique_ptr<UpdateRequester> requester(
      new UpdateRequester(steps, options, fabric, connection));
  if (requester->HasAction(StepAction::kRequesterWriteAtomic) &&
      !fabric.limits().atomic_write) {
    return absl::UnimplementedError(absl::StrCat(
        StepsToString(steps),
        ": this adapter has no atomic WRITE; plan for a platform without it"));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      requester->reports_,
      MessageSlots::Make(fabric, kReports, kUpdateReportBytes));
  ALPHEUS_ASSIGN_OR_RETURN(
      requester->messages_,
      MessageSlots::Make(fabric, kMessages, options.message_bytes_max));
  for (size_t slot = 0; slot < kReports; ++slot) {
    ALPHEUS_RETURN_IF_ERROR(requester->PostReceive(slot));
  }
  return requester;
}

bool UpdateRequester::HasAction(StepAction action) const {
  return std::ranges::count(steps_, action, &Step::action) > 0;
}

absl::Status UpdateRequester::PostReceive(uint64_t slot) {
  return fabric_.PostReceive(connection_, fabric::WorkId(slot),
                             reports_->At(slot));
}

absl::Status UpdateRequester::Check(const Update& update) const {
  const bool is_compound = std::ranges::any_of(steps_, [](const Step& step) {
    return step.part == UpdatePart::kB || step.part == UpdatePart::kBoth;
  });
  const uint64_t bytes_of_a = update.a.from.bytes.size();
  const uint64_t bytes_of_b = update.b.from.bytes.size();
  const uint64_t message =
      kUpdateMessageHeaderBytes +
      (HasAction(StepAction::kRequesterSend) ? bytes_of_a + bytes_of_b : 0);
  const bool has_parts = bytes_of_a != 0 && (bytes_of_b != 0) == is_compound;
  const bool fits = message <= options_.message_bytes_max;
  const bool is_of_words =
      !HasAction(StepAction::kRequesterWriteImmediate) ||
      (IsOfWords(update.a) && IsOfWords(update.b) &&
       std::max(update.a.to.offset, update.b.to.offset) / kUpdateWord <=
           UINT32_MAX);
  const bool is_a_word = !HasAction(StepAction::kRequesterWriteAtomic) ||
                         (IsOfWords(update.b) && bytes_of_b == kUpdateWord);
  const bool can_skip =
      !update.is_there || (HasAction(StepAction::kRequesterWrite) &&
                           !is_compound && bytes_of_b == 0);
  if (has_parts && fits && is_of_words && is_a_word && can_skip) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "update ", posted_ + 1, ": a of ", bytes_of_a, " bytes to ",
      update.a.to.offset, ", b of ", bytes_of_b, " bytes to ",
      update.b.to.offset, ", messages of at most ", options_.message_bytes_max,
      ", can't be posted by ", StepsToString(steps_),
      "; a is never empty, b is there in compound updates only, immediates "
      "name words, an atomic WRITE is one, and only a WRITE can be there "
      "already"));
}

absl::Status UpdateRequester::Post(const Update& update) {
  ALPHEUS_CHECK(CanPost(), "one update at a time");
  ALPHEUS_RETURN_IF_ERROR(Check(update));
  update_ = update;
  at_ = 0;
  ++posted_;
  return Advance();
}

absl::Status UpdateRequester::Advance() {
  if (persisted_ == posted_) return absl::OkStatus();
  for (; at_ < steps_.size(); ++at_) {
    const Step& step = steps_[at_];
    if (IsOfResponder(step.action)) continue;
    if (update_.is_there && IsOfWrite(step)) continue;
    if (step.action == StepAction::kRequesterReceiveAck ||
        AwaitedBy(step.action)) {
      if (!IsOver(step)) return absl::OkStatus();
      continue;
    }
    if (!HasCreditFor(step.action)) return absl::OkStatus();
    posted_as_[at_] = operations_ + 1;
    ALPHEUS_RETURN_IF_ERROR(PostStep(step));
    ++operations_;
    // Its ack comes after the message to the responder.
    if (TakesAReceive(step.action)) ++announced_;
  }
  ++persisted_;
  return absl::OkStatus();
}

// UQ2. A wait is for the last such operation.
bool UpdateRequester::IsOver(const Step& wait) const {
  if (wait.action == StepAction::kRequesterReceiveAck) {
    const auto before = steps_.first(at_ + 1);
    const auto of_update = static_cast<uint64_t>(std::ranges::count(
        before, StepAction::kRequesterReceiveAck, &Step::action));
    const auto per_update = static_cast<uint64_t>(std::ranges::count(
        steps_, StepAction::kRequesterReceiveAck, &Step::action));
    return acks_ >= persisted_ * per_update + of_update;
  }
  for (size_t i = at_; i-- > 0;) {
    if (steps_[i].action == AwaitedBy(wait.action) &&
        steps_[i].part == wait.part) {
      return completed_ >= posted_as_[i];
    }
  }
  return false;
}

bool UpdateRequester::HasCreditFor(StepAction action) const {
  return !TakesAReceive(action) || announced_ - receives_ < options_.credits;
}

absl::Status UpdateRequester::PostStep(const Step& step) {
  const Part& part = PartOf(step.part);
  const fabric::WorkId work(operations_ + 1);
  switch (step.action) {
    case StepAction::kRequesterWrite:
      return fabric_.PostWrite(connection_, work, part.from, part.to);
    case StepAction::kRequesterWriteImmediate:
      return fabric_.PostWriteImmediate(connection_, work, part.from, part.to,
                                        ImmediateOf(part));
    case StepAction::kRequesterWriteAtomic:
      return fabric_.PostWriteAtomic(connection_, work, part.from, part.to);
    case StepAction::kRequesterFlush:
      return PostFlush();
    default:
      return PostSend(step);
  }
}

// Flushes what was posted last before it.
absl::Status UpdateRequester::PostFlush() {
  const fabric::WorkId work(operations_ + 1);
  for (size_t i = at_; i-- > 0;) {
    const Step& step = steps_[i];
    if (step.action == StepAction::kRequesterSend) {
      return fabric_.PostFlush(connection_, work, options_.buffers,
                               options_.buffers_bytes);
    }
    if (step.part == UpdatePart::kNone || IsOfResponder(step.action)) continue;
    const Part& part = PartOf(step.part);
    return fabric_.PostFlush(connection_, work, part.to,
                             part.from.bytes.size());
  }
  ALPHEUS_CHECK(false, "a FLUSH follows what it flushes");
  return absl::OkStatus();
}

absl::Status UpdateRequester::PostSend(const Step& step) {
  UpdateMessage message = {.session = options_.session, .sequence = posted_};
  const bool has_bytes = step.action == StepAction::kRequesterSend;
  if (step.part != UpdatePart::kB) message.a = PlaceOf(update_.a);
  if (step.part != UpdatePart::kA) message.b = PlaceOf(update_.b);
  if (has_bytes) {
    message.bytes_of_a = update_.a.from.bytes;
    message.bytes_of_b = update_.b.from.bytes;
  }
  fabric::LocalBytes slot = messages_->At(step.part == UpdatePart::kB ? 1 : 0);
  slot.bytes = slot.bytes.first(EncodeUpdateMessage(message, slot.bytes));
  return fabric_.PostSend(connection_, fabric::WorkId(operations_ + 1), slot);
}

absl::Status UpdateRequester::OnCompletion(
    const fabric::Completion& completion) {
  if (completion.status != fabric::CompletionStatus::kOk) {
    return absl::UnavailableError(absl::StrCat(
        "update ", persisted_ + 1, ": the connection to the responder broke: ",
        fabric::OperationName(completion.operation), ": ",
        fabric::CompletionStatusName(completion.status),
        "; whether it is persistent is unknown. Connect again, and see"));
  }
  if (completion.operation == fabric::Operation::kReceive) {
    ALPHEUS_RETURN_IF_ERROR(OnReport(completion));
  } else {
    ++completed_;
  }
  return Advance();
}

absl::Status UpdateRequester::OnReport(const fabric::Completion& completion) {
  const uint64_t slot = completion.work.value;
  const auto report =
      DecodeUpdateReport(reports_->At(slot).bytes.first(completion.bytes));
  const bool can_be = report && report->session == options_.session &&
                      report->acks >= acks_ && report->receives >= receives_ &&
                      report->receives <= announced_;
  if (!can_be) {
    return absl::DataLossError(absl::StrCat(
        "update ", persisted_ + 1, ": the responder sent ", completion.bytes,
        " bytes that are no report of this session after ", acks_, " acks and ",
        receives_, " of ", announced_, " receives"));
  }
  acks_ = report->acks;
  receives_ = report->receives;
  return PostReceive(slot);
}

}  // namespace alpheus::replication
