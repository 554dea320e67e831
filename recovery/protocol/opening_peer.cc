// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/opening_peer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "quorum/members/peer_name.h"
#include "recovery/protocol/deletion.h"
#include "recovery/protocol/state_report_wire.h"

namespace alpheus::recovery {

using fabric::ConnectionId;
using fabric::WorkId;

namespace {

constexpr int64_t kNotWaiting = std::numeric_limits<int64_t>::max();
constexpr WorkId kSendWork{1};
constexpr WorkId kReceiveWork{2};
constexpr WorkId kReportWork{3};

// Pieces of a report in flight, and the share of the send queue that ring
// bytes may fill, so that requests always find a place.
constexpr uint64_t kReportPiecesMax = 4;

const char* WhatIsWaitedFor(OpeningPeer::State state) {
  switch (state) {
    case OpeningPeer::State::kConnecting:
      return "a server hello";
    case OpeningPeer::State::kChallenging:
    case OpeningPeer::State::kProving:
      return "the proof of the cluster key";
    case OpeningPeer::State::kAskingCreation:
      return "the reply on its creation";
    case OpeningPeer::State::kFormatting:
      return "the empty replica";
    case OpeningPeer::State::kPromising:
      return "the promise";
    case OpeningPeer::State::kReading:
      return "the state report";
    case OpeningPeer::State::kOpeningForRepair:
      return "the ring to be open for repair";
    case OpeningPeer::State::kInstalling:
      return "the installation";
    case OpeningPeer::State::kAskingDeletion:
      return "the mark of deletion";
    default:
      return "nothing";
  }
}

// Returns true for the refusal of a node with too many connections, which
// passes.
bool MeansNoRoom(const absl::Status& refusal) {
  return absl::IsResourceExhausted(refusal);
}

}  // namespace

OpeningPeer::OpeningPeer(const OpeningPeerOptions& options,
                         fabric::Fabric& fabric, const Clock& clock)
    : options_(options),
      fabric_(fabric),
      clock_(clock),
      limits_(fabric.limits()),
      failure_(absl::UnavailableError("not connected yet")),
      failed_at_nanos_(std::numeric_limits<int64_t>::min() / 2),
      due_nanos_(kNotWaiting),
      handshake_(options.credentials) {}

OpeningPeer::~OpeningPeer() {
  if (connection_ != ConnectionId()) fabric_.Close(connection_).IgnoreError();
}

std::string DescribePeer(const PeerAddress& peer) {
  return absl::StrCat("node ", peer.node.value, " at ", peer.address);
}

absl::Status OpeningPeer::Annotate(const absl::Status& status) const {
  return {status.code(), absl::StrCat(Describe(), ": ", status.message())};
}

void OpeningPeer::Fail(const absl::Status& status, bool may_try_again) {
  if (failed()) return;
  state_ = State::kFailed;
  failure_ = Annotate(status);
  may_try_again_ = may_try_again;
  failed_at_nanos_ = clock_.NowNanos();
  StopWaiting();
  if (connection_ != ConnectionId()) {
    // Close is a fence: only after it may the memory below go (OP2).
    fabric_.Close(connection_).IgnoreError();
    past_.push_back(connection_);
    connection_ = ConnectionId();
  }
  posted_ = 0;
  reads_suspended_ = false;
  session_.reset();
  report_bytes_.reset();
  slots_.reset();
}

void OpeningPeer::Break(const absl::Status& why) {
  if (failed()) return;
  broke_ = state_ != State::kConnecting;
  Fail(why, /*may_try_again=*/true);
}

void OpeningPeer::BreakUnless(const absl::Status& status) {
  if (!status.ok()) Break(status);
}

void OpeningPeer::StopWaiting() { due_nanos_ = kNotWaiting; }

void OpeningPeer::Connect() {
  ALPHEUS_CHECK(failed(), "one connection at a time (messages.h)");
  state_ = State::kConnecting;
  broke_ = false;
  was_put_off_ = false;
  // The fabric reports when nobody answers in time.
  const int64_t now = clock_.NowNanos();
  const int64_t until =
      std::min(now + options_.step_timeout_ns, options_.deadline.at_nanos());
  auto connection =
      fabric_.Connect(options_.at.address, EncodeHello(options_.hello),
                      Deadline::AtNanos(until));
  if (!connection.ok()) return Fail(connection.status());
  connection_ = *connection;
}

bool OpeningPeer::Owns(ConnectionId connection) const {
  if (connection == ConnectionId()) return false;
  return connection == connection_ ||
         std::find(past_.begin(), past_.end(), connection) != past_.end();
}

// Requests and replies.

void OpeningPeer::Request(const Message& message, State waiting,
                          uint64_t bytes_scanned) {
  is_sent_ = false;
  reply_bytes_.reset();
  state_ = waiting;
  reply_within_ns_ = options_.step_timeout_ns + ReadingNanos(bytes_scanned);
  due_nanos_ = clock_.NowNanos() + reply_within_ns_;
  BreakUnless(Send(message));
}

absl::Status OpeningPeer::Send(const Message& message) {
  if (slots_ == nullptr) {
    ALPHEUS_ASSIGN_OR_RETURN(
        slots_, replication::MessageSlots::Make(fabric_, 2, kMessageBytesMax));
  }
  const std::vector<std::byte> bytes =
      EncodeMessage(options_.hello.log_id, message);
  ALPHEUS_CHECK(bytes.size() <= kMessageBytesMax, "(messages.h)");
  ALPHEUS_RETURN_IF_ERROR(
      fabric_.PostReceive(connection_, kReceiveWork, slots_->At(1)));
  const fabric::LocalBytes slot = slots_->At(0);
  std::copy(bytes.begin(), bytes.end(), slot.bytes.begin());
  ALPHEUS_RETURN_IF_ERROR(fabric_.PostSend(
      connection_, kSendWork, {slot.key, slot.bytes.first(bytes.size())}));
  ++posted_;
  return absl::OkStatus();
}

void OpeningPeer::Ask(const AskCreation& ask) {
  ALPHEUS_CHECK(state_ == State::kGreeted, "one request at a time");
  Request(ask, State::kAskingCreation);
}

void OpeningPeer::Ask(const Format& format) {
  ALPHEUS_CHECK(state_ == State::kGreeted || state_ == State::kCreationKnown,
                "one request at a time");
  Request(format, State::kFormatting);
}

void OpeningPeer::Ask(const Prepare& ask) {
  ALPHEUS_CHECK(state_ == State::kGreeted, "one request at a time");
  ballot_ = ask.promise.epoch;
  Request(ask, State::kPromising, server_hello_.ring_capacity);
}

void OpeningPeer::Ask(const OpenForRepair& open) {
  ALPHEUS_CHECK(state_ == State::kReported, "one request at a time");
  Request(open, State::kOpeningForRepair);
}

void OpeningPeer::Ask(const Mark& mark) {
  ALPHEUS_CHECK(state_ == State::kReported, "one request at a time");
  Request(mark, State::kAskingDeletion);
}

void OpeningPeer::Ask(const Remove& remove) {
  ALPHEUS_CHECK(state_ == State::kGreeted || state_ == State::kReported ||
                    state_ == State::kDeletionKnown,
                "one request at a time");
  Request(remove, State::kAskingDeletion);
}

void OpeningPeer::Ask(const Install& install, const Ring& ring,
                      fabric::RegionKey ring_key) {
  ALPHEUS_CHECK(state_ == State::kRepairOpened, "one request at a time");
  install_ = install;
  own_ring_ = ring;
  own_ring_key_ = ring_key;
  Request(install, State::kInstalling,
          install.installation.end.offset - install.installation.head.offset);
}

void OpeningPeer::CheckTime(int64_t now_nanos) {
  if (now_nanos < due_nanos_) return;
  Fail(absl::UnavailableError(absl::StrCat(
           "was silent for ", reply_within_ns_ / 1'000'000,
           " ms while this process waited for ", WhatIsWaitedFor(state_),
           "; check that the node and the network are up")),
       /*may_try_again=*/true);
}

void OpeningPeer::RenewTime(int64_t now_nanos) {
  if (due_nanos_ != kNotWaiting) due_nanos_ = now_nanos + reply_within_ns_;
}

void OpeningPeer::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  if (event.connection != connection_ || failed()) return;
  using Kind = fabric::ConnectionEvent::Kind;
  switch (event.kind) {
    case Kind::kEstablished:
      return OnServerHello(event);
    case Kind::kRejected: {
      const absl::Status why = DecodeRejection(event.private_data);
      was_put_off_ = absl::IsUnavailable(why) || MeansNoRoom(why);
      return Fail({why.code(), absl::StrCat("refused: ", why.message())},
                  was_put_off_);
    }
    case Kind::kUnreachable:
      return Fail(
          absl::UnavailableError(
              event.why.empty() ? "nobody answers there"
                                : absl::StrCat("no connection: ", event.why)),
          /*may_try_again=*/true);
    default:
      // A reply may have arrived, and says why. Else its receive fails (FB3).
      if (due_nanos_ != kNotWaiting) return;
      return Break(absl::UnavailableError("the connection broke"));
  }
}

