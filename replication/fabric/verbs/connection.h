// SPDX-License-Identifier: Apache-2.0
// connection: one reliable connection from the connection manager's first event
// to its last: its peer, its state, and its end.
//
//   requester   resolving -> connecting -> greeting -> established -> broken
//   responder   anonymous -> requested  -> established -> broken
//
// Invariants:
//   VC1. A broken connection has no queue pair: nothing moves, and all posted
//        work has completed (FB3, FB5).
//   VC2. Receives of a responder's user are handed to the adapter when it
//        accepts, not before: a peer that was not accepted fills none.
//   VC3. Completions are processed before the peer's disconnect, so that its
//        last messages are delivered.
// Thread safety: none; the fabric's lock guards it.
// References: rdma_cm(7); greeting.h.
#ifndef ALPHEUS_REPLICATION_FABRIC_VERBS_CONNECTION_H_
#define ALPHEUS_REPLICATION_FABRIC_VERBS_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "log/base/deadline.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/verbs/device_news.h"
#include "replication/fabric/verbs/greeting.h"
#include "replication/fabric/verbs/handles.h"
#include "replication/fabric/verbs/options.h"
#include "replication/fabric/verbs/queue_pair.h"
#include "replication/fabric/verbs/registered_memory.h"

namespace alpheus::fabric::verbs {

// State that the connections of one adapter share.
struct Shared {
  VerbsFabricOptions options;
  ibv_context* context = nullptr;
  QueuePair::Making making;
  uint8_t reads_max = 0;  // in flight, own ones and the peer's
  RegisteredMemory* memory = nullptr;
  VerbsFabricCounters counters;
  std::vector<Completion> completions;
  std::vector<ConnectionEvent> events;
};

class Connection {
 public:
  enum class State {
    kResolving,
    kConnecting,
    kGreeting,   // hello sent, no answer yet
    kAnonymous,  // no hello yet; unknown to the application
    kRequested,
    kEstablished,
    kBroken,     // the application must still close it
    kLingering,  // rejected by the application; only tells the peer
    kDead,       // to be forgotten
  };

  // Makes a connection of this side: Resolve follows.
  Connection(ConnectionId id, CommunicationId manager, std::string peer,
             std::string private_data, Deadline deadline, Shared* shared);
  // Makes one that a peer requests: AnswerCall follows.
  Connection(ConnectionId id, CommunicationId manager, std::string peer,
             Deadline deadline, Shared* shared);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  State state() const { return state_; }
  const std::string& peer() const { return peer_; }
  rdma_cm_id* manager() const { return manager_.get(); }
  bool is_established() const { return state_ == State::kEstablished; }
  // Returns true if the connection manager has only the peer's disconnect left
  // to report.
  bool is_past_setup() const {
    return state_ == State::kEstablished || state_ == State::kBroken;
  }
  // Returns true if a peer requested it and it was never accepted.
  bool is_request() const { return is_request_; }
  uint64_t message_bytes_max() const { return message_bytes_max_; }
  // Returns why it broke, in static text; nullptr while it stands.
  const char* why() const { return why_; }
  size_t sends() const { return queue_pair_ ? queue_pair_->sends() : 0; }
  size_t receives() const;
  QueuePair* queue_pair() { return queue_pair_.get(); }

  // Resolves the route to the peer; the connection manager's events continue
  // from there. A failure at once is reported like a later one.
  void Resolve(sockaddr* from, sockaddr* to);
  void AnswerCall();
  void OnEvent(rdma_cm_event_type event);
  // Breaks it if a failure concerns it.
  void OnDeviceFailures(const DeviceFailures& failures);

  // Requires: established.
  void Post(const WorkRequest& request, const ibv_sge& own);
  // Requires: not broken.
  void PostReceive(WorkId work, const ibv_sge& into);
  // Hands posted work to the adapter; returns false if there was none.
  bool RingDoorbell();

  void Accept(std::string_view private_data);
  void Reject(std::string_view private_data, Deadline deadline);
  // Closes. A fence. Posted work completes with kFlushed; no event follows.
  void Close();

  // Takes completions. Returns true if there were any.
  bool DrainCompletions();
  // Returns when OnTimers has something to do.
  int64_t next_timer() const;
  void OnTimers(int64_t now);

 private:
  struct DeferredReceive {
    WorkId work;
    ibv_sge into;
  };

  absl::Status MakeQueuePair();
  absl::Status CallPeer();
  absl::Status OnCall();
  void Established();
  void Greet(GreetingKind kind, std::string_view private_data);
  void DrainGreetings();
  void OnGreeting(const Completion& done);
  QueuePair::Done Done() { return {&shared_.completions, &greeted_}; }
  void Answer(Greeting&& greeting);
  bool PostDeferredReceives();
  bool IsEndByPeer(rdma_cm_event_type event) const;
  // Keeps the first of several reasons.
  void NoteWhy(const char* why) {
    if (why_ == nullptr) why_ = why;
  }
  void Break(const char* why);
  void End(ConnectionEvent::Kind kind, std::string private_data = {});
  void DropQueuePair();
  void AddEvent(ConnectionEvent::Kind kind, std::string private_data = {});
  bool IsOwnAndNotAnswered() const {
    return state_ == State::kResolving || state_ == State::kConnecting ||
           state_ == State::kGreeting;
  }

  const ConnectionId id_;
  const std::string peer_;
  const std::string private_data_;  // of this side's Connect
  Shared& shared_;
  State state_;
  int64_t deadline_;
  bool is_request_ = false;
  bool is_connected_ = false;  // the peer must be told when it ends
  uint64_t message_bytes_max_;
  const char* why_ = nullptr;

  CommunicationId manager_;
  std::vector<std::byte> greetings_;  // sent bytes, then received ones
  RegionKey greetings_key_;
  std::unique_ptr<QueuePair> queue_pair_;
  std::vector<DeferredReceive> deferred_receives_;
  std::vector<Completion> greeted_;  // completed, not handled yet
};

}  // namespace alpheus::fabric::verbs

#endif  // ALPHEUS_REPLICATION_FABRIC_VERBS_CONNECTION_H_
