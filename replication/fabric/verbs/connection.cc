// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/verbs/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "replication/fabric/verbs/retries.h"

namespace alpheus::fabric::verbs {
namespace {

using Kind = ConnectionEvent::Kind;

constexpr int64_t kNanosPerMilli = 1'000'000;

// Reasons of broken connections.
constexpr const char* kNotPosted = "its adapter takes no work request";
constexpr const char* kEndedByPeer = "the peer ended it";
constexpr const char* kNoGreeting = "what the peer said first is no greeting";

const char* WhatIsLate(Connection::State state) {
  switch (state) {
    case Connection::State::kResolving:
      return "the way to the peer was not found in time";
    case Connection::State::kConnecting:
      return "the peer did not take the connection in time";
    default:
      return "the peer did not greet in time";
  }
}

absl::Status ManagerError(const char* what) {
  return absl::UnavailableError(absl::StrCat("the connection manager: ", what,
                                             ": ", std::strerror(errno)));
}

rdma_conn_param Parameters(const Shared& shared) {
  rdma_conn_param parameters = {};
  parameters.private_data = &kCalling;
  parameters.private_data_len = sizeof(kCalling);
  parameters.responder_resources = shared.reads_max;
  parameters.initiator_depth = shared.reads_max;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kNotReadyRetries;
  return parameters;
}

}  // namespace

Connection::Connection(ConnectionId id, CommunicationId manager,
                       std::string peer, std::string private_data,
                       Deadline deadline, Shared* shared)
    : id_(id),
      peer_(std::move(peer)),
      private_data_(std::move(private_data)),
      shared_(*shared),
      state_(State::kResolving),
      deadline_(deadline.at_nanos()),
      message_bytes_max_(shared->options.limits.message_bytes_max),
      manager_(std::move(manager)) {}

Connection::Connection(ConnectionId id, CommunicationId manager,
                       std::string peer, Deadline deadline, Shared* shared)
    : Connection(id, std::move(manager), std::move(peer), {}, deadline,
                 shared) {
  state_ = State::kAnonymous;
  is_request_ = true;
}

Connection::~Connection() {
  queue_pair_.reset();
  // Fails only if it was never registered.
  (void)shared_.memory->Deregister(greetings_key_);
}

size_t Connection::receives() const {
  if (!queue_pair_ || state_ == State::kRequested) {
    return deferred_receives_.size();
  }
  return queue_pair_->receives();
}

// --- How it begins ----------------------------------------------------------

void Connection::Resolve(sockaddr* from, sockaddr* to) {
  const int64_t timeout_ms = shared_.options.limits.retry_ns / kNanosPerMilli;
  if (!manager_ || rdma_resolve_addr(manager_.get(), from, to,
                                     static_cast<int>(timeout_ms)) != 0) {
    NoteWhy("no way to the peer is looked for");
    deadline_ = 0;
  }
}

void Connection::AnswerCall() {
  if (OnCall().ok()) return;
  ++shared_.counters.rejected;
  (void)rdma_reject(manager_.get(), nullptr, 0);
  Break("it could not be accepted");
}

absl::Status Connection::OnCall() {
  ALPHEUS_RETURN_IF_ERROR(MakeQueuePair());
  rdma_conn_param parameters = Parameters(shared_);
  if (rdma_accept(manager_.get(), &parameters) != 0) {
    return ManagerError("accepting");
  }
  is_connected_ = true;
  return absl::OkStatus();
}

absl::Status Connection::MakeQueuePair() {
  const size_t bytes =
      kGreetingHeaderBytes + shared_.options.limits.private_bytes_max;
  greetings_.resize(2 * bytes);
  ALPHEUS_ASSIGN_OR_RETURN(
      greetings_key_,
      shared_.memory->Register(greetings_, RemoteAccess::kNone));
  ALPHEUS_ASSIGN_OR_RETURN(
      queue_pair_, QueuePair::Make(manager_.get(), id_, shared_.making));
  ALPHEUS_ASSIGN_OR_RETURN(
      const ibv_sge heard,
      shared_.memory->Name(
          {greetings_key_, std::span(greetings_).last(bytes)}));
  return queue_pair_->PostReceive(WorkId(), heard, /*is_greeting=*/true);
}

absl::Status Connection::CallPeer() {
  if (manager_->verbs != shared_.context) {
    return absl::UnavailableError("the way to the peer is another adapter's");
  }
  ALPHEUS_RETURN_IF_ERROR(MakeQueuePair());
  if (!PostDeferredReceives()) return ManagerError("receives");
  rdma_conn_param parameters = Parameters(shared_);
  if (rdma_connect(manager_.get(), &parameters) != 0) {
    return ManagerError("connecting");
  }
  state_ = State::kConnecting;
  return absl::OkStatus();
}

void Connection::OnEvent(rdma_cm_event_type event) {
  const int64_t timeout_ms = shared_.options.limits.retry_ns / kNanosPerMilli;
  switch (event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: {
      // The timeout becomes a part of the route, which the peer hears of. Fails
      // if the adapter has no such option: then its own time counts.
      uint8_t timeout = AckTimeoutCode(shared_.options.limits.retry_ns);
      (void)rdma_set_option(manager_.get(), RDMA_OPTION_ID,
                            RDMA_OPTION_ID_ACK_TIMEOUT, &timeout,
                            sizeof(timeout));
      if (rdma_resolve_route(manager_.get(), static_cast<int>(timeout_ms)) !=
          0) {
        Break("no route is looked for");
      }
      return;
    }
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (!CallPeer().ok()) Break("the peer could not be called");
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      Established();
      return;
    case RDMA_CM_EVENT_ADDR_CHANGE:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
      return;
    default:
      NoteWhy(IsEndByPeer(event) ? kEndedByPeer : rdma_event_str(event));
      DrainCompletions();  // VC3
      Break(why_);
      return;
  }
}

// The kernel calls it a rejection if the peer ended before the last message of
// the handshake reached it.
bool Connection::IsEndByPeer(rdma_cm_event_type event) const {
  return event == RDMA_CM_EVENT_DISCONNECTED ||
         (event == RDMA_CM_EVENT_REJECTED && is_connected_);
}

void Connection::OnDeviceFailures(const DeviceFailures& failures) {
  const bool is_of_all =
      failures.all != nullptr && manager_ != nullptr &&
      (failures.port == 0 || failures.port == manager_->port_num);
  const bool is_own = queue_pair_ != nullptr &&
                      failures.queue_pairs.contains(queue_pair_->number());
  if (!is_of_all && !is_own) return;
  NoteWhy(is_of_all ? failures.all : "its queue pair failed");
  DrainCompletions();  // VC3
  Break(why_);
}

void Connection::Established() {
  if (!queue_pair_) return;
  is_connected_ = true;
  const uint8_t timer = NotReadyTimerCode(shared_.options.receiver_wait_ns);
  if (!queue_pair_->SetNotReadyTimer(timer).ok()) {
    return Break("its adapter refuses the timer of a receiver that is late");
  }
  if (state_ != State::kConnecting) return;
  state_ = State::kGreeting;
  Greet(GreetingKind::kHello, private_data_);
}

void Connection::Greet(GreetingKind kind, std::string_view private_data) {
  const size_t bytes =
      EncodeGreeting({kind, shared_.options.limits.message_bytes_max,
                      std::string(private_data)},
                     greetings_);
  const absl::StatusOr<ibv_sge> own = shared_.memory->Name(
      {greetings_key_, std::span(greetings_).first(bytes)});
  ALPHEUS_CHECK(own.ok(), "the buffer lives as long as its registration");
  queue_pair_->PostGreeting(*own);
  if (!queue_pair_->RingDoorbell().ok()) Break(kNotPosted);
}

void Connection::OnGreeting(const Completion& done) {
  if (done.status != CompletionStatus::kOk) return;  // Poll reports it, too
  if (done.operation == Operation::kSend) {
    if (state_ != State::kLingering) return;
    DropQueuePair();
    state_ = State::kDead;
    return;
  }
  std::optional<Greeting> greeting = DecodeGreeting(
      std::span(greetings_).subspan(greetings_.size() / 2, done.bytes));
  if (!greeting || done.operation != Operation::kReceive) {
    ++shared_.counters.rejected;
    return Break(kNoGreeting);
  }
  Answer(*std::move(greeting));
}

void Connection::Answer(Greeting&& greeting) {
  message_bytes_max_ = std::min(message_bytes_max_, greeting.message_bytes_max);
  const bool is_answer = state_ == State::kGreeting;
  if (state_ == State::kAnonymous && greeting.kind == GreetingKind::kHello) {
    state_ = State::kRequested;
    deadline_ = Deadline().at_nanos();
    AddEvent(Kind::kRequested, std::move(greeting.private_data));
  } else if (is_answer && greeting.kind == GreetingKind::kAccept) {
    state_ = State::kEstablished;
    deadline_ = Deadline().at_nanos();
    AddEvent(Kind::kEstablished, std::move(greeting.private_data));
  } else if (is_answer && greeting.kind == GreetingKind::kReject) {
    why_ = "the peer rejected it";
    End(Kind::kRejected, std::move(greeting.private_data));
  } else {
    ++shared_.counters.rejected;
    Break(kNoGreeting);
  }
}

void Connection::Accept(std::string_view private_data) {
  is_request_ = false;
  if (!PostDeferredReceives()) return Break(kNotPosted);
  state_ = State::kEstablished;
  AddEvent(Kind::kEstablished);
  Greet(GreetingKind::kAccept, private_data);
}

// --- While it stands --------------------------------------------------------

void Connection::Post(const WorkRequest& request, const ibv_sge& own) {
  queue_pair_->Post(request, own);
  if (queue_pair_->is_chain_full()) RingDoorbell();
}

void Connection::PostReceive(WorkId work, const ibv_sge& into) {
  const bool is_posted = queue_pair_ && state_ != State::kRequested;  // VC2
  if (!is_posted) {
    deferred_receives_.push_back({work, into});
  } else if (!queue_pair_->PostReceive(work, into).ok()) {
    deferred_receives_.push_back({work, into});  // completes with the others
    Break(kNotPosted);
  }
}

bool Connection::PostDeferredReceives() {
  for (const DeferredReceive& receive : deferred_receives_) {
    if (!queue_pair_->PostReceive(receive.work, receive.into).ok()) {
      return false;
    }
  }
  deferred_receives_.clear();
  return true;
}

bool Connection::RingDoorbell() {
  if (!queue_pair_ || !queue_pair_->has_chain()) return false;
  if (!queue_pair_->RingDoorbell().ok()) Break(kNotPosted);
  return true;
}

bool Connection::DrainCompletions() {
  if (!queue_pair_) return false;
  const size_t before = shared_.completions.size();
  const bool is_whole = queue_pair_->DrainCompletions(Done());
  const bool is_some =
      shared_.completions.size() != before || !greeted_.empty();
  if (!greeted_.empty()) [[unlikely]]
    DrainGreetings();
  if (!is_whole && queue_pair_) [[unlikely]]
    Break("a work request failed; see the completions");
  return is_some || !is_whole;
}

// Handles greetings: two in the life of a connection.
void Connection::DrainGreetings() {
  for (const Completion& done : std::exchange(greeted_, {})) OnGreeting(done);
}

int64_t Connection::next_timer() const {
  return state_ == State::kBroken || state_ == State::kDead
             ? Deadline().at_nanos()
             : deadline_;
}

void Connection::OnTimers(int64_t now) {
  if (now >= next_timer()) Break(WhatIsLate(state_));
}

// --- How it ends ------------------------------------------------------------

void Connection::Reject(std::string_view private_data, Deadline deadline) {
  state_ = State::kLingering;
  deadline_ = deadline.at_nanos();
  for (const DeferredReceive& receive : std::exchange(deferred_receives_, {})) {
    shared_.completions.push_back({id_, receive.work, Operation::kReceive,
                                   CompletionStatus::kFlushed, 0, 0});
  }
  Greet(GreetingKind::kReject, private_data);
}

void Connection::Close() {
  DrainCompletions();  // VC3: work that took effect is not called flushed
  DropQueuePair();
  state_ = State::kDead;
}

void Connection::Break(const char* why) {
  NoteWhy(why);
  End(IsOwnAndNotAnswered() ? Kind::kUnreachable : Kind::kDisconnected);
}

void Connection::End(Kind kind, std::string private_data) {
  if (state_ == State::kBroken || state_ == State::kDead) return;
  const bool is_known =
      state_ != State::kAnonymous && state_ != State::kLingering;
  state_ = is_known ? State::kBroken : State::kDead;
  if (is_known) AddEvent(kind, std::move(private_data));
  DropQueuePair();
}

void Connection::DropQueuePair() {
  if (queue_pair_) {
    // Tells the peer. If that fails, the peer finds out by its own posts.
    if (is_connected_) (void)rdma_disconnect(manager_.get());
    queue_pair_->Destroy();
    (void)queue_pair_->DrainCompletions(Done());
    queue_pair_->Flush(Done());
    greeted_.clear();
    queue_pair_.reset();
  }
  for (const DeferredReceive& receive : std::exchange(deferred_receives_, {})) {
    shared_.completions.push_back({id_, receive.work, Operation::kReceive,
                                   CompletionStatus::kFlushed, 0, 0});
  }
  manager_.reset();
}

void Connection::AddEvent(Kind kind, std::string private_data) {
  shared_.events.push_back({kind, id_, std::move(private_data), peer_});
}

}  // namespace alpheus::fabric::verbs
