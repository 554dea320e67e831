// SPDX-License-Identifier: Apache-2.0
// responder: the receiving half of a connection: executes the peer's requests
// against registered memory.
//
// Idea: a little machine fed with headers and payloads as they come. A request
// that needs a receive and finds none parks the machine; what the peer has sent
// behind it is kept (no more than the window, see TRQ2) and executed when a
// receive has come, so that answers to own requests and pings still get through
// on the same stream. So does a request whose answer finds no room: a peer that
// takes no answers gets no more of them made, and those of a long read are made
// in pieces.
//
// Invariants (FB1 to FB6 of fabric.h):
//   TRP1. Requests are executed one after the other, in the order of their
//         sequence; a gap is nonsense.
//   TRP2. The region is asked for again before each step of a landing, so that
//         no byte lands after Deregister.
//   TRP3. After a failure nothing is executed any more.
//   TRP4. Memory is bounded: kAnswerBytesMax of answers and one more, a piece
//         of kReplyPieceBytes at most; a window of what is kept.
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

namespace alpheus::tcp {

class Responder {
 public:
  enum class Health {
    kGood,
    kFailed,    // the request behind executed() failed, as failure() says
    kBroken,    // bytes of a receive, or of half a reply, are deregistered
    kNonsense,  // the peer broke the protocol
  };

  // As many bytes of answers may wait in the outbox when another one is made.
  static constexpr uint64_t kAnswerBytesMax = uint64_t{256} << 10;
  static constexpr uint64_t kReplyPieceBytes = uint64_t{256} << 10;

  // `kept_bytes` sums what the responders of one adapter keep.
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

  // Feeding. Requires: headers are requests' and come when the payload before
  // has been given; health() is kGood.
  void OnHeader(const WireHeader& header, Outbox* outbox);
  // Returns how many bytes were taken: whole words, or all.
  size_t OnPayload(std::span<const std::byte> bytes, Outbox* outbox);

  // A receive may unpark the machine.
  void PostReceive(WorkId work, const LocalBytes& into, Outbox* outbox);
  size_t receives() const { return receives_.size(); }

  // The last request that was executed; what an answer has told the peer.
  uint64_t executed() const { return executed_; }
  uint64_t answered() const { return answered_; }
  void set_answered(uint64_t sequence) { answered_ = sequence; }

  static bool HasRoomForAnswers(const Outbox& outbox);
  // The answer of a request waits for that.
  bool waits_for_room() const { return waits_for_room_; }
  // Of a reply the first part is in the outbox, and the rest not: nothing else
  // may be appended.
  bool is_in_reply() const { return is_in_reply_; }
  // To be called when there may be room again.
  void GoOn(Outbox* outbox);

  bool keeps() const { return kept_begin_ < kept_.size(); }
  // A request waits for a receive.
  bool is_parked() const { return is_parked_; }
  // It waited too long.
  void GiveUpParked() { FailWith(WireFailure::kReceiverNotReady); }

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
  size_t Take(std::span<const std::byte> bytes, Outbox* outbox);
  size_t Land(std::span<const std::byte> bytes);
  size_t LandSend(std::span<const std::byte> bytes);
  size_t TakeOperands(std::span<const std::byte> bytes, Outbox* outbox);
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
  void BreakOff() { health_ = Health::kNonsense; }

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

  // Stream behind a request that waits, from kept_begin_ on.
  std::vector<std::byte> kept_;
  size_t kept_begin_ = 0;

  Health health_ = Health::kGood;
  WireFailure failure_ = WireFailure::kRemoteAccess;
};

}  // namespace alpheus::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_RESPONDER_H_
