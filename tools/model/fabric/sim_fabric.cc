// SPDX-License-Identifier: Apache-2.0
#include "tools/model/fabric/sim_fabric.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::model {

using fabric::ConnectionEvent;
using fabric::ConnectionId;

namespace {

struct Place {
  int host = 0;
  int port = 0;
};

std::optional<Place> ParseAddress(std::string_view address, int hosts) {
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(address.data(), address.size()), ':');
  Place place;
  if (words.size() != 3 || words[0] != "sim" ||
      !absl::SimpleAtoi(words[1], &place.host) ||
      !absl::SimpleAtoi(words[2], &place.port) || place.host < 0 ||
      place.host >= hosts || place.port < 0) {
    return std::nullopt;
  }
  return place;
}

absl::Status NoAddress(const char* call, std::string_view address) {
  return absl::InvalidArgumentError(
      absl::StrCat("simulated fabric: ", call, ": \"", std::string(address),
                   "\" is no address of a host here; write sim:<host>:<port>"));
}

absl::Status NoConnection(const char* call, ConnectionId connection) {
  return absl::NotFoundError(absl::StrCat("simulated fabric: ", call,
                                          ": there is no connection ",
                                          connection.value));
}

absl::Status CheckPrivateData(const char* call, std::string_view data,
                              uint32_t bytes_max) {
  if (data.size() <= bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("simulated fabric: ", call, ": ", data.size(),
                   " bytes of private data, at most ", bytes_max));
}

}  // namespace

SimFabric::SimFabric(SimNetwork& network, int host, uint64_t incarnation,
                     RandomSource& keys, replication::Transport transport,
                     StagedMemory& stages)
    : network_(network),
      host_(host),
      incarnation_(incarnation),
      stages_(stages),
      regions_(keys),
      requester_(*this, network, regions_),
      responder_(*this, network, host, regions_, transport, stages),
      staging_(*this, network, host, stages) {
  if (stages_.move_count() > 0) staging_.ScheduleMoves();
}

fabric::Fabric::Limits SimFabric::limits() const {
  return network_.options().limits;
}

absl::StatusOr<fabric::RegionKey> SimFabric::Register(
    std::span<std::byte> bytes, fabric::RemoteAccess access) {
  return regions_.Register(bytes, access);
}

absl::Status SimFabric::Deregister(fabric::RegionKey key) {
  ALPHEUS_RETURN_IF_ERROR(regions_.Deregister(key));
  stages_.EndRegion(key.value);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SimFabric::Listen(std::string_view address) {
  auto place = ParseAddress(address, network_.options().hosts);
  if (!place.has_value() || place->host != host_) {
    return NoAddress("listen", address);
  }
  if (place->port == 0) {
    place->port = ports_.empty() ? 1 : *ports_.rbegin() + 1;
  }
  if (!ports_.insert(place->port).second) {
    return absl::AlreadyExistsError(
        absl::StrCat("simulated fabric: listen: ", std::string(address),
                     " is in use; take another port, or 0"));
  }
  return SimNetwork::Address(host_, place->port);
}

absl::StatusOr<ConnectionId> SimFabric::Connect(std::string_view address,
                                                std::string_view private_data,
                                                Deadline deadline) {
  const auto place = ParseAddress(address, network_.options().hosts);
  if (!place.has_value()) return NoAddress("connect", address);
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData("connect", private_data, limits().private_bytes_max));
  QueuePair& pair = NewQueuePair(QueuePairState::kConnecting);
  pair.peer.host = place->host;  // incarnation 0: any that is up
  ToPeer(pair, "request to connect", /*beside=*/false,
         [port = place->port, from = AddressOf(pair),
          data = std::string(private_data)](SimFabric& peer) {
           peer.OnConnectRequest(port, from, data);
         });
  const int64_t now = network_.clock().NowNanos();
  const int64_t wait = deadline.is_set()
                           ? std::max<int64_t>(0, deadline.at_nanos() - now)
                           : limits().retry_ns;
  After(wait, [id = pair.id, is_set = deadline.is_set()](SimFabric& self) {
    const QueuePair* waiting = self.Find(id);
    if (waiting == nullptr || (waiting->peer_heard && !is_set)) return;
    self.AbandonConnecting(id);
  });
  return pair.id;
}