void OpeningPeer::OnServerHello(const fabric::ConnectionEvent& event) {
  if (state_ != State::kConnecting) return;
  const absl::Status is_node =
      quorum::CheckIsNode(event.peer_name, options_.hello.cluster_id, node());
  if (!is_node.ok()) return Fail(is_node);
  const auto server_hello = DecodeServerHello(event.private_data);
  if (!server_hello.ok()) {
    return Fail(server_hello.status(),
                absl::IsUnavailable(server_hello.status()));
  }
  if (server_hello->node != node()) {
    return Fail(absl::FailedPreconditionError(
        absl::StrCat("node ", server_hello->node.value,
                     " answers there. Correct the addresses of the cluster")));
  }
  server_hello_ = *server_hello;
  if (handshake_.is_needed()) {
    return Request(handshake_.Begin(options_.hello, server_hello_),
                   State::kChallenging);
  }
  state_ = State::kGreeted;
}

void OpeningPeer::OnChallenged(const Challenged& challenged) {
  const absl::StatusOr<Prove> prove = handshake_.Reply(challenged);
  if (!prove.ok()) return Fail(prove.status());
  Request(*prove, State::kProving);
}

void OpeningPeer::OnCompletion(const fabric::Completion& completion) {
  if (failed() || completion.connection != connection_) return;
  const bool receives =
      completion.operation == fabric::Operation::kReceive ||
      completion.operation == fabric::Operation::kReceiveImmediate;
  // The request's reply may have arrived: its receive decides.
  const bool is_left_to_the_reply =
      completion.work == kSendWork && due_nanos_ != kNotWaiting &&
      completion.status == fabric::CompletionStatus::kFlushed;
  if (completion.status != fabric::CompletionStatus::kOk &&
      !is_left_to_the_reply) {
    return Break(absl::UnavailableError(absl::StrCat(
        "the connection broke: ", fabric::OperationName(completion.operation),
        ": ", fabric::CompletionStatusName(completion.status))));
  }
  if (!receives) --posted_;
  if (completion.work.value >= kForeignWork) return;
  if (state_ == State::kInstalled) {
    const absl::Status taken = session_->OnCompletion(completion);
    if (!taken.ok()) Fail(taken);
    return;
  }
  if (completion.work == kReportWork) return OnReportPiece();
  if (receives) {
    reply_bytes_ = completion.bytes;
  } else {
    is_sent_ = true;
  }
  if (is_sent_ && reply_bytes_) OnReply();
}

