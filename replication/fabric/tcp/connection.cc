// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/connection.h"

#include <algorithm>
#include <utility>

#include "log/base/bytes.h"
#include "replication/fabric/tcp/trunk.h"

namespace alpheus::fabric::tcp {
namespace {

constexpr size_t kPiecesMax = 64;  // pieces of one sendmsg

// Bytes that one turn takes from one connection, so that others get theirs.
constexpr size_t kTurnBytes = size_t{1} << 20;

WireBounds BoundsOf(const TcpFabricOptions& options) {
  return {.message_bytes_max = options.limits.message_bytes_max,
          .private_bytes_max = options.limits.private_bytes_max};
}

CompletionStatus StatusOf(uint32_t failure) {
  switch (static_cast<WireFailure>(failure)) {
    case WireFailure::kReceiverNotReady:
      return CompletionStatus::kReceiverNotReady;
    case WireFailure::kReceiveTooSmall:
      return CompletionStatus::kReceiveTooSmall;
    case WireFailure::kRemoteAccess:
      break;
  }
  return CompletionStatus::kRemoteAccess;
}

}  // namespace

Connection::Connection(ConnectionId id, std::unique_ptr<Stream> stream,
                       bool is_alone, std::string peer, Shared* shared,
                       std::optional<std::string> private_data,
                       Deadline deadline, int64_t now)
    : id_(id),
      peer_(std::move(peer)),
      shared_(*shared),
      stream_(std::move(stream)),
      is_alone_(is_alone),
      state_(private_data ? State::kConnecting : State::kAnonymous),
      private_data_(std::move(private_data)),
      requester_(id, shared->regions, &shared->completions),
      responder_(id, shared->options.window_bytes, shared->regions,
                 &shared->completions, &shared->kept_bytes),
      message_bytes_max_(shared->options.limits.message_bytes_max),
      deadline_(deadline.at_nanos()),
      liveness_(shared->options.limits.retry_ns,
                shared->options.receiver_wait_ns, now) {
  if (!stream_->is_open()) deadline_ = now;
}

// --- Receiving --------------------------------------------------------------

bool Connection::MayBeRead() const {
  const bool is_full = responder_.keeps() &&
                       shared_.kept_bytes >= shared_.options.kept_bytes_max;
  return stream_->is_open() && !is_full;
}

bool Connection::Receive(int64_t now) {
  if (!MayBeRead()) return false;
  if (!stream_->is_ready() || state_ == State::kConnecting) {
    if (!MakeReady(now)) return true;
  }
  size_t turn_bytes = 0;
  keep_alive_received_ = 0;
  while (turn_bytes < kTurnBytes && MayBeRead() && !departing_group_) {
    std::copy_n(leftover_.begin(), leftover_bytes_, shared_.buffer.begin());
    const auto room = shared_.buffer.subspan(leftover_bytes_);
    const IoResult result = stream_->Receive(room);
    if (result.outcome == IoOutcome::kNothing) break;
    if (result.outcome == IoOutcome::kClosed) {
      Break(CompletionStatus::kFlushed, now);
      return true;
    }
    turn_bytes += result.bytes;
    Process(shared_.buffer.first(leftover_bytes_ + result.bytes), now);
    if (stream_->HasDrained(result.bytes, room.size())) break;
  }
  return turn_bytes > keep_alive_received_;
}

bool Connection::Take(std::span<const std::byte> bytes, int64_t now) {
  const size_t all = bytes.size();
  keep_alive_received_ = 0;
  while (leftover_bytes_ > 0 && !bytes.empty()) {
    // The rest that was kept is less than a header, or than a word. It is
    // completed where it lies.
    const size_t before = leftover_bytes_;
    const size_t added = std::min(bytes.size(), leftover_.size() - before);
    std::copy_n(bytes.begin(), added, leftover_.begin() + before);
    const size_t used = Parse(std::span(leftover_).first(before + added), now);
    if (used == 0) {
      leftover_bytes_ += added;
      bytes = bytes.subspan(added);
    } else {
      leftover_bytes_ = 0;
      bytes = bytes.subspan(used - before);
    }
  }
  if (leftover_bytes_ == 0) Process(bytes, now);
  if (!MayBeRead()) Watch();  // TRK5 (trunk.h): before more is read
  return all > keep_alive_received_;
}

void Connection::Process(std::span<const std::byte> bytes, int64_t now) {
  Heard(now);
  const auto rest = bytes.subspan(Parse(bytes, now));
  const bool is_all_answered = requester_.in_flight() == 0;
  if (is_all_answered) liveness_.OnAllAnswered();
  leftover_bytes_ = rest.size() <= leftover_.size() ? rest.size() : 0;
  std::copy_n(rest.begin(), leftover_bytes_, leftover_.begin());
}

std::optional<uint32_t> Connection::TrunkGroup(
    std::span<const std::byte> bytes) const {
  const bool may_begin = is_alone_ && state_ == State::kAnonymous &&
                         bytes.size() >= Trunk::kHelloBytes;
  if (!may_begin) return std::nullopt;
  return Trunk::ReadHello(bytes.first<Trunk::kHelloBytes>());
}

bool Connection::Depart(uint32_t group, bool is_trunk,
                        std::span<const std::byte> bytes, int64_t now) {
  Flush(now);
  if (!outbox_.empty()) return false;
  departing_group_ = group;
  departs_as_trunk_ = is_trunk;
  departing_bytes_.assign(bytes.begin(), bytes.end());
  return true;
}

std::optional<Connection::Departure> Connection::TakeDeparture() {
  if (!departing_group_) return std::nullopt;
  state_ = State::kDead;
  deadline_ = kNever;
  return Departure{std::move(stream_),
                   *std::exchange(departing_group_, std::nullopt),
                   departs_as_trunk_, std::move(departing_bytes_)};
}

void Connection::Heard(int64_t now) {
  liveness_.OnHeard(now, /*awaits_answer=*/requester_.in_flight() > 0);
}

size_t Connection::Parse(std::span<const std::byte> bytes, int64_t now) {
  size_t used = 0;
  while (!lingers_ && stream_->is_open() && !departing_group_) {
    const auto rest = bytes.subspan(used);
    if (payload_left_ > 0) {
      if (rest.empty()) break;
      const auto payload = rest.first(
          static_cast<size_t>(std::min<uint64_t>(rest.size(), payload_left_)));
      const size_t taken = OnPayload(payload, now);
      if (taken == 0) break;
      used += taken;
      continue;
    }
    if (const auto group = TrunkGroup(rest)) {
      // At once, whatever the adapter does to which the trunk goes: lanes of
      // others wait for this (TRK8).
      outbox_.Append(Trunk::Answer(shared_.adapters()));
      if (Depart(*group, /*is_trunk=*/true, {}, now)) break;
      NoteRejected(UnauthenticatedEnd::kNotUnderstood);
      Break(CompletionStatus::kFlushed, now);
      break;
    }
    if (rest.size() < kWireHeaderBytes) break;
    const std::optional<WireHeader> header =
        DecodeHeader(rest.first<kWireHeaderBytes>(), BoundsOf(shared_.options));
    if (!header || !OnHeader(*header, now)) {
      NoteRejected(UnauthenticatedEnd::kNotUnderstood);
      Break(CompletionStatus::kFlushed, now);
      break;
    }
    used += kWireHeaderBytes;
  }
  if (departing_group_) {
    const auto rest = bytes.subspan(used);
    departing_bytes_.insert(departing_bytes_.end(), rest.begin(), rest.end());
    return bytes.size();
  }
  // A lingering connection only waits for the end of the stream.
  return lingers_ || !stream_->is_open() ? bytes.size() : used;
}

bool Connection::OnHeader(const WireHeader& header, int64_t now) {
  header_ = header;
  payload_left_ = PayloadBytes(header);
  if (IsHandshake(header.opcode)) {
    if (!OnHandshakeHeader(header)) return false;
    handshake_.clear();
    if (payload_left_ == 0) OnHandshake(now);
    return true;
  }
  if (header.opcode == WireOpcode::kPing) {
    keep_alive_received_ += kWireHeaderBytes;
    AppendPong();
    return true;
  }
  if (header.opcode == WireOpcode::kPong) {
    keep_alive_received_ += kWireHeaderBytes;
    return true;  // it has been heard
  }
  const bool is_its_turn = is_established();
  if (!is_its_turn) return false;
  if (IsRequest(header.opcode)) {
    responder_.OnHeader(header, &outbox_);
    CheckResponder(now);
    return true;
  }
  switch (header.opcode) {
    case WireOpcode::kAck:
      return requester_.OnAck(header.sequence, outbox_);
    case WireOpcode::kReadReply:
    case WireOpcode::kAtomicReply:
      return requester_.OnReply(header, outbox_);
    case WireOpcode::kNak:
      return OnNak(header, now);
    default:
      return false;
  }
}

bool Connection::OnNak(const WireHeader& header, int64_t now) {
  if (!requester_.OnNak(header.sequence, outbox_)) return false;
  Break(StatusOf(header.immediate), now);
  return true;
}

size_t Connection::OnPayload(std::span<const std::byte> bytes, int64_t now) {
  size_t taken = bytes.size();
  if (IsHandshake(header_.opcode)) {
    handshake_.insert(handshake_.end(), bytes.begin(), bytes.end());
  } else if (IsRequest(header_.opcode)) {
    taken = responder_.OnPayload(bytes, &outbox_);
  } else {
    bool gone = false;
    taken = requester_.OnReplyPayload(bytes, &gone);
    if (gone) Break(requester_.LocalFailure(), now);
  }
  payload_left_ -= taken;
  if (IsRequest(header_.opcode)) {
    CheckResponder(now);
  } else if (IsHandshake(header_.opcode) && payload_left_ == 0) {
    OnHandshake(now);
  }
  return taken;
}

void Connection::CheckResponder(int64_t now) {
  switch (responder_.health()) {
    case Responder::Health::kGood:
      break;
    case Responder::Health::kFailed:
      return BreakWithNak(responder_.failure(), now);
    case Responder::Health::kBroken:
      return Break(CompletionStatus::kFlushed, now);
    case Responder::Health::kMalformed:
      NoteRejected(UnauthenticatedEnd::kNotUnderstood);
      return Break(CompletionStatus::kFlushed, now);
  }
  liveness_.OnParked(now, responder_.is_parked());
}

void Connection::PostReceive(WorkId work, const LocalBytes& into, int64_t now) {
  const uint64_t before = responder_.executed();
  responder_.PostReceive(work, into, &outbox_);
  if (!is_established()) return;
  // Another request may be parked in its place, with a time of its own.
  if (responder_.executed() != before) liveness_.OnParked(now, false);
  CheckResponder(now);
}

// --- Sending ----------------------------------------------------------------

void Connection::AppendControl(WireOpcode opcode, uint64_t sequence,
                               uint32_t immediate) {
  outbox_.Append(EncodeHeader({.opcode = opcode,
                               .immediate = immediate,
                               .length = 0,
                               .key = 0,
                               .offset = 0,
                               .sequence = sequence}));
}

void Connection::AppendKeepAlive(WireOpcode opcode) {
  const bool is_alone = outbox_.empty();
  AppendControl(opcode, 0, 0);
  if (is_alone) keep_alive_position_ = outbox_.end_position();
}

// One waiting pong answers all pings: a peer that sends pings and reads nothing
// costs no more memory.
void Connection::AppendPong() {
  if (pong_position_ > outbox_.sent_position()) return;
  if (responder_.is_in_reply()) {
    is_pong_due_ = true;
    return;
  }
  AppendKeepAlive(WireOpcode::kPong);
  pong_position_ = outbox_.end_position();
}

void Connection::AppendAnswers() {
  if (responder_.executed() == responder_.answered() ||
      !Responder::HasRoomForAnswers(outbox_)) {
    return;
  }
  outbox_.AppendAnswer(EncodeHeader({.opcode = WireOpcode::kAck,
                                     .immediate = 0,
                                     .length = 0,
                                     .key = 0,
                                     .offset = 0,
                                     .sequence = responder_.executed()}));
  responder_.set_answered(responder_.executed());
}

void Connection::Fill(int64_t now) {
  if (responder_.waits_for_room()) {
    responder_.Advance(&outbox_);
    CheckResponder(now);
    if (!is_established() || responder_.is_in_reply()) return;
  }
  if (std::exchange(is_ping_due_, false)) AppendKeepAlive(WireOpcode::kPing);
  if (std::exchange(is_pong_due_, false)) AppendPong();
  AppendAnswers();
  if (requester_.unsent() == 0) return;
  const bool is_good = requester_.Send(&outbox_);
  if (requester_.in_flight() > 0) liveness_.OnAsked(now);
  if (!is_good) Break(requester_.LocalFailure(), now);
}

bool Connection::Send(int64_t now) {
  bool moved = false;
  bool goes_on = true;
  const uint64_t turn_end = outbox_.end_position() + kTurnBytes;
  while (goes_on) {
    if (is_established()) {
      Fill(now);
      if (!is_established()) return true;
    }
    const bool flushed = Flush(now);
    moved |= flushed;
    // Continues a long reply; others have their turn meanwhile.
    goes_on = flushed && is_established() && responder_.waits_for_room() &&
              outbox_.end_position() < turn_end;
  }
  return moved;
}

bool Connection::Flush(int64_t now) {
  bool moved = false;
  const bool may_send =
      stream_->is_open() && stream_->is_ready() && state_ != State::kConnecting;
  if (!may_send) return false;
  const uint64_t sent_before = stream_->sent_bytes();
  if (stream_->has_unsent()) stream_->Flush();
  while (!outbox_.empty()) {
    std::array<iovec, kPiecesMax> pieces;
    const size_t count = outbox_.Gather(shared_.regions, pieces);
    if (count == 0) {
      Break(requester_.LocalFailure(), now);
      return true;
    }
    const IoResult result = stream_->Send(std::span(pieces).first(count));
    if (result.outcome == IoOutcome::kNothing) break;
    if (result.outcome == IoOutcome::kClosed) {
      // Receive finds this out, after the peer's last bytes.
      break;
    }
    outbox_.Consume(result.bytes);
    moved |= outbox_.sent_position() > keep_alive_position_;
  }
  NoteFlushed(now, stream_->sent_bytes() > sent_before);
  return moved;
}

void Connection::NoteFlushed(int64_t now, bool has_sent) {
  const bool is_all_sent = outbox_.empty() && !stream_->has_unsent();
  if (lingers_ && is_all_sent && !has_ended_sending_) {
    stream_->EndSending();
    has_ended_sending_ = true;
  }
  if (has_sent) liveness_.OnBytesTaken(now);
  liveness_.OnFlushed(now, is_all_sent, has_sent);
  Watch();
}

void Connection::Watch() {
  if (!stream_->is_open()) return;
  stream_->Watch(MayBeRead(), !outbox_.empty() || responder_.waits_for_room());
}

// --- Handshake --------------------------------------------------------------

bool Connection::MakeReady(int64_t now) {
  switch (stream_->MakeReady()) {
    case TlsSession::Progress::kWaiting:
      Watch();
      return false;
    case TlsSession::Progress::kFailed:
      // As without TLS: a peer that just goes is not worth a word.
      if (state_ == State::kAnonymous && !stream_->has_ended()) {
        NoteRejected(UnauthenticatedEnd::kNotTrusted);
      }
      Break(CompletionStatus::kFlushed, now);
      return false;
    case TlsSession::Progress::kDone:
      // Others may be in use since the handshake began.
      if (EndIfRevoked(now)) return false;
      shared_.counters.offloaded += stream_->is_offloaded() ? 1 : 0;
      break;
  }
  if (state_ == State::kConnecting) Greet(now);
  return true;
}

void Connection::Greet(int64_t now) {
  state_ = State::kGreeting;
  AppendHandshake(WireOpcode::kHello, *private_data_);
  Flush(now);
}

void Connection::AppendHandshake(WireOpcode opcode,
                                 std::string_view private_data) {
  const Fabric::Limits& limits = shared_.options.limits;
  const size_t hello_bytes =
      opcode == WireOpcode::kReject ? 0 : kWireHelloBytes;
  outbox_.Append(EncodeHeader({.opcode = opcode,
                               .immediate = kWireVersion,
                               .length = hello_bytes + private_data.size(),
                               .key = 0,
                               .offset = 0,
                               .sequence = 0}));
  if (hello_bytes > 0) {
    outbox_.Append(EncodeHello({.sends_max = limits.sends_max,
                                .receives_max = limits.receives_max,
                                .message_bytes_max = limits.message_bytes_max,
                                .window_bytes = shared_.options.window_bytes}));
  }
  if (!private_data.empty()) outbox_.Append(AsBytes(private_data));
}

bool Connection::OnHandshakeHeader(const WireHeader& header) {
  switch (state_) {
    case State::kAnonymous:
      return header.opcode == WireOpcode::kHello;
    case State::kGreeting:
      return header.opcode == WireOpcode::kAccept ||
             header.opcode == WireOpcode::kReject;
    default:
      return false;
  }
}

void Connection::OnHandshake(int64_t now) {
  std::string_view private_data = AsText(handshake_);
  if (header_.opcode == WireOpcode::kReject) {
    AddEvent(ConnectionEvent::Kind::kRejected, std::string(private_data));
    Close(now);
    state_ = State::kBroken;
    return;
  }
  const std::optional<WireHello> hello = DecodeHello(handshake_);
  if (!hello) return Break(CompletionStatus::kFlushed, now);
  private_data.remove_prefix(kWireHelloBytes);
  const bool is_request = state_ == State::kAnonymous;
  if (is_request && IsElsewhere(private_data, now)) return;
  OnLimits(*hello);
  deadline_ = kNever;
  const bool is_own = state_ == State::kGreeting;
  state_ = is_own ? State::kEstablished : State::kRequested;
  AddEvent(is_own ? ConnectionEvent::Kind::kEstablished
                  : ConnectionEvent::Kind::kRequested,
           std::string(private_data));
  handshake_ = {};
}

bool Connection::IsElsewhere(std::string_view private_data, int64_t now) {
  const std::optional<uint32_t> group = shared_.GroupOf(private_data);
  if (!group || shared_.IsOwn(*group)) return false;
  const auto header = EncodeHeader(header_);
  std::vector<std::byte> said(header.begin(), header.end());
  said.insert(said.end(), handshake_.begin(), handshake_.end());
  // A trunk is one adapter's with all of its lanes.
  const bool departs =
      is_alone_ && Depart(*group, /*is_trunk=*/false, said, now);
  if (departs) return true;
  NoteRejected(UnauthenticatedEnd::kNotUnderstood);
  Break(CompletionStatus::kFlushed, now);
  return true;
}

void Connection::OnLimits(const WireHello& hello) {
  message_bytes_max_ = std::min(message_bytes_max_, hello.message_bytes_max);
  requester_.set_window_bytes(hello.window_bytes);
}

void Connection::Accept(std::string_view private_data, int64_t now) {
  AppendHandshake(WireOpcode::kAccept, private_data);
  state_ = State::kEstablished;
  liveness_.OnEstablished(now);
  AddEvent(ConnectionEvent::Kind::kEstablished, "");
  Flush(now);
}

void Connection::Reject(std::string_view private_data, int64_t now) {
  AppendHandshake(WireOpcode::kReject, private_data);
  responder_.Fail();
  StartLinger(now);
  state_ = lingers_ ? State::kLingering : State::kDead;
}

// --- Time -------------------------------------------------------------------

bool Connection::HearsSilence() const {
  switch (state_) {
    case State::kConnecting:
    case State::kGreeting:
      return deadline_ == kNever;  // else the deadline decides
    case State::kRequested:
    case State::kEstablished:
      return true;
    default:
      return false;
  }
}

int64_t Connection::NextDue() const {
  return HearsSilence() ? liveness_.NextDue() : deadline_;
}

int64_t Connection::next_timer() const {
  return HearsSilence() ? liveness_.NextCheck(shared_.timers_ran_at)
                        : deadline_;
}

bool Connection::OnTimers(int64_t now) {
  liveness_.ExcuseOwnPause(now, shared_.timers_ran_at);
  if (now < NextDue()) return false;
  if (lingers_) {
    DropSocket();
    return true;
  }
  if (!HearsSilence()) {
    if (state_ == State::kAnonymous)
      NoteRejected(UnauthenticatedEnd::kSaidNothing);
    Break(CompletionStatus::kFlushed, now);
    return true;
  }
  switch (liveness_.WhatIsDue(now)) {
    case LivenessTimers::Due::kNothing:
      return false;
    case LivenessTimers::Due::kReceive:
      responder_.FailParked();
      CheckResponder(now);
      return true;
    case LivenessTimers::Due::kPeerGone:
      Break(CompletionStatus::kPeerGone, now);
      return true;
    case LivenessTimers::Due::kAsk:
      Ask(now);
      return false;
  }
  return false;
}

// TCP's handshake asks by itself.
void Connection::Ask(int64_t now) {
  if (responder_.is_in_reply()) {
    is_ping_due_ = true;
  } else if (state_ != State::kConnecting) {
    AppendKeepAlive(WireOpcode::kPing);
  }
  liveness_.OnAsked(now);
  Flush(now);
}

// --- Ends -------------------------------------------------------------------

void Connection::AddEvent(ConnectionEvent::Kind kind,
                          std::string private_data) {
  shared_.events.push_back({.kind = kind,
                            .connection = id_,
                            .private_data = std::move(private_data),
                            .peer = peer_,
                            .peer_name = stream_->peer_name()});
}

void Connection::AddUnreachable() {
  AddEvent(ConnectionEvent::Kind::kUnreachable, "");
  shared_.events.back().why = stream_->failure();
}

void Connection::Break(CompletionStatus first, int64_t) {
  DropSocket();
  switch (std::exchange(state_, State::kBroken)) {
    case State::kAnonymous:
    case State::kLingering:
    case State::kDead:
      state_ = State::kDead;
      return;
    case State::kBroken:
      return;
    case State::kConnecting:
    case State::kGreeting:
      AddUnreachable();
      break;
    case State::kRequested:
    case State::kEstablished:
      AddEvent(ConnectionEvent::Kind::kDisconnected, "");
      break;
  }
  requester_.Fail(first);
  responder_.Fail();
}

void Connection::BreakWithNak(WireFailure failure, int64_t now) {
  AppendControl(WireOpcode::kNak, responder_.executed() + 1,
                static_cast<uint32_t>(failure));
  state_ = State::kBroken;
  AddEvent(ConnectionEvent::Kind::kDisconnected, "");
  StartLinger(now);
  requester_.Fail(CompletionStatus::kFlushed);
  responder_.Fail();
}

void Connection::Close(int64_t now) {
  if (lingers_) {
    state_ = State::kLingering;
    return;
  }
  if (state_ == State::kRequested) return Reject("", now);
  if (is_established()) {
    Send(now);  // last answers
  }
  DropSocket();
  state_ = State::kDead;
  requester_.Fail(CompletionStatus::kFlushed);
  responder_.Fail();
}

void Connection::NoteRejected(UnauthenticatedEnd why) {
  ++shared_.counters.rejected;
  if (shared_.options.on_rejected) {
    shared_.options.on_rejected(peer_, why, stream_->failure());
  }
}

void Connection::MakeRoom() {
  if (state_ == State::kAnonymous)
    NoteRejected(UnauthenticatedEnd::kSaidNothing);
  DropSocket();
  state_ = State::kDead;
}

bool Connection::EndIfRevoked(int64_t now) {
  const bool is_encrypted = shared_.tls != nullptr;
  if (!is_encrypted || !stream_->is_open() || !stream_->is_ready())
    return false;
  if (!stream_->FailIfRevoked(*shared_.tls)) return false;
  NoteRejected(UnauthenticatedEnd::kNotTrusted);
  Break(CompletionStatus::kFlushed, now);
  return true;
}

void Connection::StartLinger(int64_t now) {
  lingers_ = true;
  deadline_ = now + shared_.options.limits.retry_ns;
  if (!outbox_.CopyReferences(shared_.regions)) return DropSocket();
  Flush(now);
}

void Connection::DropSocket() {
  lingers_ = false;
  deadline_ = kNever;
  stream_->Close();
  if (state_ == State::kLingering) state_ = State::kDead;
}

}  // namespace alpheus::fabric::tcp