void SimFabric::OnConnectRequest(int port, const QueuePairAddress& from,
                                 const std::string& private_data) {
  QueuePair& pair = NewQueuePair(QueuePairState::kRequested);
  pair.peer = from;
  if (!ports_.contains(port)) {
    ToPeer(pair, "nobody listens", /*beside=*/false,
           [id = from.connection](SimFabric& peer) {
             peer.OnRefused(id, ConnectionEvent::Kind::kUnreachable, "");
           });
    pairs_.erase(ConnectionId(pair.id));
    return;
  }
  ToPeer(pair, "request is being looked at", /*beside=*/false,
         [id = from.connection](SimFabric& peer) {
           if (QueuePair* waiting = peer.Find(id)) waiting->peer_heard = true;
         });
  Event(ConnectionEvent::Kind::kRequested, pair, private_data);
}

absl::StatusOr<QueuePair*> SimFabric::FindRequest(ConnectionId connection,
                                                  std::string_view private_data,
                                                  const char* call) {
  QueuePair* pair = FindOpen(connection);
  if (pair == nullptr || pair->state != QueuePairState::kRequested) {
    return absl::NotFoundError(absl::StrCat(
        "simulated fabric: ", call, ": connection ", connection.value,
        " is no request that waits for an answer"));
  }
  ALPHEUS_RETURN_IF_ERROR(
      CheckPrivateData(call, private_data, limits().private_bytes_max));
  return pair;
}

absl::Status SimFabric::Accept(ConnectionId connection,
                               std::string_view private_data) {
  ALPHEUS_ASSIGN_OR_RETURN(QueuePair * pair,
                           FindRequest(connection, private_data, "accept"));
  pair->state = QueuePairState::kAccepted;
  ToPeer(*pair, "accept", /*beside=*/false,
         [id = pair->peer.connection, from = AddressOf(*pair),
          data = std::string(private_data)](SimFabric& peer) {
           peer.OnAccepted(id, from, data);
         });
  // A peer that never confirms must not keep this end waiting forever.
  After(limits().retry_ns, [connection](SimFabric& self) {
    QueuePair* waiting = self.Find(connection);
    if (waiting != nullptr && waiting->state == QueuePairState::kAccepted) {
      self.BreakPair(*waiting, Break::kNotifyPeer);
    }
  });
  return absl::OkStatus();
}

absl::Status SimFabric::Reject(ConnectionId connection,
                               std::string_view private_data) {
  const absl::Status fits =
      CheckPrivateData("reject", private_data, limits().private_bytes_max);
  if (!fits.ok()) private_data = "";
  QueuePair* pair = FindOpen(connection);
  if (pair != nullptr && pair->state == QueuePairState::kBroken) {
    ALPHEUS_RETURN_IF_ERROR(Close(connection));  // the peer is gone
    return fits;
  }
  ALPHEUS_ASSIGN_OR_RETURN(pair,
                           FindRequest(connection, private_data, "reject"));
  ToPeer(*pair, "reject", /*beside=*/false,
         [id = pair->peer.connection,
          data = std::string(private_data)](SimFabric& peer) {
           peer.OnRefused(id, ConnectionEvent::Kind::kRejected, data);
         });
  Flush(*pair);
  pairs_.erase(connection);
  return fits;
}

void SimFabric::OnAccepted(ConnectionId connection,
                           const QueuePairAddress& peer,
                           const std::string& private_data) {
  QueuePair* pair = Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kConnecting) {
    QueuePair gone;
    gone.id = connection;
    gone.peer = peer;
    NotifyPeerOfEnd(gone);
    return;
  }
  pair->peer = peer;
  pair->state = QueuePairState::kEstablished;
  Event(ConnectionEvent::Kind::kEstablished, *pair, private_data);
  ToPeer(*pair, "confirm", /*beside=*/false,
         [id = peer.connection](SimFabric& acceptor) {
           acceptor.OnConfirmed(id);
         });
}