void OpeningPeer::OnReply() {
  const auto message = DecodeMessage(
      options_.hello.log_id, slots_->At(1).bytes.first(std::min<uint64_t>(
                                 *reply_bytes_, kMessageBytesMax)));
  StopWaiting();
  // The replica may have carried the request out; it is asked again (MSG1).
  if (absl::IsUnavailable(message.status())) return Break(message.status());
  if (message.ok() && std::holds_alternative<Changed>(*message)) {
    return Break(RequestChanged());
  }
  if (message.ok() && std::holds_alternative<Failed>(*message)) {
    return OnFailed(std::get<Failed>(*message).status);
  }
  const auto is = [&]<class Reply>(State waiting, const Reply& /*kind*/) {
    return message.ok() && state_ == waiting &&
           std::holds_alternative<Reply>(*message);
  };
  if (is(State::kChallenging, Challenged())) {
    OnChallenged(std::get<Challenged>(*message));
  } else if (is(State::kProving, Proved())) {
    state_ = State::kGreeted;
  } else if (is(State::kAskingCreation, Created())) {
    created_ = std::get<Created>(*message);
    state_ = State::kCreationKnown;
  } else if (is(State::kFormatting, Formatted())) {
    state_ = State::kFormatted;
  } else if (is(State::kPromising, Promised())) {
    has_promised_ = true;
    StartReading(std::get<Promised>(*message));
  } else if (is(State::kPromising, Refused())) {
    refused_by_ = std::get<Refused>(*message).current;
    state_ = State::kRefused;
  } else if (is(State::kPromising, DeletionState()) ||
             is(State::kAskingCreation, DeletionState()) ||
             is(State::kAskingDeletion, DeletionState())) {
    OnDeletionState(std::get<DeletionState>(*message));
  } else if (is(State::kOpeningForRepair, RepairOpened())) {
    ring_key_ = std::get<RepairOpened>(*message).ring_key;
    state_ = State::kRepairOpened;
  } else if (is(State::kInstalling, Installed())) {
    StartSession();
  } else {
    Fail(absl::DataLossError(absl::StrCat(
        "sent ", *reply_bytes_,
        " bytes that are not a reply while this process waited for ",
        WhatIsWaitedFor(state_),
        ". It is another program, or another version of this one")));
  }
}

