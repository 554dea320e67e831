// SPDX-License-Identifier: Apache-2.0
#include "recovery/server/connection_admission.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "quorum/members/peer_name.h"
#include "recovery/protocol/client_messages.h"
#include "recovery/protocol/reject_counters.h"

namespace alpheus::recovery {
namespace {

// A reader that follows asks every few milliseconds unless it is stopped.
constexpr int64_t kFollowerSilenceNanos = 2'000'000'000;

std::string HostOfPeer(const std::string& peer) {
  return peer.substr(0, peer.rfind(':'));
}

}  // namespace

// --- Requests to connect -----------------------------------------------------

absl::StatusOr<PeerConnection> ConnectionAdmission::Check(
    const fabric::ConnectionEvent& request) const {
  PeerConnection connection;
  connection.id = request.connection;
  connection.peer = request.peer;
  connection.heard_at = clock_.NowNanos();
  connection.accepted_at = connection.heard_at;
  // Rejections are cut to 44 bytes.
  if (IsClientHello(request.private_data)) {
    return Rejection(
        RejectReason::kOtherVersion,
        absl::UnimplementedError("this node offers clients no memory"));
  }
  const absl::StatusOr<Hello> hello = DecodeHello(request.private_data);
  if (!hello.ok()) {
    return Rejection(absl::IsUnimplemented(hello.status())
                         ? RejectReason::kOtherVersion
                         : RejectReason::kMalformed,
                     hello.status());
  }
  connection.hello = *hello;
  connection.peer_name = request.peer_name;
  if (connection.hello.cluster_id != options_.cluster_id) {
    return Rejection(
        RejectReason::kOtherCluster,
        absl::FailedPreconditionError("this node is of another cluster"));
  }
  const absl::Status named =
      quorum::CheckIsOfCluster(request.peer_name, options_.cluster_id);
  if (!named.ok()) return Rejection(RejectReason::kWrongKey, named);
  return connection;
}

void ConnectionAdmission::Reject(const fabric::ConnectionEvent& request,
                                 const absl::Status& why) {
  ++connections_.counters().rejected;
  // An error that is no refusal repeats until its cause is gone: not reported.
  if (ReasonOf(why).has_value()) {
    connections_.Warn(
        request.peer, why,
        absl::StrCat("the connection of ", request.peer, " is refused"));
  }
  // Ends the request, whether or not the peer is still there to hear why.
  const auto sum = ReasonOf(why) == RejectReason::kOtherVersion
                       ? RejectionSum::kNone
                       : RejectionSum::kSummed;
  const std::string said = IsClientHello(request.private_data)
                               ? EncodeClientRejection(why)
                               : EncodeRejection(why, sum);
  fabric_.Reject(request.connection, said).IgnoreError();
}

void ConnectionAdmission::Accept(PeerConnection connection,
                                 const ServerHello& server_hello) {
  const fabric::ConnectionId id = connection.id;
  connection.handshake.emplace(options_.credentials, connection.hello,
                               server_hello);
  if (PeerConnection* const oldest = OldestTooMany(); oldest != nullptr) {
    connections_.End(
        oldest->id,
        Rejection(RejectReason::kTooSlow,
                  absl::ResourceExhaustedError(
                      "it was closed to make room for others: it had "
                      "not proved the cluster key")));
  }
  ++connections_.counters().accepted;
  PeerConnection& kept =
      connections_.all().emplace(id, std::move(connection)).first->second;
  // New connections are never refused for want of room.
  if (kept.is_proved()) TakePlace(kept, Place::kNew).IgnoreError();
  const absl::Status accepted =
      fabric_.Accept(id, EncodeServerHello(server_hello));
  if (!accepted.ok()) connections_.End(id, accepted);
}

// --- Places ------------------------------------------------------------------

// A follower has looked at the region before.
ConnectionAdmission::Place ConnectionAdmission::PlaceFor(
    const Message& request) {
  if (std::holds_alternative<View>(request)) return Place::kViewing;
  if (std::holds_alternative<Follow>(request)) return Place::kFollowing;
  return Place::kAsking;
}

// A local primary has a place of its own, as connections with a promise have.
bool ConnectionAdmission::HasPlace(const PeerConnection& connection,
                                   Place place) const {
  return connection.is_proved() && !connection.is_promise_owner() &&
         !relay_.PromiseOfPrimary(connection).has_value() &&
         connection.place == place;
}

PeerConnection* ConnectionAdmission::LongestSilent(Place place,
                                                   const PeerConnection& but) {
  PeerConnection* silent = nullptr;
  for (auto& [id, connection] : connections_.all()) {
    if (id == but.id || !HasPlace(connection, place)) continue;
    if (silent == nullptr || connection.heard_at < silent->heard_at) {
      silent = &connection;
    }
  }
  return silent;
}

size_t ConnectionAdmission::PlacesOf(Place place) const {
  return place == Place::kFollowing ? options_.followers_max
                                    : options_.waiting_connections_max;
}

absl::Status ConnectionAdmission::TakePlace(PeerConnection& connection,
                                            Place place) {
  connection.place = place;
  const auto taken = static_cast<size_t>(
      std::ranges::count_if(connections_.all(), [&](const auto& entry) {
        return entry.first != connection.id && HasPlace(entry.second, place);
      }));
  if (taken < PlacesOf(place)) return absl::OkStatus();
  PeerConnection* const silent = LongestSilent(place, connection);
  // Followers that keep asking would push each other out forever.
  const bool may_push =
      silent != nullptr &&
      (place != Place::kFollowing ||
       clock_.NowNanos() - silent->heard_at >= kFollowerSilenceNanos);
  if (!may_push) {
    return Rejection(
        RejectReason::kNoRoom,
        absl::ResourceExhaustedError(absl::StrCat(
            "node ", options_.node.value, ": ", taken,
            " readers follow its logs, the most that may. End some, "
            "or raise --followers-max of its alpheusd")));
  }
  connections_.End(
      silent->id,
      Rejection(RejectReason::kNoRoom,
                absl::ResourceExhaustedError(absl::StrCat(
                    "it was closed to make room for others: of ", taken,
                    " waiting connections it was silent for longest; see "
                    "--waiting-max of alpheusd"))));
  return absl::OkStatus();
}

// Picks from the host that has most: a host that floods a node makes room
// itself.
PeerConnection* ConnectionAdmission::OldestTooMany() {
  std::map<std::string, size_t> by_host;
  size_t count = 0;
  for (const auto& [id, connection] : connections_.all()) {
    if (connection.is_proved()) continue;
    ++count;
    ++by_host[HostOfPeer(connection.peer)];
  }
  if (count < options_.unproved_connections_max) return nullptr;
  const auto most = std::ranges::max_element(
      by_host, {}, [](const auto& entry) { return entry.second; });
  PeerConnection* oldest = nullptr;
  for (auto& [id, connection] : connections_.all()) {
    if (connection.is_proved() || HostOfPeer(connection.peer) != most->first) {
      continue;
    }
    if (oldest == nullptr || connection.accepted_at < oldest->accepted_at) {
      oldest = &connection;
    }
  }
  return oldest;
}

// --- Time --------------------------------------------------------------------

int64_t ConnectionAdmission::DueAt(const PeerConnection& connection) const {
  return connection.is_proved()
             ? connection.heard_at + options_.silence_ns_max
             : connection.accepted_at + options_.proof_ns_max;
}

absl::Status ConnectionAdmission::WhyTooLate(
    const PeerConnection& connection) const {
  if (connection.is_proved()) {
    return absl::DeadlineExceededError(
        absl::StrCat("it asked for nothing for ",
                     options_.silence_ns_max / 1'000'000, " ms"));
  }
  return Rejection(RejectReason::kTooSlow,
                   absl::DeadlineExceededError(
                       absl::StrCat("it did not prove the cluster key within ",
                                    options_.proof_ns_max / 1'000'000, " ms")));
}

}  // namespace alpheus::recovery
