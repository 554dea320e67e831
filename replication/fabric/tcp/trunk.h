// SPDX-License-Identifier: Apache-2.0
// trunk: one socket that carries the connections of two adapters.
//
// Idea: a system call for each connection is what many logs between the same
// two hosts cost. A trunk has a lane for each connection. What the connections
// send is gathered, and leaves in one call; what comes in one call may be for
// all of them. Long messages are not copied for that: they leave from where
// they are, behind what was gathered.
//
//   "ALPT", version, group | lane 1, 180 | 180 bytes | lane 2, 72 | ...
//                            frame         of lane 1   frame
//
// A peer may have several adapters at one address, each for the connections of
// its groups (socket_exchange.h). A trunk is with one of them. Its hello names
// the group of its first lane, and the answer tells how many adapters there
// are: so the side that connects learns which other groups the trunk carries.
//
// The side that connects opens lanes: it numbers them from 1 on, and the first
// frame of a number opens the lane at the other side. A frame of 0 bytes ends
// its lane in that direction. What a lane carries is a stream like that of a
// socket of its own (connection.h).
//
// Invariants:
//   TRK1. The bytes of a lane arrive whole, in order, and at no other lane.
//   TRK2. A lane that is closed gets nothing more, and its number is not used
//         again (FB5 of fabric.h).
//   TRK3. Memory is bounded: kUnsentBytesMax of unsent bytes, and as much again
//         for frames that end lanes, beyond which nothing is read; kLanesMax
//         lanes. A lane that finds no room waits, and those that wait longest
//         come first.
//   TRK4. A malformed frame ends the trunk with all of its lanes, and nothing
//         else (TF3 of tcp_fabric.h). Nothing is taken once a trunk has ended.
//   TRK5. While a lane may not be read (kept_bytes_max of options.h), nothing
//         is read: the bytes of another lane may lie behind its own.
//   TRK6. A trunk whose peer fell silent, or ended a lane without an answer,
//         gets no further lanes, so that those who connect again reach a peer
//         that is back.
//   TRK7. A lane begins as a socket would with the settings of TLS of that
//         moment (TF11 of tcp_fabric.h): the side that connects opens none by a
//         trunk that has others, and the other side ends one whose peer these
//         settings would not let in.
//   TRK8. A lane sends nothing before it is known that the trunk carries its
//         group. Until the answer has come it is held, but for lanes of the
//         group that the hello names.
// Thread safety: none; the adapter's lock guards it.
// References: docs/design/fabric.md#trunks.
#ifndef ALPHEUS_REPLICATION_FABRIC_TCP_TRUNK_H_
#define ALPHEUS_REPLICATION_FABRIC_TCP_TRUNK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/tcp/socket_exchange.h"
#include "replication/fabric/tcp/socket_stream.h"
#include "replication/fabric/tcp/stream.h"

namespace alpheus::fabric::tcp {

class Lane;

class Trunk : public std::enable_shared_from_this<Trunk> {
 public:
  static constexpr size_t kUnsentBytesMax = size_t{256} << 10;
  static constexpr uint32_t kFrameBytesMax = uint32_t{64} << 10;
  static constexpr size_t kLanesMax = 1024;
  // From so many bytes on a system call costs less than a copy. At most so many
  // frames leave in one: a window of bytes. With a quarter of that the
  // processor takes a tenth more for them.
  static constexpr size_t kLongBytesMin = size_t{32} << 10;
  static constexpr size_t kLongFramesMax = 64;
  static constexpr size_t kHelloBytes = 16;
  static constexpr size_t kFrameHeaderBytes = 8;

  // Returns what a trunk begins with in the direction of the side that accepts:
  // the group of the first lane.
  static std::array<std::byte, kHelloBytes> Hello(uint32_t group = 0);
  // Returns what it begins with in the other direction: how many adapters the
  // side that accepts has.
  static std::array<std::byte, kHelloBytes> Answer(uint32_t adapters);
  // Returns the group that a hello names, or the number of an answer; nothing:
  // these bytes are neither.
  static std::optional<uint32_t> ReadHello(
      std::span<const std::byte, kHelloBytes> bytes);
  static std::optional<uint32_t> ReadAnswer(
      std::span<const std::byte, kHelloBytes> bytes);

  // `stream` connects, and `group` is that of the first lane; or it is
  // accepted: then the peer's hello is the first that Take gets, and it was
  // answered.
  Trunk(std::unique_ptr<Stream> stream, TlsSession::Side side, std::string peer,
        uint32_t group);

  const std::string& peer() const { return peer_; }
  bool connects() const { return side_ == TlsSession::Side::kConnects; }
  uint32_t group() const { return group_; }
  // Returns how many adapters the peer has; 0: it has not answered yet.
  uint32_t adapters() const { return adapters_; }
  // Returns whether connections of the group may travel here, as far as it is
  // known. Requires: connects().
  bool Carries(uint32_t group) const {
    if (group == group_) return true;
    if (adapters_ == 0) return false;
    return AdapterOf(group, adapters_) == AdapterOf(group_, adapters_);
  }
  bool is_open() const { return stream_->is_open(); }
  bool is_ready() const { return stream_->is_ready(); }
  Stream& stream() const { return *stream_; }

  // ---- Lanes

