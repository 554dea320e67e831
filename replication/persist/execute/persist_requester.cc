// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/execute/persist_requester.h"

#include <algorithm>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::replication {
namespace {

// Bytes of a piece. Completions of pieces show that a large update arrives: a
// network of 10 Mbit/s takes one within a second.
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// An update takes at most 1 in this many of the fabric's posts.
constexpr uint64_t kPostsFraction = 4;

PersistRequester::Range Part(const PersistRequester::Range& range, uint64_t at,
                             uint64_t bytes) {
  return {{range.from.key, range.from.bytes.subspan(at, bytes)},
          {range.to.key, range.to.offset + at}};
}

// Returns the last piece of a range.
PersistRequester::Range LastOf(const PersistRequester::Range& range,
                               uint64_t piece_bytes) {
  const uint64_t bytes = range.from.bytes.size();
  const uint64_t at = (bytes - 1) / piece_bytes * piece_bytes;
  return Part(range, at, bytes - at);
}

uint64_t BytesOf(std::span<const PersistRequester::Range> ranges) {
  uint64_t bytes = 0;
  for (const auto& range : ranges) bytes += range.from.bytes.size();
  return bytes;
}

bool IsBuiltIn(const Step& step) {
  return IsOfResponder(step.action) ||
         step.action == StepAction::kRequesterWriteImmediate ||
         step.action == StepAction::kRequesterFlush ||
         step.action == StepAction::kRequesterCompleteFlush ||
         step.action == StepAction::kRequesterCompleteWriteImmediate ||
         step.action == StepAction::kRequesterReceiveAck;
}

// Returns true if the plan ends with `action`. An update's first operations say
// nothing of the last.
bool Ends(const Plan& plan, StepAction action) {
  return plan.steps.back().action == action;
}

}  // namespace

PersistRequester::PersistRequester(const Plan& plan, fabric::Fabric& fabric,
                                   fabric::ConnectionId connection)
    : plan_(plan),
      fabric_(fabric),
      connection_(connection),
      limits_(fabric.limits()),
      one_piece_bytes_(std::min(limits_.message_bytes_max, kPieceBytes)),
      flushes_(std::ranges::count(plan.steps, StepAction::kRequesterFlush,
                                  &Step::action) != 0),
      ends_by_completion_(
          Ends(plan, StepAction::kRequesterCompleteFlush) ||
          Ends(plan, StepAction::kRequesterCompleteWriteImmediate)) {
  ALPHEUS_CHECK(
      ends_by_completion_ || Ends(plan, StepAction::kRequesterReceiveAck),
      "an ack or a completion is the last step (PQ1)");
  ALPHEUS_CHECK(std::ranges::all_of(plan.steps, IsBuiltIn),
                "a step that is not run would be silently left out");
}

absl::Status PersistRequester::Post(std::span<const Range> ranges,
                                    uint32_t immediate) {
  for (const Step& step : plan_.steps) {
    switch (step.action) {
      case StepAction::kRequesterWriteImmediate:
        ALPHEUS_RETURN_IF_ERROR(WriteImmediate(ranges, immediate));
        break;
      case StepAction::kRequesterFlush:
        ALPHEUS_RETURN_IF_ERROR(Flush(ranges.back()));
        break;
      default:  // Take's and OnAck's, and the responder's
        break;
    }
  }
  if (ends_by_completion_) ends_.push_back(operations_);
  ++posted_;
  return absl::OkStatus();
}

void PersistRequester::OnCompletion(const fabric::Completion& completion) {
  ALPHEUS_CHECK(completion.status == fabric::CompletionStatus::kOk,
                "after a failure the session is broken");
  --posts_in_flight_;
  if (ends_by_completion_) CountCompleted();
}

// Operations complete in the order in which they were posted (FB3).
void PersistRequester::CountCompleted() {
  while (!ends_.empty() && ends_.front() + posts_in_flight_ <= operations_) {
    ends_.pop_front();
    ++completed_;
  }
  persisted_ = std::max(persisted_, completed_);
}

void PersistRequester::OnAck() {
  ALPHEUS_CHECK(acked_ < posted_, "PQ1");
  ++acked_;
  persisted_ = std::max(persisted_, acked_);
}

uint64_t PersistRequester::PieceBytesMax(uint64_t bytes) const {
  const uint64_t pieces_max =
      std::max<uint64_t>(limits_.sends_max / kPostsFraction, 1);
  const uint64_t lines = (bytes / pieces_max + kLineBytes) / kLineBytes;
  return std::min(limits_.message_bytes_max,
                  std::max(kPieceBytes, lines * kLineBytes));
}

// Its completion says that everything posted before it is persistent.
absl::Status PersistRequester::Flush(const Range& last) {
  ++operations_;
  ++posts_in_flight_;
  return fabric_.PostFlush(connection_, kWork, last.to, last.from.bytes.size());
}

// The last piece of all carries the immediate; mostly it is the only one.
absl::Status PersistRequester::WriteImmediate(std::span<const Range> ranges,
                                              uint32_t immediate) {
  const Range& first = ranges.front();
  if (ranges.size() == 1 && first.from.bytes.size() <= one_piece_bytes_) {
    ++operations_;
    ++posts_in_flight_;
    return fabric_.PostWriteImmediate(connection_, kWork, first.from, first.to,
                                      immediate);
  }
  const uint64_t piece_bytes = PieceBytesMax(BytesOf(ranges));
  const Range last = LastOf(ranges.back(), piece_bytes);
  ALPHEUS_RETURN_IF_ERROR(WriteAllButTheLast(ranges, piece_bytes));
  ++operations_;
  ++posts_in_flight_;
  return fabric_.PostWriteImmediate(connection_, kWork, last.from, last.to,
                                    immediate);
}

absl::Status PersistRequester::WriteAllButTheLast(std::span<const Range> ranges,
                                                  uint64_t piece_bytes) {
  for (const Range& range : ranges.first(ranges.size() - 1)) {
    ALPHEUS_RETURN_IF_ERROR(Write(range, piece_bytes));
  }
  const Range& range = ranges.back();
  const uint64_t last_bytes = LastOf(range, piece_bytes).from.bytes.size();
  return Write(Part(range, 0, range.from.bytes.size() - last_bytes),
               piece_bytes);
}

absl::Status PersistRequester::Write(const Range& range, uint64_t piece_bytes) {
  const uint64_t bytes = range.from.bytes.size();
  for (uint64_t at = 0; at < bytes; at += piece_bytes) {
    const Range piece = Part(range, at, std::min(bytes - at, piece_bytes));
    ++operations_;
    ++posts_in_flight_;
    ALPHEUS_RETURN_IF_ERROR(
        fabric_.PostWrite(connection_, kWork, piece.from, piece.to));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::replication
