// SPDX-License-Identifier: Apache-2.0
// The public server of memory, on an adapter and a thread of its own.
#include <atomic>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "alpheus/remote_memory.h"
#include "api/grpc/access/access.h"
#include "api/grpc/access/token_file.h"
#include "api/log/persistent_region_impl.h"
#include "api/remote/memory_server.h"
#include "api/remote/remote_adapter.h"
#include "api/remote/updated_memory.h"
#include "api/wiring/background_thread.h"
#include "api/wiring/fabric_pump.h"
#include "api/wiring/listen_address.h"
#include "log/base/clock.h"
#include "log/base/mutex.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/base/wall_clock.h"
#include "quorum/members/log_id.h"
#include "replication/persist/platform/platform.h"

namespace alpheus {
namespace {

absl::StatusOr<rpc::Roles> RolesOf(const std::vector<std::string>& names) {
  rpc::Roles roles;
  for (const std::string& name : names) {
    ALPHEUS_ASSIGN_OR_RETURN(const rpc::Role role, rpc::ParseRole(name));
    roles = roles | role;
  }
  if (roles == rpc::Roles()) {
    return absl::InvalidArgumentError(
        "a region is offered to one role at least: append, read or admin");
  }
  return roles;
}

uint64_t NewIncarnation(RandomSource& random) {
  uint64_t incarnation = 0;
  while (incarnation == 0) incarnation = random.Next();
  return incarnation;
}

// Gives what came to the server, and refuses what is not for it.
struct OffersSink {
  fabric::Fabric& fabric;
  remote::MemoryServer& server;

  void OnConnectionEvent(const fabric::ConnectionEvent& event) {
    if (!server.OnConnectionEvent(event)) {
      remote::RejectUnserved(fabric, event);
    }
  }
  void OnCompletion(const fabric::Completion& completion) {
    server.OnCompletion(completion);
  }
};

}  // namespace

struct MemoryOffers::Impl {
  EntropyRandom random;
  std::string tokens_file;
  std::string address;
  std::unique_ptr<fabric::Fabric> fabric;
  Mutex mutex;
  std::optional<rpc::Access> access ABSL_GUARDED_BY(mutex);
  std::unique_ptr<remote::MemoryServer> server ABSL_GUARDED_BY(mutex);
  std::atomic<bool> is_over = false;
  BackgroundThread thread;

  ~Impl() {
    is_over.store(true, std::memory_order_release);
    if (fabric != nullptr) fabric->Wake();
    thread.Join();
    const MutexLock lock(mutex);
    server.reset();
  }

  // Serves until is_over.
  void Run() {
    FabricPump pump(*fabric);
    while (!is_over.load(std::memory_order_acquire)) {
      Deadline next;
      {
        const MutexLock lock(mutex);
        OffersSink sink{*fabric, *server};
        while (pump.Turn(sink)) {
        }
        server->Poll();
        next = server->NextPoll();
      }
      pump.Sleep(next);
    }
  }
};

MemoryOffers::MemoryOffers(std::unique_ptr<Impl> impl)
    : impl_(std::move(impl)) {}
MemoryOffers::~MemoryOffers() = default;

absl::StatusOr<std::unique_ptr<MemoryOffers>> MemoryOffers::Serve(
    const MemoryOffersOptions& options) {
  auto impl = std::make_unique<Impl>();
  ALPHEUS_ASSIGN_OR_RETURN(const Uuid cluster_id,
                           remote::ParseClusterId(options.cluster_id));
  ALPHEUS_RETURN_IF_ERROR(quorum::CheckLogName(options.log));
  impl->tokens_file = options.tokens_file;
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<rpc::TokenEntry> tokens,
                           rpc::LoadTokenFile(options.tokens_file));
  ALPHEUS_ASSIGN_OR_RETURN(const ListenAddress listen,
                           ResolveListenAddress(options.address));
  ALPHEUS_ASSIGN_OR_RETURN(impl->fabric,
                           remote::OpenRemoteAdapter(cluster_id, impl->random));
  {
    const MutexLock lock(impl->mutex);
    impl->access.emplace(std::move(tokens), WallClock::Real());
    impl->server = std::make_unique<remote::MemoryServer>(
        *impl->fabric, Clock::Real(), *impl->access, impl->random,
        remote::MemoryServerOptions{.cluster_id = cluster_id,
                                    .log = options.log,
                                    .node = NodeId(options.node),
                                    .incarnation = NewIncarnation(impl->random),
                                    .connections_max = options.clients_max,
                                    .warn = options.warn});
  }
  ALPHEUS_ASSIGN_OR_RETURN(impl->address, impl->fabric->Listen(listen.text));
  Impl* const self = impl.get();
  ALPHEUS_RETURN_IF_ERROR(impl->thread.Start([self] { self->Run(); }));
  return std::unique_ptr<MemoryOffers>(new MemoryOffers(std::move(impl)));
}

const std::string& MemoryOffers::address() const { return impl_->address; }

absl::Status MemoryOffers::OfferToRead(const std::string& name,
                                       std::span<const std::byte> bytes,
                                       const std::vector<std::string>& roles) {
  ALPHEUS_ASSIGN_OR_RETURN(const rpc::Roles readers, RolesOf(roles));
  const MutexLock lock(impl_->mutex);
  return impl_->server->Offer(
      {.name = name, .bytes = bytes, .readers = readers});
}

absl::Status MemoryOffers::OfferToUpdate(const std::string& name,
                                         PersistentRegion& region,
                                         const std::vector<std::string>& roles,
                                         const std::string& platform) {
  ALPHEUS_ASSIGN_OR_RETURN(const rpc::Roles updaters, RolesOf(roles));
  ALPHEUS_ASSIGN_OR_RETURN(replication::Platform declared,
                           replication::ParsePlatform(platform));
  PersistentRegion::Impl& memory = PersistentRegion::Impl::Of(region);
  // Pages of a file are persisted by a system call alone.
  if (memory.is_file()) {
    declared = replication::WithoutPersistentMemory(declared);
  }
  auto updated = memory.WithBackend(
      [&](auto& pmem) -> std::unique_ptr<remote::UpdatedMemory> {
        return std::make_unique<
            remote::UpdatedMemoryOf<std::remove_reference_t<decltype(pmem)>>>(
            pmem, memory.bytes());
      });
  const MutexLock lock(impl_->mutex);
  return impl_->server->Offer({.name = name,
                               .memory = std::move(updated),
                               .updaters = updaters,
                               .platform = declared});
}

absl::Status MemoryOffers::Protect(std::span<const std::byte> bytes) {
  const MutexLock lock(impl_->mutex);
  return impl_->server->Protect(bytes);
}

absl::Status MemoryOffers::Withdraw(const std::string& name) {
  const MutexLock lock(impl_->mutex);
  return impl_->server->Withdraw(name);
}

absl::Status MemoryOffers::ReloadTokens() {
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<rpc::TokenEntry> tokens,
                           rpc::LoadTokenFile(impl_->tokens_file));
  const MutexLock lock(impl_->mutex);
  impl_->access->Replace(std::move(tokens));
  return absl::OkStatus();
}

}  // namespace alpheus