void SimFabric::OnConfirmed(ConnectionId connection) {
  QueuePair* pair = Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kAccepted) return;
  pair->state = QueuePairState::kEstablished;
  Event(ConnectionEvent::Kind::kEstablished, *pair);
}

void SimFabric::OnRefused(ConnectionId connection, ConnectionEvent::Kind kind,
                          const std::string& private_data) {
  QueuePair* pair = Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kConnecting) return;
  pair->state = QueuePairState::kBroken;
  Flush(*pair);
  Event(kind, *pair, private_data);
}

void SimFabric::AbandonConnecting(ConnectionId connection) {
  QueuePair* pair = Find(connection);
  if (pair == nullptr || pair->state != QueuePairState::kConnecting) return;
  NotifyPeerOfEnd(*pair);
  OnRefused(connection, ConnectionEvent::Kind::kUnreachable, "");
}

absl::Status SimFabric::Close(ConnectionId connection) {
  QueuePair* pair = FindOpen(connection);
  if (pair == nullptr) return NoConnection("close", connection);
  if (pair->state == QueuePairState::kRequested) {
    return Reject(connection, "");
  }
  Trace(*pair, "close");
  if (pair->state != QueuePairState::kBroken) NotifyPeerOfEnd(*pair);
  Flush(*pair);
  std::erase_if(events_, [&](const ConnectionEvent& event) {
    return event.connection == connection;
  });
  pairs_.erase(connection);
  stages_.EndChannel(connection.value);
  return absl::OkStatus();
}

void SimFabric::CloseAll() {
  std::vector<ConnectionId> open;
  for (const auto& [id, pair] : pairs_) {
    if (!pair.closed) open.push_back(id);
  }
  for (const ConnectionId id : open) Close(id).IgnoreError();
}

// While connecting it keeps the order of other messages, so that it finds what
// the request made. Later it has no order, so that it may overtake writes.
void SimFabric::NotifyPeerOfEnd(const QueuePair& pair) {
  const bool beside = pair.state != QueuePairState::kConnecting;
  ToPeer(pair, "end of the connection", beside,
         [from = AddressOf(pair)](SimFabric& peer) { peer.OnPeerBroke(from); });
}

void SimFabric::OnPeerBroke(const QueuePairAddress& peer) {
  QueuePair* pair = FindPeersOf(peer);
  if (pair != nullptr) BreakPair(*pair, Break::kSilent);
}

void SimFabric::BreakPair(QueuePair& pair, Break news) {
  if (pair.state == QueuePairState::kBroken) return;
  if (news == Break::kNotifyPeer) NotifyPeerOfEnd(pair);
  pair.state = QueuePairState::kBroken;
  pair.late_parts_left =
      network_.random_.Below(network_.options().late_parts_max + 1);
  stages_.Abandon(pair.id.value, network_.random_);
  Flush(pair);
  Event(ConnectionEvent::Kind::kDisconnected, pair);
}

void SimFabric::Flush(QueuePair& pair) {
  for (const fabric::WorkRequest& send : pair.sends) {
    Complete(pair, {.connection = pair.id,
                    .work = send.work,
                    .operation = send.operation,
                    .status = fabric::CompletionStatus::kFlushed});
  }
  pair.sends.clear();
  for (const ReceiveWork& receive : pair.receives) {
    Complete(pair, {.connection = pair.id,
                    .work = receive.work,
                    .operation = fabric::Operation::kReceive,
                    .status = fabric::CompletionStatus::kFlushed});
  }
  pair.receives.clear();
}

absl::Status SimFabric::Post(ConnectionId connection,
                             const fabric::WorkRequest& request) {
  return requester_.Post(connection, request);
}

absl::Status SimFabric::PostReceive(ConnectionId connection,
                                    fabric::WorkId work,
                                    fabric::LocalBytes into) {
  return responder_.PostReceive(connection, work, into);
}

size_t SimFabric::Poll(std::span<fabric::Completion> completions,
                       std::vector<ConnectionEvent>* events) {
  const size_t count = std::min(completions.size(), completions_.size());
  const auto end = completions_.begin() + static_cast<ptrdiff_t>(count);
  std::copy(completions_.begin(), end, completions.begin());
  completions_.erase(completions_.begin(), end);
  if (events != nullptr) {
    events->insert(events->end(), events_.begin(), events_.end());
    events_.clear();
  }
  return count;
}