// Only a marked replica says so (P-D2).
void OpeningPeer::OnDeletionState(const DeletionState& state) {
  if (state.deletion == Deletion::kNone) {
    return Fail(absl::DataLossError(
        "says that it is not marked as deleted, where only a marked replica "
        "replies. It is another program, or another version of this one"));
  }
  deletion_ = state;
  if (options_.deletes) {
    state_ = State::kDeletionKnown;
    return;
  }
  Fail(DeletedError("refused", state.deletion));
}

void OpeningPeer::OnFailed(const absl::Status& why) {
  const bool is_at_the_door =
      state_ == State::kChallenging || state_ == State::kProving;
  Fail({why.code(), absl::StrCat("failed at ", WhatIsWaitedFor(state_), ": ",
                                 why.message())},
       /*may_try_again=*/is_at_the_door && MeansNoRoom(why));
}

// The report's bytes.

void OpeningPeer::StartReading(const Promised& promised) {
  promised_ = promised;
  ring_key_ = promised.ring_key;
  state_ = State::kReading;
  if (promised.report_bytes == 0 ||
      promised.report_bytes >
          StateReportBytesMax(server_hello_.ring_capacity)) {
    return Fail(absl::DataLossError(absl::StrCat(
        "has a state report of ", promised.report_bytes,
        " bytes, expected 1 to ",
        StateReportBytesMax(server_hello_.ring_capacity), " of a ring of ",
        server_hello_.ring_capacity, " bytes. Look at that replica")));
  }
  auto memory =
      replication::MessageSlots::Make(fabric_, 1, promised.report_bytes);
  if (!memory.ok()) return Fail(memory.status());
  report_bytes_ = *std::move(memory);
  report_asked_ = 0;
  report_in_flight_ = 0;
  ContinueReading();
}

void OpeningPeer::ContinueReading() {
  const fabric::LocalBytes all = report_bytes_->At(0);
  while (report_asked_ < all.bytes.size() &&
         report_in_flight_ < kReportPiecesMax && HasRoom()) {
    const uint64_t bytes = std::min<uint64_t>(all.bytes.size() - report_asked_,
                                              limits_.message_bytes_max);
    const absl::Status posted =
        fabric_.PostRead(connection_, kReportWork,
                         {all.key, all.bytes.subspan(report_asked_, bytes)},
                         {promised_.report_key, report_asked_});
    if (!posted.ok()) return BreakUnless(posted);
    ++posted_;
    ++report_in_flight_;
    report_asked_ += bytes;
  }
}

void OpeningPeer::OnReportPiece() {
  --report_in_flight_;
  ContinueReading();
  if (state_ == State::kReading && report_in_flight_ == 0) DecodeWhatWasRead();
}

