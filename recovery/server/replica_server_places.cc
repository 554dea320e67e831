// SPDX-License-Identifier: Apache-2.0
// Places: the number of connections without a promise that a node keeps, and
// which one makes room (RS4).
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "recovery/server/replica_server.h"

namespace alpheus {
namespace {

// A reader that follows asks every few milliseconds unless it is stopped.
constexpr int64_t kFollowerSilenceNanos = 2'000'000'000;

std::string HostOfPeer(const std::string& peer) {
  return peer.substr(0, peer.rfind(':'));
}

}  // namespace

// A local primary has a place of its own, as connections with a promise have.
bool ReplicaServer::HasPlace(const Connection& connection, Place place) const {
  const auto held = holders_.find(connection.hello.log_id);
  const bool holds =
      held != holders_.end() && held->second.connection == connection.id;
  return connection.is_proved() && !connection.is_holder() && !holds &&
         connection.place == place;
}

// Returns the one of that kind that was silent longest, or nullptr.
ReplicaServer::Connection* ReplicaServer::LongestSilent(Place place,
                                                        const Connection& but) {
  Connection* silent = nullptr;
  for (auto& [id, connection] : connections_) {
    if (id == but.id || !HasPlace(connection, place)) continue;
    if (silent == nullptr || connection.heard_at < silent->heard_at) {
      silent = &connection;
    }
  }
  return silent;
}

size_t ReplicaServer::PlacesOf(Place place) const {
  return place == Place::kFollowing ? options_.followers_max
                                    : options_.waiting_connections_max;
}

absl::Status ReplicaServer::TakePlace(Connection& connection, Place place) {
  connection.place = place;
  const auto taken = static_cast<size_t>(
      std::ranges::count_if(connections_, [&](const auto& entry) {
        return entry.first != connection.id && HasPlace(entry.second, place);
      }));
  if (taken < PlacesOf(place)) return absl::OkStatus();
  Connection* const silent = LongestSilent(place, connection);
  // Followers that keep asking would push each other out forever.
  const bool may_push =
      silent != nullptr &&
      (place != Place::kFollowing ||
       clock_.NowNanos() - silent->heard_at >= kFollowerSilenceNanos);
  if (!may_push) {
    return Refuse(
        Refusal::kNoRoom,
        absl::ResourceExhaustedError(absl::StrCat(
            "node ", options_.node.value, ": ", taken,
            " readers follow its logs, as many as may. End some, or give its "
            "alpheusd more by --followers-max")));
  }
  End(silent->id,
      Refuse(Refusal::kNoRoom,
             absl::ResourceExhaustedError(absl::StrCat(
                 "others came, and of ", taken,
                 " it had asked for nothing for longest; see --waiting-max of "
                 "alpheusd"))));
  return absl::OkStatus();
}

// Picks from the host that has most: a host that floods a node makes room
// itself.
ReplicaServer::Connection* ReplicaServer::OldestTooMany() {
  std::map<std::string, size_t> by_host;
  size_t count = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection.is_proved()) continue;
    ++count;
    ++by_host[HostOfPeer(connection.peer)];
  }
  if (count < options_.unproved_connections_max) return nullptr;
  const auto most = std::ranges::max_element(
      by_host, {}, [](const auto& entry) { return entry.second; });
  Connection* oldest = nullptr;
  for (auto& [id, connection] : connections_) {
    if (connection.is_proved() || HostOfPeer(connection.peer) != most->first) {
      continue;
    }
    if (oldest == nullptr || connection.accepted_at < oldest->accepted_at) {
      oldest = &connection;
    }
  }
  return oldest;
}

void ReplicaServer::NoteRefused(const std::string& peer,
                                const absl::Status& why) {
  Tell(peer, why, absl::StrCat("the connection of ", peer, " is refused"));
}

}  // namespace alpheus