void SimFabric::WaitForActivity(Deadline /*deadline*/) {
  ALPHEUS_CHECK(false, "nobody waits in virtual time (fabric.h)");
}

QueuePair* SimFabric::Find(ConnectionId connection) {
  const auto found = pairs_.find(connection);
  return found == pairs_.end() ? nullptr : &found->second;
}

QueuePair* SimFabric::FindOpen(ConnectionId connection) {
  QueuePair* pair = Find(connection);
  return pair == nullptr || pair->closed ? nullptr : pair;
}

QueuePair* SimFabric::FindPeersOf(const QueuePairAddress& peer) {
  for (auto& [id, pair] : pairs_) {
    if (pair.peer == peer) return &pair;
  }
  return nullptr;
}

QueuePairAddress SimFabric::AddressOf(const QueuePair& pair) const {
  return {host_, incarnation_, pair.id};
}

QueuePair& SimFabric::NewQueuePair(QueuePairState state) {
  const ConnectionId id(network_.next_connection_++);
  QueuePair& pair = pairs_[id];
  pair.id = id;
  pair.state = state;
  return pair;
}

void SimFabric::Event(ConnectionEvent::Kind kind, const QueuePair& pair,
                      const std::string& private_data) {
  static constexpr const char* kNames[] = {
      "requested", "established", "rejected", "unreachable", "disconnected"};
  Trace(pair, kNames[static_cast<int>(kind)]);
  std::string came = private_data;
  network_.MayFlip(host_, pair.peer.host, SimNetwork::Flips::kSend,
                   std::as_writable_bytes(std::span(came)));
  events_.push_back({.kind = kind,
                     .connection = pair.id,
                     .private_data = std::move(came),
                     .peer = SimNetwork::Address(pair.peer.host, 0)});
  network_.NoteActivity(host_);
}

void SimFabric::Complete(const QueuePair& pair, fabric::Completion completion) {
  if (completion.status != fabric::CompletionStatus::kFlushed &&
      completions_.size() >= network_.hosts_[host_].completions_max) {
    Overrun();
  }
  if (has_overrun_) {
    completion = {.connection = completion.connection,
                  .work = completion.work,
                  .operation = completion.operation,
                  .status = fabric::CompletionStatus::kFlushed};
  }
  Trace(pair, absl::StrCat(fabric::OperationName(completion.operation), " ",
                           completion.work.value, ": ",
                           fabric::CompletionStatusName(completion.status)));
  completions_.push_back(completion);
  network_.NoteActivity(host_);
}

// Loses this completion and all others until the connections break. They must
// not break while the program looks at one of them (FB9).
void SimFabric::Overrun() {
  if (has_overrun_) return;
  has_overrun_ = true;
  ++network_.hosts_[host_].overruns;
  network_.Trace(host_, ConnectionId(), "completion queue overrun");
  After(0, [](SimFabric& self) { self.BreakAll(); });
}

void SimFabric::BreakAll() {
  std::vector<ConnectionId> ids;
  for (const auto& [id, pair] : pairs_) ids.push_back(id);
  for (const ConnectionId id : ids) {
    QueuePair& pair = *Find(id);
    if (pair.state == QueuePairState::kConnecting) {
      AbandonConnecting(id);
    } else if (pair.state != QueuePairState::kRequested) {
      BreakPair(pair, Break::kNotifyPeer);
    }
  }
  has_overrun_ = false;
}

void SimFabric::ToPeer(const QueuePair& pair, const char* name, bool beside,
                       std::function<void(SimFabric&)> deliver) {
  network_.Send({AddressOf(pair), pair.peer.host, beside},
                {pair.peer.incarnation, name, std::move(deliver)});
}

void SimFabric::After(int64_t ns, std::function<void(SimFabric&)> happen) {
  network_.ScheduleAt(host_, incarnation_, ns, std::move(happen));
}

void SimFabric::Trace(const QueuePair& pair, std::string_view what) {
  network_.Trace(host_, pair.id, what);
}

}  // namespace alpheus::model
