// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/service/service_reader.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "log/base/ids.h"
#include "tools/sim/actors/primary_process.h"
#include "tools/sim/actors/service/service_clients.h"
#include "tools/sim/actors/service/service_connections.h"
#include "tools/sim/checkers/checkers.h"

namespace alpheus::sim {

using service::Consistency;

namespace {

constexpr int64_t kReaderPatienceNanos = 10'000'000;
// One read in this many asks for what the process has.
constexpr uint64_t kLocalOdds = 4;

}  // namespace

ServiceReader::ServiceReader(World& world, ServiceClients& all, uint64_t number)
    : world_(world),
      all_(all),
      random_(world.options().seed ^ (0x4ead47 + number)) {
  world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
}

void ServiceReader::Run() {
  for (;;) {
    const auto ns = static_cast<int64_t>(random_.Below(
        static_cast<uint64_t>(world_.options().think_ns_max) + 1));
    world_.threads().SleepUntil(world_.now() + ns);
    if (!all_.is_resting()) Read();
  }
}

void ServiceReader::Read() {
  ServiceConnections& connections = all_.connections();
  const PrimaryProcess* const primary = connections.FindOpen(random_);
  if (primary == nullptr) return;
  const PrimaryNumber number = primary->number();
  if (connection_ && connection_->primary != number) {
    connections.GiveUp(connection_->id);
    connection_.reset();
  }
  if (!connection_) connection_ = {connections.Connect(*primary), number};
  const ServiceConnectionId connection = connection_->id;
  const Consistency consistency = random_.Below(kLocalOdds) == 0
                                      ? Consistency::kLocal
                                      : Consistency::kLinearizable;
  const Lsn known = world_.history().chosen_end() - 1;
  connections.Send(connection, {.kind = ServiceMessage::Kind::kRead,
                                .consistency = consistency});
  const int64_t until = world_.now() + kReaderPatienceNanos;
  std::optional<ServiceAnswer> answer;
  while (!(answer = connections.Receive(connection)) && world_.now() < until) {
    connections.Wait(connection, until);
  }
  if (!answer || answer->is_unknown) {
    connections.GiveUp(connection);
    connection_.reset();
    return;
  }
  World::Counters& counters = world_.counters();
  if (consistency == Consistency::kLocal) {
    ++counters.service_local_reads;
    counters.service_old_reads += answer->through < known ? 1 : 0;
    return;
  }
  ++counters.service_reads;
  world_.checkers().service.HasRead(answer->epoch, known, answer->through);
  world_.Trace(absl::StrCat("a read of primary ", number, " shows LSN ",
                            answer->through.value, ", known was ",
                            known.value));
}

}  // namespace alpheus::sim
