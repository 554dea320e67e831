// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/client_faults.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/sim/actors/primary_process.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kReserveNanosMax = 1'000'000;
// Time until it is checked again whether a record is still kept.
constexpr int64_t kKeptCheckNanos = 100'000;

PrimaryProcess* WithClients(World& world, const Fault& fault) {
  World::Machine* const found =
      world.FindMachine(fault.machine, [](const World::Machine& machine) {
        return machine.primary != nullptr && machine.primary->is_open() &&
               !machine.primary->is_closing();
      });
  return found == nullptr ? nullptr : found->primary.get();
}

// A thread of the primary's own reserves a record, keeps it, and aborts or
// completes it in the end, as the handle of the API does at last (P-F1).
void KeepReservation(PrimaryProcess& primary, const Fault& fault) {
  World& world = primary.world();
  History& history = world.history();
  const size_t bytes =
      kPayloadBytesMin +
      fault.other % (world.options().payload_bytes_max - kPayloadBytesMin + 1);
  const BegunCall reserve = primary.Begin(
      ClientCall::kReserve,
      Deadline::AtNanos(primary.clock().NowNanos() + kReserveNanosMax));
  absl::StatusOr<ReservedRecord> record =
      primary.log().Reserve(bytes, reserve.deadline);
  const Lsn lsn = record.ok() ? record->lsn : Lsn(0);
  if (!primary.Returned(reserve, lsn, record.status())) return;
  world.Count(fault.kind);
  const OperationId operation = history.Begin(primary.number(), bytes);
  history.HasLsn(operation, lsn);

  const int64_t until = world.now() + fault.lasts_ns;
  primary.profiles().KeepUntil(until);
  while (world.now() < until && primary.profiles().keeps_at(world.now()) &&
         !primary.is_closing()) {
    world.threads().SleepUntil(std::min(until, world.now() + kKeptCheckNanos));
  }
  if (fault.other % 2 == 0) {
    history.MayBeAborted(operation);
    primary.log().Abort(*record);
    return;
  }
  std::vector<std::byte> payload(record->payload_bytes);
  FillPayload(operation, payload);
  std::ranges::copy(payload, record->payload);
  record->filled_in_place = true;
  history.MayBeCompleted(operation);
  const BegunCall complete = primary.Begin(ClientCall::kComplete);
  primary.Returned(complete, lsn, primary.log().Complete(*record));
}

}  // namespace

bool InjectIntoClients(World& world, const Fault& fault) {
  PrimaryProcess* const primary = WithClients(world, fault);
  if (primary == nullptr) return false;
  if (fault.kind == FaultKind::kFullRing) {
    primary->profiles().FillUntil(world.now() + 2 * fault.lasts_ns, [&world] {
      world.Count(FaultKind::kFullRing);
    });
  } else {
    primary->StartClient(
        [primary, fault] { KeepReservation(*primary, fault); });
  }
  return false;
}

void CalmClients(World& world) {
  for (World::Machine& machine : world.machines()) {
    if (machine.primary != nullptr) machine.primary->profiles().Calm();
  }
}

}  // namespace alpheus::sim
