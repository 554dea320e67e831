// SPDX-License-Identifier: Apache-2.0
// The public client of a process's memory, on an adapter of its own.
#include "alpheus/remote_memory.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "api/remote/memory_client.h"
#include "api/remote/remote_adapter.h"
#include "api/wiring/fabric_pump.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"

namespace alpheus {

struct RemoteMemory::Impl {
  EntropyRandom random;
  std::unique_ptr<fabric::Fabric> fabric;
  std::optional<FabricPump> pump;
  std::unique_ptr<remote::MemoryClient> client;

  // Takes what has arrived.
  Polled Turn() {
    while (pump->Turn(*client)) {
    }
    return client->Poll();
  }
};

RemoteMemory::RemoteMemory(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
RemoteMemory::~RemoteMemory() = default;

absl::StatusOr<std::unique_ptr<RemoteMemory>> RemoteMemory::Open(
    const RemoteMemoryOptions& options) {
  auto impl = std::make_unique<Impl>();
  ALPHEUS_ASSIGN_OR_RETURN(const Uuid cluster_id,
                           remote::ParseClusterId(options.cluster_id));
  ALPHEUS_ASSIGN_OR_RETURN(impl->fabric,
                           remote::OpenRemoteAdapter(cluster_id, impl->random));
  impl->pump.emplace(*impl->fabric);
  ALPHEUS_ASSIGN_OR_RETURN(
      impl->client,
      remote::MemoryClient::Connect(
          *impl->fabric, Clock::Real(), impl->random, options.address,
          {.cluster_id = cluster_id,
           .log = options.log,
           .token = options.token,
           .read = options.read,
           .updated = options.updated,
           .in_flight_max = options.in_flight_max,
           .operation_bytes_max = options.operation_bytes_max,
           .open_ns_max = options.open_timeout_ms * kNanosPerMs,
           .operation_ns_max = options.operation_timeout_ms * kNanosPerMs}));
  while (!impl->client->is_open()) {
    if (impl->Turn() == Polled::kDone) return impl->client->status();
    if (!impl->client->is_open()) impl->pump->Sleep(impl->client->NextPoll());
  }
  return std::unique_ptr<RemoteMemory>(new RemoteMemory(std::move(impl)));
}

uint64_t RemoteMemory::region_bytes(size_t region) const {
  return impl_->client->region_bytes(region);
}

absl::Status RemoteMemory::Read(size_t region, uint64_t offset,
                                std::span<std::byte> into, Done done) {
  return impl_->client->Read(region, offset, into, std::move(done));
}

absl::Status RemoteMemory::CompareAndSwap(uint64_t offset, uint64_t expected,
                                          uint64_t desired, Swapped done) {
  return impl_->client->CompareAndSwap(offset, expected, desired,
                                       std::move(done));
}

absl::Status RemoteMemory::Update(uint64_t offset,
                                  std::span<const std::byte> bytes, Done done) {
  return impl_->client->Update(offset, bytes, std::move(done));
}

absl::Status RemoteMemory::Persist(uint64_t offset, uint64_t bytes, Done done) {
  return impl_->client->Persist(offset, bytes, std::move(done));
}

size_t RemoteMemory::Poll() {
  impl_->Turn();
  return impl_->client->in_flight();
}

absl::Status RemoteMemory::Wait(Deadline deadline) {
  for (;;) {
    const Polled polled = impl_->Turn();
    if (polled == Polled::kDone) return impl_->client->status();
    if (impl_->client->in_flight() == 0) return absl::OkStatus();
    if (deadline.HasPassed(Clock::Real().NowNanos())) {
      return absl::DeadlineExceededError(absl::StrCat(
          impl_->client->in_flight(),
          " operations are still in flight. They go on; wait again"));
    }
    const Deadline next = impl_->client->NextPoll();
    impl_->pump->Sleep(next.at_nanos() < deadline.at_nanos() ? next : deadline);
  }
}

RemoteMemory::Counts RemoteMemory::counts() const {
  const remote::MemoryClientCounters& counters = impl_->client->counters();
  return {.messages = counters.messages,
          .acks = counters.acks,
          .bytes_sent = counters.bytes_sent,
          .bytes_received = counters.bytes_received,
          .round_trips = counters.round_trips};
}

}  // namespace alpheus
