// SPDX-License-Identifier: Apache-2.0
// What can be done to a tiny log, and which results the contract allows.
#include <array>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "tests/testing/tiny_log.h"

namespace alpheus::testing {
namespace {

constexpr size_t kTwoLinesBytes = kOneLineBytes + 8;
constexpr size_t kInPlaceBytes = 11;

}  // namespace

const char* TinyOpName(TinyOp op) {
  switch (op) {
    case TinyOp::kAppendOneLine:
      return "append1";
    case TinyOp::kAppendTwoLines:
      return "append2";
    case TinyOp::kFillInPlace:
      return "fill";
    case TinyOp::kForceLast:
      return "force";
    case TinyOp::kAbort:
      return "abort";
    case TinyOp::kOpen:
      return "open";
    case TinyOp::kCompleteOpen:
      return "complete";
    case TinyOp::kCleanOldest:
      return "clean-oldest";
    case TinyOp::kCleanMiddle:
      return "clean-middle";
    case TinyOp::kCleanThrough:
      return "clean-through";
    case TinyOp::kCleanAll:
      return "clean-all";
    case TinyOp::kReopen:
      return "reopen";
    case TinyOp::kIdle:
      return "idle";
  }
  return "unknown";
}

std::string TinyOpNames(std::span<const TinyOp> ops) {
  std::string names;
  for (const TinyOp op : ops) {
    absl::StrAppend(&names, names.empty() ? "" : " ", TinyOpName(op));
  }
  return names;
}

bool TinyLog::CanRun(TinyOp op) const {
  if (op == TinyOp::kCompleteOpen) return open_.has_value();
  if (op == TinyOp::kOpen) return !open_.has_value();
  return true;
}

std::string TinyLog::Run(TinyOp op) {
  ran_.push_back(op);
  last_status_ = absl::OkStatus();
  const Lsn head = log_->head_lsn();
  switch (op) {
    case TinyOp::kAppendOneLine:
      return Append(kOneLineBytes);
    case TinyOp::kAppendTwoLines:
      return Append(kTwoLinesBytes);
    case TinyOp::kFillInPlace:
      return FillInPlace();
    case TinyOp::kForceLast:
      return ForceLast();
    case TinyOp::kAbort:
      return Abort();
    case TinyOp::kOpen:
      return OpenReservation();
    case TinyOp::kCompleteOpen:
      return CompleteOpen();
    case TinyOp::kCleanOldest:
      return Clean(head, /*through=*/false);
    case TinyOp::kCleanMiddle:
      return Clean(head + 1, /*through=*/false);
    case TinyOp::kCleanThrough:
      return Clean(head + 1, /*through=*/true);
    case TinyOp::kCleanAll:
      return CleanAll();
    case TinyOp::kReopen:
      return Reopen();
    case TinyOp::kIdle:
      return Idle();
  }
  return "unknown operation";
}

std::string TinyLog::Append(size_t bytes) {
  const std::string payload = MakePayload(bytes);
  const Lsn next = log_->next_lsn();
  const bool was_empty = log_->head_lsn() == next;
  const LogOracle::Ticket ticket = oracle_.NoteAppending(payload);
  // Two parts, so that a line is assembled from both.
  const std::span<const std::byte> all = AsBytes(payload);
  const std::array<std::span<const std::byte>, 2> parts = {all.first(5),
                                                           all.subspan(5)};
  const absl::StatusOr<Lsn> lsn = log_->Append(parts, /*policy=*/1, Deadline());
  if (lsn.ok()) {
    oracle_.NoteAppended(ticket, *lsn);
    oracle_.NoteDurable(*lsn);
    if (log_->durable_lsn() < *lsn) return "append: OK, but not durable";
    return "";
  }
  if (log_->next_lsn() == next) {
    oracle_.NoteRefused(ticket);
  } else if (!absl::IsUnavailable(lsn.status())) {
    return absl::StrCat("append: refused, but LSN ", next.value,
                        " was given: ", lsn.status().ToString());
  }
  return JudgeRoom("append", lsn.status(), was_empty);
}

std::string TinyLog::FillInPlace() {
  const bool was_empty = log_->head_lsn() == log_->next_lsn();
  absl::StatusOr<ReservedRecord> record =
      log_->Reserve(kInPlaceBytes, Deadline());
  if (!record.ok()) return JudgeRoom("reserve", record.status(), was_empty);
  oracle_.NoteReserved(record->lsn);
  const std::string payload = MakePayload(kInPlaceBytes);
  std::memcpy(record->payload, payload.data(), payload.size());
  record->filled_in_place = true;
  model_->YieldPoint("test: filled");
  oracle_.NoteCompleting(record->lsn, payload);
  return Judge("complete", log_->Complete(*record), {});
}

std::string TinyLog::ForceLast() {
  const Lsn last = log_->next_lsn() - 1;
  if (last.value == 0) return "";
  const absl::Status status = log_->Force(last, 1, Deadline());
  if (!status.ok()) {
    if (!open_) return Judge("force", status, {});
    return Judge("force", status, {absl::StatusCode::kFailedPrecondition});
  }
  if (open_) return "force: OK behind an open reservation";
  oracle_.NoteDurable(last);
  return "";
}

std::string TinyLog::Abort() {
  const bool was_empty = log_->head_lsn() == log_->next_lsn();
  absl::StatusOr<ReservedRecord> record =
      log_->Reserve(kInPlaceBytes, Deadline());
  if (!record.ok()) return JudgeRoom("reserve", record.status(), was_empty);
  oracle_.NoteReserved(record->lsn);
  const std::string payload = MakePayload(4);
  std::memcpy(record->payload, payload.data(), payload.size());
  oracle_.NoteAborting(record->lsn);
  log_->Abort(*record);
  return "";
}

std::string TinyLog::OpenReservation() {
  const bool was_empty = log_->head_lsn() == log_->next_lsn();
  absl::StatusOr<ReservedRecord> record =
      log_->Reserve(kTwoLinesBytes, Deadline());
  if (!record.ok()) return JudgeRoom("reserve", record.status(), was_empty);
  oracle_.NoteReserved(record->lsn);
  open_ = *record;
  open_payload_ = MakePayload(kTwoLinesBytes);
  return Judge("copy", log_->Copy(*open_, 0, AsBytes(open_payload_).first(10)),
               {});
}

std::string TinyLog::CompleteOpen() {
  const absl::Status copied =
      log_->Copy(*open_, 10, AsBytes(open_payload_).subspan(10));
  if (!copied.ok()) return Judge("copy", copied, {});
  ReservedRecord record = *open_;
  open_.reset();
  if (record.lsn.value % 2 == 0) {
    // A last change through the pointer, after all was copied.
    open_payload_[3] ^= 1;
    record.payload[3] ^= std::byte{1};
    record.filled_in_place = true;
  }
  oracle_.NoteCompleting(record.lsn, open_payload_);
  return Judge("complete", log_->Complete(record), {});
}

std::string TinyLog::Clean(Lsn lsn, bool through) {
  // What is not durable must be refused without effect.
  const bool allowed = lsn <= log_->durable_lsn();
  if (allowed) {
    oracle_.NoteCleaning(through ? log_->head_lsn() : lsn, lsn);
  }
  const absl::Status status =
      through ? log_->CleanupThrough(lsn) : log_->Cleanup(lsn);
  if (!allowed) {
    if (status.ok()) return "cleanup: OK beyond what is durable";
    return Judge(
        "cleanup", status,
        {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kOutOfRange});
  }
  if (through) return Judge("cleanup", status, {});
  return Judge("cleanup", status, {absl::StatusCode::kNotFound});
}

std::string TinyLog::CleanAll() {
  const Lsn next = log_->next_lsn();
  if (open_) {
    const absl::Status status = log_->CleanupAll();
    if (status.ok()) return "cleanup all: OK with an open reservation";
    return Judge("cleanup all", status,
                 {absl::StatusCode::kFailedPrecondition});
  }
  oracle_.NoteCleaning(log_->head_lsn(), next - 1);
  const absl::Status status = log_->CleanupAll();
  if (!status.ok()) return Judge("cleanup all", status, {});
  oracle_.NoteDurable(next - 1);
  oracle_.NoteAllCleaned(next);
  return log_->head_lsn() == next ? "" : "cleanup all: OK, but not empty";
}

std::string TinyLog::Reopen() {
  const Lsn next = log_->next_lsn();
  const absl::Status closed = log_->Close();
  if (open_) {
    if (closed.ok()) return "close: OK with an open reservation";
    return Judge("close", closed, {absl::StatusCode::kFailedPrecondition});
  }
  if (!closed.ok()) return Judge("close", closed, {});
  oracle_.NoteDurable(next - 1);
  if (std::string wrong = CheckOnlyHintsAreOpen(); !wrong.empty()) return wrong;
  log_.reset();
  closed_ = true;
  return Judge("open", Open(), {});
}

std::string TinyLog::Idle() {
  using Next = IdleKeeper<ModelPersistence>::Next;
  for (int i = 0; i < 2; ++i) {
    if (log_->Poll() == Next::kSleep) break;
  }
  // What went wrong meanwhile is told by the next call.
  const Lsn durable = log_->durable_lsn();
  const absl::Status status = durable.value == 0
                                  ? absl::OkStatus()
                                  : log_->WaitDurable(durable, Deadline());
  if (status.ok() && !open_ && durable + 1 < log_->next_lsn()) {
    return "idle: a record stays exposed (IK1)";
  }
  return Judge("idle", status, {});
}

std::string TinyLog::Judge(const char* what, const absl::Status& status,
                           std::initializer_list<absl::StatusCode> allowed) {
  last_status_ = status;
  if (status.ok()) return "";
  for (const absl::StatusCode code : allowed) {
    if (status.code() == code) return "";
  }
  // Whatever the medium made fail may fail, as the medium did.
  if (!model_->Error().ok() && status == model_->Error()) return "";
  return absl::StrCat(what, ": ", status.ToString());
}

std::string TinyLog::JudgeRoom(const char* what, const absl::Status& status,
                               bool was_empty) {
  last_status_ = status;
  if (status.code() == absl::StatusCode::kResourceExhausted && was_empty) {
    return absl::StrCat(what, ": an empty ring is full: ", status.ToString());
  }
  if (status.code() == absl::StatusCode::kFailedPrecondition && !open_) {
    return absl::StrCat(what, ": ", status.ToString());
  }
  return Judge(what, status,
               {absl::StatusCode::kResourceExhausted,
                absl::StatusCode::kFailedPrecondition});
}

}  // namespace alpheus::testing
