// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/responder_program.h"

#include <utility>

#include "bench/remotelog/work_request.h"
#include "replication/persist/platform/method_table.h"

namespace alpheus::bench::remotelog {

using replication::StepAction;

namespace {

bool IsReceive(StepAction action) {
  return action == StepAction::kResponderReceive ||
         action == StepAction::kResponderReceiveAddress;
}

}  // namespace

ResponderProgram::ResponderProgram(const Costs& costs,
                                   const replication::Platform& platform,
                                   std::span<const replication::Step> steps,
                                   size_t connections, EventQueue* queue,
                                   PostAck post_ack)
    : costs_(costs),
      platform_(platform),
      queue_(queue),
      post_ack_(std::move(post_ack)),
      at_(connections) {
  const bool copies_later = replication::NeedsMessagesApplied(steps);
  for (const replication::Step& step : steps) {
    if (replication::IsOfResponder(step.action)) steps_.push_back(step);
    if (copies_later && step.action == StepAction::kRequesterSend) {
      copied_later_ = step.part;
    }
  }
}

void ResponderProgram::BytesAreVisible(const Operation& operation) {
  if (!steps_.empty() || !operation.is_last_of_update) return;
  ++unapplied_;
  Advance();
}

void ResponderProgram::MessageIsVisible(const Operation& operation) {
  messages_.push_back(operation);
  Advance();
}

void ResponderProgram::Advance() {
  if (is_busy_) return;
  if (!messages_.empty()) {
    const Operation message = messages_.front();
    messages_.pop_front();
    Answer(message);
  } else if (unapplied_ > 0) {
    Apply();
  }
}

void ResponderProgram::Answer(const Operation& message) {
  if (steps_.empty()) {
    // Nobody waits: the buffer is taken back, or applied and then taken back.
    BeBusy(0, costs_.poll + costs_.post_receive);
    return;
  }
  // From its receive to the next one, which waits for another message.
  double cost = 0;
  size_t& at = at_[message.connection];
  do {
    cost += CostOf(steps_[at], message);
    if (steps_[at].action == StepAction::kResponderSendAck) {
      queue_->After(cost, [this, connection = message.connection] {
        post_ack_(connection);
      });
    }
    ++at;
  } while (at < steps_.size() && !IsReceive(steps_[at].action));
  if (at == steps_.size()) {
    at = 0;
    ++unapplied_;
  }
  BeBusy(cost, costs_.post_receive);
}

void ResponderProgram::Apply() {
  --unapplied_;
  double cost = costs_.apply;
  if (copied_later_ != replication::UpdatePart::kNone) {
    cost +=
        LoadOfMessage() +
        CopyCost(copied_later_,
                 platform_.domain == replication::PersistenceDomain::kMemory);
  }
  ++untrimmed_;
  if (static_cast<double>(untrimmed_) >= costs_.trim_records) {
    untrimmed_ = 0;
    cost += costs_.trim;
  }
  BeBusy(0, cost);
}

void ResponderProgram::BeBusy(double until_answered, double behind) {
  is_busy_ = true;
  message_time_ += until_answered;
  background_time_ += behind;
  queue_->After(until_answered + behind, [this] {
    is_busy_ = false;
    Advance();
  });
}

double ResponderProgram::CostOf(const replication::Step& step,
                                const Operation& message) const {
  switch (step.action) {
    case StepAction::kResponderReceiveAddress: {
      // An immediate is in the completion itself.
      const bool has_immediate =
          message.step.action == StepAction::kRequesterWriteImmediate;
      return costs_.poll + costs_.handle +
             (has_immediate ? 0 : LoadOfMessage());
    }
    case StepAction::kResponderReceive:
      return costs_.poll + costs_.handle + LoadOfMessage();
    case StepAction::kResponderCopy:
      return CopyCost(step.part, false);
    case StepAction::kResponderCopyAndFlush:
      return CopyCost(step.part, true);
    case StepAction::kResponderFlush:
      return costs_.flush_line + costs_.fence;
    case StepAction::kResponderSendAck:
      return PostCost(step, costs_);
    default:
      return 0;
  }
}

// Each part has its line and, if it is flushed, its fence. The place of a
// record was last touched a lap ago. The tail pointer's line is the processor's
// own unless it was flushed, which takes it out of the cache (clflush: the
// taxonomy's Xeon has nothing better).
double ResponderProgram::CopyCost(replication::UpdatePart part,
                                  bool flushes) const {
  const double flush = flushes ? costs_.flush_line + costs_.fence : 0;
  double cost = 0;
  if (part != replication::UpdatePart::kB) cost += costs_.load_memory + flush;
  if (part != replication::UpdatePart::kA) {
    cost += flushes ? costs_.load_memory + flush : 0;
  }
  return cost;
}

double ResponderProgram::LoadOfMessage() const {
  return platform_.ddio ? costs_.load_cache : costs_.load_memory;
}

}  // namespace alpheus::bench::remotelog
