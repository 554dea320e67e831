// SPDX-License-Identifier: Apache-2.0
#include "recovery/deletion/deletion_inquiry.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace alpheus::recovery {
namespace {

// Names no process: an inquiry asks for no promise.
constexpr uint64_t kInquirerIncarnation = 1;

}  // namespace

DeletionInquiry::DeletionInquiry(fabric::Fabric& fabric, const Clock& clock,
                                 Node node, DeletionInquiryOptions options)
    : fabric_(fabric),
      clock_(clock),
      node_(std::move(node)),
      options_(std::move(options)) {}

bool DeletionInquiry::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  return round_.has_value() &&
         std::ranges::any_of(round_->calls, [&](const auto& call) {
           return call->OnConnectionEvent(event);
         });
}

bool DeletionInquiry::OnCompletion(const fabric::Completion& completion) {
  return round_.has_value() &&
         std::ranges::any_of(round_->calls, [&](const auto& call) {
           return call->OnCompletion(completion);
         });
}

void DeletionInquiry::Watch(Uuid log_id) {
  if (options_.first_ns == 0) return;
  logs_[log_id] = {clock_.NowNanos() + options_.first_ns, options_.first_ns};
}

void DeletionInquiry::Forget(Uuid log_id) {
  logs_.erase(log_id);
  if (round_.has_value() && round_->log_id == log_id) round_.reset();
}

void DeletionInquiry::Reconfigure(const Credentials& credentials,
                                  DeletionInquiryOptions options) {
  round_.reset();
  node_.credentials = credentials;
  options_ = std::move(options);
}

void DeletionInquiry::PutOff(LogState& log, int64_t now) const {
  log.wait_ns = std::min(2 * log.wait_ns, options_.again_ns_max);
  log.due_at = now + log.wait_ns;
}

void DeletionInquiry::Begin(Uuid log_id, int64_t now) {
  round_ = Round{
      .log_id = log_id, .until = now + options_.reply_timeout_ns, .calls = {}};
  for (const PeerAddress& peer : options_.peers) {
    if (peer.node == node_.node) continue;
    ControlCall::Options at;
    at.address = peer.address;
    at.node = peer.node;
    at.hello = {node_.cluster_id, log_id, {node_.node, kInquirerIncarnation}};
    at.deadline = Deadline::AtNanos(round_->until);
    at.credentials = node_.credentials;
    round_->calls.push_back(
        std::make_unique<ControlCall>(fabric_, std::move(at), AskDeletion{}));
  }
}

bool DeletionInquiry::IsOver(int64_t now) const {
  return now >= round_->until ||
         std::ranges::all_of(round_->calls,
                             [](const auto& call) { return call->done(); });
}

std::vector<DeletionWitness> DeletionInquiry::Witnesses() const {
  std::vector<DeletionWitness> witnesses;
  for (const auto& call : round_->calls) {
    if (!call->status().ok() || !call->reply().has_value()) continue;
    const auto* const state = std::get_if<DeletionState>(&*call->reply());
    if (state == nullptr) continue;
    const ServerHello& hello = *call->server_hello();
    witnesses.push_back({{hello.node, hello.incarnation}, *state});
  }
  return witnesses;
}

std::optional<Uuid> DeletionInquiry::Poll(FindOwn find_own) {
  if (logs_.empty()) return std::nullopt;
  const int64_t now = clock_.NowNanos();
  if (round_.has_value()) {
    if (!IsOver(now)) return std::nullopt;
    const Uuid log_id = round_->log_id;
    std::vector<DeletionWitness> witnesses = Witnesses();
    round_.reset();
    const std::optional<OwnReplica> own = find_own(log_id);
    if (!own.has_value()) return std::nullopt;
    witnesses.push_back(own->witness);
    const bool is_decided = IsDecided(witnesses);
    if (is_decided) return log_id;
    return std::nullopt;
  }
  for (auto& [log_id, log] : logs_) {
    if (now < log.due_at) continue;
    const bool is_seldom = log.wait_ns >= options_.again_ns_max;
    PutOff(log, now);
    const std::optional<OwnReplica> own = find_own(log_id);
    if (!own.has_value()) continue;
    if (own->has_owner && !is_seldom) continue;  // DLI2
    Begin(log_id, now);
    break;
  }
  return std::nullopt;
}

Deadline DeletionInquiry::NextPoll() const {
  if (round_.has_value()) {
    return Deadline::AtNanos(IsOver(clock_.NowNanos()) ? clock_.NowNanos()
                                                       : round_->until);
  }
  int64_t next = Deadline().at_nanos();
  for (const auto& [log_id, log] : logs_) next = std::min(next, log.due_at);
  return next == Deadline().at_nanos() ? Deadline() : Deadline::AtNanos(next);
}

}  // namespace alpheus::recovery
