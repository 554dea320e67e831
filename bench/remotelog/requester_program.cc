// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/requester_program.h"

#include <utility>

#include "bench/remotelog/work_request.h"

namespace alpheus::bench::remotelog {
namespace {

bool CarriesUpdate(const replication::Step& step) {
  return !IsWait(step.action) && PayloadBytes(step) > 0 &&
         step.action != replication::StepAction::kRequesterSendAddress;
}

}  // namespace

RequesterProgram::RequesterProgram(const Costs& costs,
                                   std::span<const replication::Step> steps,
                                   size_t connection, uint64_t appends,
                                   EventQueue* queue, Post post)
    : costs_(costs), queue_(queue), post_(std::move(post)), appends_(appends) {
  for (const replication::Step& step : steps) {
    if (!replication::IsOfResponder(step.action)) steps_.push_back(step);
  }
  const std::vector<bool> awaited = AwaitedSteps(steps_);
  size_t last = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    operations_.push_back({.connection = connection,
                           .step = steps_[i],
                           .is_awaited = awaited[i],
                           .is_last_of_update = false});
    if (CarriesUpdate(steps_[i])) last = i;
  }
  if (!operations_.empty()) operations_[last].is_last_of_update = true;
}

void RequesterProgram::Start() {
  began_ = queue_->now();
  Advance();
}

void RequesterProgram::Advance() {
  if (at_ == steps_.size()) {
    EndAppend();
  } else if (!IsWait(steps_[at_].action)) {
    PostStep();
  } else if (completions_ > 0) {
    Poll();
  } else {
    is_waiting_ = true;
  }
}

void RequesterProgram::PostStep() {
  const size_t step = at_++;
  queue_->After(PostCost(steps_[step], costs_), [this, step] {
    post_(operations_[step]);
    Advance();
  });
}

void RequesterProgram::CompletionIsVisible() {
  ++completions_;
  if (!is_waiting_) return;
  is_waiting_ = false;
  Poll();
}

void RequesterProgram::Poll() {
  --completions_;
  ++at_;
  queue_->After(costs_.poll, [this] { Advance(); });
}

void RequesterProgram::EndAppend() {
  latencies_.push_back(queue_->now() - began_);
  at_ = 0;
  // A row without steps would end here again at once, for ever.
  if (!is_done() && !steps_.empty()) Start();
}

}  // namespace alpheus::bench::remotelog