  // Returns a lane for `connection`, which gets its number when it first sends.
  // It is held if the trunk may not carry the group (TRK8). Requires:
  // connects(), HasRoomForLane().
  std::unique_ptr<Stream> OpenLane(ConnectionId connection, uint32_t group);
  // Returns the lane that the peer opens. Requires: Take names it as new, now.
  std::unique_ptr<Stream> AcceptLane(uint32_t number, ConnectionId connection);
  // Ends the lane that the peer opens. Requires: as AcceptLane.
  void RefuseLane(uint32_t number) { AppendFrame(number, 0); }
  // Returns whether a lane may be opened here (TRK3, TRK6).
  bool HasRoomForLane() const {
    return is_open() && !is_retired_ && lanes_.size() < kLanesMax;
  }
  // No further lanes are to be opened (TRK6).
  void Retire() { is_retired_ = true; }
  size_t lanes() const { return lanes_.size(); }
  std::vector<ConnectionId> connections() const;
  // Lets the held lanes go that it carries, and returns them all: now that the
  // answer has come the others must move.
  struct HeldLane {
    ConnectionId connection;
    uint32_t group = 0;
  };
  std::vector<HeldLane> TakeHeld();
  // Moves a lane that has sent nothing to another trunk; it is held there if
  // that may not carry its group. Requires: `to`.HasRoomForLane().
  void MoveLane(ConnectionId connection, Trunk& to);

  // ---- Bytes

  struct Arrival {
    uint32_t number = 0;           // of the lane
    ConnectionId connection = {};  // 0: the peer opens this lane
    std::span<const std::byte> bytes = {};
    bool is_end = false;
    bool is_answered = false;  // with is_end: bytes came before
  };
  // Takes bytes of the socket, in order; gives each lane what is its own.
  // Returns false if they are malformed (TRK4).
  bool Take(std::span<const std::byte> bytes,
            absl::FunctionRef<void(const Arrival&)> give);

  // Returns whether bytes wait to be sent.
  bool has_unsent() const { return unsent() > 0 || stream_->has_unsent(); }
  // Sends what the socket takes. Returns true if anything was sent since the
  // last call.
  bool Flush();
  // Returns those who have sent since the trunk had nothing unsent.
  std::vector<ConnectionId> TakeSenders();
  bool has_senders() const { return !senders_.empty(); }
  // Lets who has waited longest for room send, if there is some. Returns what
  // `send` returns; false: there is no room, or nobody waits.
  bool LetNextSend(absl::FunctionRef<bool(ConnectionId)> send);
  size_t waiting() const { return waiting_.size(); }
  // Tells the poller what to watch.
  void Watch();
  bool MayBeRead() const {
    return is_open() && unreadable_ == 0 && unsent() < 2 * kUnsentBytesMax;
  }

  // Ends all lanes, at once.
  void End() { stream_->Close(); }

 private:
  friend class Lane;

  struct LaneState {
    uint32_t number = 0;      // 0: it has none yet
    uint32_t group = 0;       // of a lane that this side opened
    Lane* lane = nullptr;     // of such a lane
    bool has_ended = false;   // this side said so
    bool is_readable = true;  // TRK5
    bool has_heard = false;   // bytes came
    bool is_sender = false;   // is one of senders_
    uint64_t end_position = 0;
  };

  size_t unsent() const { return out_.size() - out_sent_; }
  bool has_room() const { return unsent() < kUnsentBytesMax; }
  LaneState* Find(ConnectionId connection);
  // Returns the connection that has the lane here; 0: none.
  ConnectionId Owner(uint32_t number) const;
  IoResult Send(ConnectionId connection, LaneState& state,
                std::span<iovec> from);
  // Sends from where the bytes are, in whole frames but for the last one, whose
  // rest is kept. Returns how many of `from` were taken.
  size_t SendLong(LaneState& state, std::span<const iovec> from);
  void NoteSender(ConnectionId connection, LaneState& state);
  void NoteTaken(size_t bytes);
  void DropSent();
  void AwaitRoom(ConnectionId connection);
  void ReserveFrame(size_t bytes);
  void AppendFrame(uint32_t number, uint32_t bytes);
  void EndSending(LaneState& state);
  void CloseLane(ConnectionId connection);
  bool IsUnsent(const LaneState& state) const {
    return state.end_position > sent_;
  }
  void SetReadable(LaneState& state, bool is_readable);
  void Hold(LaneState& state) const;
  bool OnFrame(absl::FunctionRef<void(const Arrival&)> give);
  // Takes the first bytes of the peer. Returns false if they are no hello, or
  // no answer.
  bool OnStart();

  const std::unique_ptr<Stream> stream_;
  const TlsSession::Side side_;
  const std::string peer_;
  uint32_t group_ = 0;     // of the first lane
  uint32_t adapters_ = 0;  // of the peer; 0: not known
  bool is_retired_ = false;

  std::map<ConnectionId, LaneState> lanes_;
  std::map<uint32_t, ConnectionId> owners_;  // of the lanes with numbers
  uint32_t last_lane_ = 0;                   // the largest number that was used
  size_t unreadable_ = 0;                    // lanes

  std::vector<std::byte> out_;
  size_t out_sent_ = 0;    // bytes of out_
  uint64_t appended_ = 0;  // bytes, ever
  uint64_t taken_ = 0;     // of these by the stream
  uint64_t sent_ = 0;      // of these by the kernel, for all that is known
  uint64_t noted_sent_bytes_ = 0;      // of the stream, at the last Flush
  std::vector<ConnectionId> senders_;  // each once
  std::deque<ConnectionId> waiting_;
  ConnectionId next_;  // who sends now, since it has waited longest; 0: nobody

  // The beginning of the peer; then the frame that is coming in.
  std::array<std::byte, kHelloBytes> start_{};
  size_t start_bytes_ = 0;
  std::array<std::byte, kFrameHeaderBytes> header_{};
  size_t header_bytes_ = 0;
  uint32_t in_lane_ = 0;
  uint32_t in_left_ = 0;  // bytes
};

}  // namespace alpheus::fabric::tcp

#endif  // ALPHEUS_REPLICATION_FABRIC_TCP_TRUNK_H_
