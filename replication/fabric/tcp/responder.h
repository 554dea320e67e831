// SPDX-License-Identifier: Apache-2.0
// responder: the receiving half of a connection: executes the peer's requests
// against registered memory.
//
// Idea: the responder is a small state machine, fed with headers and payloads
// as they come. A request that needs a receive and finds none is parked. Later
// bytes of the stream are kept (no more than the window, see TRQ2) and executed
// once a receive has come. So answers to this side's requests and pings still
// get through on the same stream. A request whose answer finds no room waits,
// too: while a peer accepts no answers, no more are made. Answers of a long
// read are made in pieces.
//
// Invariants (FB1 to FB6 of fabric.h):
//   TRP1. Requests are executed one after the other, in the order of their
//         sequence; a gap is malformed.
//   TRP2. The region is looked up again before each step of a landing, so that
//         no byte lands after Deregister.
//   TRP3. After a failure nothing is executed any more.
//   TRP4. Memory is bounded: kAnswerBytesMax of answers and one more, a piece
//         of kReplyPieceBytes at most; one window of kept bytes.
// Thread safety: none; the adapter's lock guards it.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_RESPONDER_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_RESPONDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"
#include "replication/fabric/tcp/outbox.h"
#include "replication/fabric/tcp/wire.h"
#include "replication/fabric/tcp/words.h"

namespace alpheus::fabric::tcp {

class Responder {
 public:
  enum class Health {
    kGood,
    kFailed,     // the request after executed() failed, as failure() says
    kBroken,     // bytes of a receive, or of half a reply, are deregistered
    kMalformed,  // the peer broke the protocol
  };

  // Bytes of answers that may wait in the outbox when another one is made.
  static constexpr uint64_t kAnswerBytesMax = uint64_t{256} << 10;
  static constexpr uint64_t kReplyPieceBytes = uint64_t{256} << 10;

  // `kept_bytes` sums the bytes that the responders of one adapter keep.
  Responder(ConnectionId connection, uint64_t window_bytes,
            const RegionTable& regions, std::deque<Completion>* completions,
            uint64_t* kept_bytes)
      : connection_(connection),
        window_bytes_(window_bytes),
        regions_(regions),
        completions_(completions),
        kept_bytes_(*kept_bytes) {}
  ~Responder() { ForgetKept(); }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  // Takes a header. Requires: it is a request's, and the payload before it was
  // given; health() is kGood.
  void OnHeader(const WireHeader& header, Outbox* outbox);
  // Takes payload. Returns how many bytes were taken: whole words, or all.
  size_t OnPayload(std::span<const std::byte> bytes, Outbox* outbox);

  // Adds a receive, which may continue a parked request.
  void PostReceive(WorkId work, const LocalBytes& into, Outbox* outbox);
  size_t receives() const { return receives_.size(); }

  // executed(): the last executed request. answered(): the last one that an
  // answer has told the peer.
  uint64_t executed() const { return executed_; }
  uint64_t answered() const { return answered_; }
  void set_answered(uint64_t sequence) { answered_ = sequence; }

  static bool HasRoomForAnswers(const Outbox& outbox);
  // Returns true if the answer of a request waits for room.
  bool waits_for_room() const { return waits_for_room_; }
  // Returns true if only the first part of a reply is in the outbox: nothing
  // else may be appended.
  bool is_in_reply() const { return is_in_reply_; }
  // Continues. Call it when there may be room again.
  void Advance(Outbox* outbox);

  bool keeps() const { return kept_begin_ < kept_.size(); }
  // Returns true if a request waits for a receive.
  bool is_parked() const { return is_parked_; }
  // Fails the parked request, which waited too long.
  void FailParked() { FailWith(WireFailure::kReceiverNotReady); }

  Health health() const { return health_; }
  WireFailure failure() const { return failure_; }

  // Completes all receives with kFlushed.
  void Fail();

 private:
  struct Receive {
    WorkId work;
    LocalBytes into;
  };

  bool is_waiting() const { return is_parked_ || waits_for_room_; }
  void Begin(Outbox* outbox);
  size_t Continue(std::span<const std::byte> bytes, Outbox* outbox);
  size_t Land(std::span<const std::byte> bytes);
  size_t LandSend(std::span<const std::byte> bytes);
  size_t ReadOperands(std::span<const std::byte> bytes, Outbox* outbox);
  void Finish();
  void BeginSend();
  void FinishImmediate();
  void ReplyToRead(Outbox* outbox);
  bool AppendReplyPiece(Outbox* outbox);
  void ExecuteFlush();
  void ExecuteAtomic(Outbox* outbox);
  void Executed();
  void Keep(std::span<const std::byte> bytes);
  void ForgetKept();
  void Replay(Outbox* outbox);
  void CompleteReceive(Operation operation, CompletionStatus status,
                       uint32_t immediate);
  void FailWith(WireFailure failure);
  void BreakOff() { health_ = Health::kMalformed; }

  const ConnectionId connection_;
  const uint64_t window_bytes_;
  const RegionTable& regions_;
  std::deque<Completion>* const completions_;
  uint64_t& kept_bytes_;

  std::deque<Receive> receives_;
  uint64_t executed_ = 0;
  uint64_t answered_ = 0;

  // The request that is being executed, and how much of its payload landed.
  WireHeader current_;
  uint64_t landed_ = 0;
  bool is_busy_ = false;    // current_ has not been executed yet
  bool is_parked_ = false;  // current_ waits for a receive
  bool waits_for_room_ = false;
  bool is_in_reply_ = false;
  std::array<std::byte, 2 * kWordBytes> operands_{};

  // Bytes of the stream after a waiting request, from kept_begin_ on.
  std::vector<std::byte> kept_;
  size_t kept_begin_ = 0;

  Health health_ = Health::kGood;
  WireFailure failure_ = WireFailure::kRemoteAccess;
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_RESPONDER_H_
