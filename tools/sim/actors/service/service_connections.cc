// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/service/service_connections.h"

#include <algorithm>
#include <utility>

#include "tools/sim/actors/primary_process.h"

namespace alpheus::sim {
namespace {

constexpr uint64_t kSoonNanos = 20'000;
// One message in this many comes late, and one of these very late: after its
// client has lost its patience.
constexpr uint64_t kLateOdds = 8;
constexpr uint64_t kLateNanos = 1'000'000;
constexpr uint64_t kVeryLateNanos = 20'000'000;

}  // namespace

ServiceConnections::ServiceConnections(World& world)
    : world_(world), random_(world.options().seed ^ 0x5e71ce) {}

int64_t ServiceConnections::DrawDelay() {
  uint64_t most = kSoonNanos;
  if (random_.Below(kLateOdds) == 0) {
    most = random_.Below(kLateOdds) == 0 ? kVeryLateNanos : kLateNanos;
  }
  return static_cast<int64_t>(random_.Below(most));
}

int64_t ServiceConnections::After(int64_t& last_ns) {
  last_ns = std::max(last_ns + 1, world_.now() + DrawDelay());
  return last_ns - world_.now();
}

PrimaryProcess* ServiceConnections::FindOpen(Random& random) const {
  std::vector<PrimaryProcess*> open;
  for (World::Machine& machine : world_.machines()) {
    PrimaryProcess* const primary = machine.primary.get();
    if (primary != nullptr && primary->is_open() && !primary->is_closing() &&
        primary->service() != nullptr) {
      open.push_back(primary);
    }
  }
  return open.empty() ? nullptr : open[random.Below(open.size())];
}

ServiceConnectionId ServiceConnections::Connect(const PrimaryProcess& primary) {
  const ServiceConnectionId id = connections_.size();
  connections_.push_back(
      {.machine = primary.machine(), .primary = primary.number()});
  by_primary_[primary.number()].push_back(id);
  return id;
}

void ServiceConnections::Route(ServiceConnectionId id) {
  Connection& one = connections_[id];
  const PrimaryProcess* const now =
      world_.machines()[static_cast<size_t>(one.machine)].primary.get();
  if (now == nullptr || now->number() == one.primary) return;
  one.primary = now->number();
  by_primary_[one.primary].push_back(id);
}

void ServiceConnections::Send(ServiceConnectionId connection,
                              ServiceMessage message) {
  const int64_t after = After(connections_[connection].last_arrival_ns);
  world_.network().Schedule(after,
                            [this, connection, message = std::move(message)] {
                              Connection& to = connections_[connection];
                              if (to.is_cut) return;
                              Route(connection);
                              to.arrived.push_back(message);
                              world_.threads().Wake(&by_primary_[to.primary]);
                            });
}

std::optional<ServiceAnswer> ServiceConnections::Receive(
    ServiceConnectionId connection) {
  std::deque<ServiceAnswer>& answers = connections_[connection].answers;
  if (answers.empty()) return std::nullopt;
  ServiceAnswer answer = std::move(answers.front());
  answers.pop_front();
  return answer;
}

void ServiceConnections::GiveUp(ServiceConnectionId connection) {
  connections_[connection].is_cut = random_.Below(2) == 0;
}

void ServiceConnections::Wait(ServiceConnectionId connection,
                              int64_t until_ns) {
  world_.threads().WaitFor(&connections_[connection],
                           Deadline::AtNanos(until_ns));
}

std::optional<ServiceConnections::Arrived> ServiceConnections::Take(
    PrimaryNumber primary) {
  std::vector<ServiceConnectionId> ready;
  for (const ServiceConnectionId id : by_primary_[primary]) {
    const Connection& one = connections_[id];
    if (one.primary != primary) continue;  // another one reads it now
    if (!one.is_read && !one.arrived.empty()) ready.push_back(id);
  }
  if (ready.empty()) return std::nullopt;
  const ServiceConnectionId id = ready[random_.Below(ready.size())];
  Connection& from = connections_[id];
  from.is_read = true;
  Arrived arrived{id, std::move(from.arrived.front())};
  from.arrived.pop_front();
  return arrived;
}

void ServiceConnections::Done(ServiceConnectionId connection) {
  connections_[connection].is_read = false;
}

void ServiceConnections::WaitAsPrimary(PrimaryNumber primary,
                                       int64_t until_ns) {
  world_.threads().WaitFor(&by_primary_[primary], Deadline::AtNanos(until_ns));
}

void ServiceConnections::Answer(ServiceConnectionId connection,
                                ServiceAnswer answer) {
  const int64_t after = After(connections_[connection].last_answer_ns);
  world_.network().Schedule(
      after, [this, connection, answer = std::move(answer)] {
        connections_[connection].answers.push_back(answer);
        world_.threads().Wake(&connections_[connection]);
      });
}

}  // namespace alpheus::sim