void OpeningPeer::DecodeWhatWasRead() {
  auto report =
      DecodeStateReport(options_.hello.log_id, report_bytes_->At(0).bytes);
  report_bytes_.reset();
  if (absl::IsUnavailable(report.status())) return Break(report.status());
  if (!report.ok()) {
    return Fail(absl::DataLossError(absl::StrCat(
        "the ", promised_.report_bytes,
        " bytes read as its state report are not one. Look at that replica")));
  }
  if (const absl::Status good = CheckReport(*report); !good.ok()) {
    return Fail(good);
  }
  report_ = *std::move(report);
  state_ = State::kReported;
}

// OP1. The ballot is above the promises of R replicas, and a log's epoch is
// always the last in its table.
absl::Status OpeningPeer::CheckReport(const StateReport& report) const {
  if (report.node != node() ||
      report.incarnation != server_hello_.incarnation ||
      report.ring_capacity != server_hello_.ring_capacity) {
    return absl::DataLossError(absl::StrCat(
        "answers as node ", report.node.value, ", incarnation ",
        report.incarnation, ", with a ring of ", report.ring_capacity,
        " bytes; it greeted as node ", server_hello_.node.value,
        ", incarnation ", server_hello_.incarnation, ", with ",
        server_hello_.ring_capacity,
        ". The replica was replaced in between; open the log again"));
  }
  if (report.log_epoch >= ballot_ + (options_.joins ? 1 : 0)) {
    return absl::DataLossError(absl::StrCat(
        "answers with log epoch ", report.log_epoch.value, ", expected one ",
        options_.joins ? "up to" : "below", " epoch ", ballot_.value,
        " that it promised. Look at that replica"));
  }
  const std::vector<EpochEntry>& entries = report.table.entries();
  const Epoch last = entries.empty() ? Epoch() : entries.back().epoch;
  if (last == report.log_epoch) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "answers with an epoch table of ", entries.size(),
      " entries that ends with epoch ", last.value, ", expected its log epoch ",
      report.log_epoch.value, ". Look at that replica"));
}

// The ring.

bool OpeningPeer::MayBeRead() const {
  return !reads_suspended_ &&
         (state_ == State::kReported || state_ == State::kRepairOpened ||
          state_ == State::kInstalling || state_ == State::kInstalled);
}

bool OpeningPeer::HasRoom() const {
  return posted_ < std::max<uint32_t>(1, limits_.sends_max / 2);
}

void OpeningPeer::PostRead(WorkId work, fabric::LocalBytes into,
                           uint64_t place) {
  ++posted_;
  BreakUnless(fabric_.PostRead(connection_, work, into, {ring_key_, place}));
}

void OpeningPeer::PostWrite(WorkId work, fabric::LocalBytes from,
                            uint64_t place) {
  ++posted_;
  BreakUnless(fabric_.PostWrite(connection_, work, from, {ring_key_, place}));
}

// The session.

void OpeningPeer::StartSession() {
  const Installation& installed = install_.installation;
  auto session = replication::PrimarySession::Start(
      {own_ring_, own_ring_key_, ring_key_},
      {installed.epoch, install_.session, installed.end, install_.credits,
       server_hello_.platform, installed.head, installed.ceiling,
       options_.batch_bytes_max},
      fabric_, connection_);
  if (!session.ok()) return BreakUnless(session.status());
  session_ = *std::move(session);
  session_->ReadPromisesBy(
      [log_id = options_.hello.log_id](
          std::span<const std::byte> bytes) -> std::optional<quorum::Promise> {
        const absl::StatusOr<Message> message = DecodeMessage(log_id, bytes);
        if (!message.ok()) return std::nullopt;
        if (std::holds_alternative<Released>(*message))
          return quorum::Promise();
        const auto* const refused = std::get_if<Refused>(&*message);
        if (refused == nullptr) return std::nullopt;
        return refused->current;
      });
  state_ = State::kInstalled;
}

ConnectionId OpeningPeer::ReleaseConnection() {
  ALPHEUS_CHECK(state_ == State::kInstalled, "only what is installed goes on");
  return std::exchange(connection_, ConnectionId());
}

}  // namespace alpheus::recovery
