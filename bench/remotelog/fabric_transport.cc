// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/fabric_transport.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "replication/persist/execute/update_requester.h"
#include "replication/persist/plan/update_cost.h"
#include "replication/wire/registered_bytes.h"

namespace alpheus::bench::remotelog {

using fabric::Completion;
using fabric::ConnectionEvent;
using fabric::ConnectionId;
using fabric::RegionKey;

namespace {

constexpr std::chrono::seconds kConnectTimeout{10};
constexpr size_t kCompletionsAtOnce = 16;
// A simulated network may stand still once while an end has something to post.
constexpr int kIdleTurnsMax = 3;

bool HasAction(const AppendRun& run, replication::StepAction action) {
  return std::ranges::count(run.steps, action, &replication::Step::action) > 0;
}

bool IsCompound(const AppendRun& run) {
  return std::ranges::any_of(run.steps, [](const replication::Step& step) {
    return step.part == replication::UpdatePart::kB ||
           step.part == replication::UpdatePart::kBoth;
  });
}

}  // namespace

// One connection, with one append on its way.
class FabricTransport::Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Make(const Ends& ends,
                                                      const AppendRun& run,
                                                      ConnectionId connection,
                                                      RegionKey there) {
    std::unique_ptr<Client> client(
        new Client(ends, connection, there, IsCompound(run)));
    ALPHEUS_ASSIGN_OR_RETURN(
        client->memory_,
        replication::RegisteredBytes::Make(
            ends.client, std::as_writable_bytes(std::span(client->words_)),
            fabric::RemoteAccess::kNone));
    ALPHEUS_ASSIGN_OR_RETURN(
        client->requester_,
        replication::UpdateRequester::Start(run.steps,
                                            {.session = FabricServer::kSession,
                                             .credits = kCredits,
                                             .message_bytes_max = kSlotBytes,
                                             .buffers = {there, kLogBytes},
                                             .buffers_bytes = kBuffersBytes},
                                            ends.client, connection));
    return client;
  }

  ConnectionId connection() const { return connection_; }
  uint64_t ended() const { return requester_->persisted(); }

  // The next append begins if the one before has ended.
  absl::Status Advance(uint64_t appends) {
    if (!requester_->CanPost() || requester_->posted() == appends) {
      return absl::OkStatus();
    }
    const uint64_t append = requester_->posted() + 1;
    began_ = clock_.NowNanos();
    words_.fill(append);
    const std::span<std::byte> bytes = memory_->bytes();
    replication::UpdateRequester::Update update = {
        .a = {.from = {memory_->key(), bytes.first(kRecordBytes)},
              .to = {there_, PlaceOfRecord(append)}}};
    if (is_compound_) {
      update.b = {.from = {memory_->key(), bytes.last(kTailBytes)},
                  .to = {there_, 0}};
    }
    return requester_->Post(update);
  }
  absl::Status OnCompletion(const Completion& completion) {
    const uint64_t before = ended();
    ALPHEUS_RETURN_IF_ERROR(requester_->OnCompletion(completion));
    if (ended() != before) {
      latency_.push_back(static_cast<double>(clock_.NowNanos() - began_));
    }
    return absl::OkStatus();
  }
  bool IsIdle() const { return requester_->CanPost(); }
  std::vector<double> TakeLatencies() { return std::exchange(latency_, {}); }

 private:
  Client(const Ends& ends, ConnectionId connection, RegionKey there,
         bool is_compound)
      : clock_(ends.clock),
        connection_(connection),
        there_(there),
        is_compound_(is_compound) {}

  const Clock& clock_;
  const ConnectionId connection_;
  const RegionKey there_;
  const bool is_compound_;
  // Record, then tail.
  std::array<uint64_t, (kRecordBytes + kTailBytes) / sizeof(uint64_t)> words_ =
      {};
  std::unique_ptr<replication::RegisteredBytes> memory_;
  std::unique_ptr<replication::UpdateRequester> requester_;
  int64_t began_ = 0;
  std::vector<double> latency_;
};

FabricTransport::FabricTransport(Ends ends) : ends_(std::move(ends)) {}

FabricTransport::~FabricTransport() {
  clients_.clear();
  server_.reset();
  for (const RegionKey key : keys_) {
    ends_.server.Deregister(key).IgnoreError();
  }
}

absl::StatusOr<std::unique_ptr<FabricTransport>> FabricTransport::Make(
    Ends ends) {
  std::unique_ptr<FabricTransport> made(new FabricTransport(std::move(ends)));
  const std::span<std::byte> memory = made->ends_.memory;
  for (uint64_t at = 0; at + kClientBytes <= memory.size();
       at += kClientBytes) {
    ALPHEUS_ASSIGN_OR_RETURN(
        const RegionKey key,
        made->ends_.server.Register(memory.subspan(at, kClientBytes),
                                    fabric::RemoteAccess::kReadWrite));
    made->keys_.push_back(key);
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      made->address_, made->ends_.server.Listen(made->ends_.listen_address));
  return made;
}

absl::StatusOr<AppendTimes> FabricTransport::Append(const AppendRun& run) {
  ALPHEUS_RETURN_IF_ERROR(CheckRuns(run));
  server_ = std::make_unique<FabricServer>(ends_.server, ends_.memory, keys_,
                                           ends_.clock);
  AppendTimes times;
  const uint64_t appends = ends_.warm_up + run.appends;
  absl::Status status = Connect(run);
  if (status.ok()) status = AppendAll(ends_.warm_up, false, &times);
  const FabricServer::Times before = server_->times();
  if (status.ok()) status = AppendAll(appends, true, &times);
  if (status.ok()) status = Drain(run, appends);
  status.Update(Close(run, status.ok() ? appends : 0));
  times.responder_messages = server_->times().messages - before.messages;
  times.responder_background = server_->times().background - before.background;
  if (!status.ok()) return status;
  return times;
}

absl::Status FabricTransport::CheckRuns(const AppendRun& run) const {
  if (run.clients > keys_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("remotelog: ", run.clients, " clients, and memory for ",
                     keys_.size(), "; give the server more"));
  }
  if (HasAction(run, replication::StepAction::kRequesterWriteAtomic) &&
      !ends_.client.limits().atomic_write) {
    return absl::UnimplementedError(
        "the adapter has no atomic WRITE; the estimate stands for it");
  }
  if (run.platform.receive_buffers == replication::ReceiveBuffers::kPmem &&
      !ends_.is_pmem) {
    return absl::UnimplementedError(
        "the server was given no persistent memory for receive buffers");
  }
  return absl::OkStatus();
}

absl::Status FabricTransport::Connect(const AppendRun& run) {
  for (uint64_t number = 0; number < run.clients; ++number) {
    // Deadlines are the real clock's, which a simulated network has not.
    ALPHEUS_ASSIGN_OR_RETURN(
        const ConnectionId here,
        ends_.client.Connect(
            address_, "",
            ends_.pass ? Deadline() : Deadline::In(kConnectTimeout)));
    ALPHEUS_ASSIGN_OR_RETURN(
        const ConnectionId there,
        Await(ends_.server, ConnectionEvent::Kind::kRequested));
    ALPHEUS_RETURN_IF_ERROR(server_->Accept(run, number, there));
    ALPHEUS_RETURN_IF_ERROR(
        Await(ends_.client, ConnectionEvent::Kind::kEstablished).status());
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Client> client,
                             Client::Make(ends_, run, here, keys_[number]));
    clients_.push_back(std::move(client));
  }
  return absl::OkStatus();
}

// Closed connections yield nothing more except completions.
absl::StatusOr<ConnectionId> FabricTransport::Await(
    fabric::Fabric& fabric, ConnectionEvent::Kind kind) {
  for (;;) {
    for (fabric::Fabric* each : {&ends_.client, &ends_.server}) {
      std::array<Completion, kCompletionsAtOnce> of_before;
      std::vector<ConnectionEvent> events;
      each->Poll(
          clients_.empty() ? std::span(of_before) : std::span<Completion>(),
          &events);
      for (const ConnectionEvent& event : events) {
        if (event.kind == ConnectionEvent::Kind::kUnreachable ||
            event.kind == ConnectionEvent::Kind::kRejected) {
          return absl::UnavailableError(absl::StrCat(
              "remotelog: no connection to the server at ", address_));
        }
        if (each == &fabric && event.kind == kind) return event.connection;
      }
    }
    if (ends_.pass) {
      ends_.pass();
    } else {
      sched_yield();
    }
  }
}

// The server's thread lives as long as its work; an error of either end ends
// the other.
absl::Status FabricTransport::AppendAll(uint64_t appends, bool is_timed,
                                        AppendTimes* times) {
  if (ends_.pass) return RunClients(appends, is_timed, times);
  std::atomic<bool> is_over = false;
  std::atomic<bool> has_failed = false;
  absl::Status server_status;
  std::thread server([&] {
    while (!is_over.load(std::memory_order_acquire)) {
      const absl::StatusOr<bool> turned = server_->Turn();
      if (!turned.ok()) {
        server_status = turned.status();
        // The next operation of each client fails, so no client waits longer.
        server_->Finish(false, 0).IgnoreError();
        has_failed.store(true, std::memory_order_release);
        return;
      }
      if (!*turned) sched_yield();
    }
  });
  const absl::Status status = RunClients(appends, is_timed, times);
  is_over.store(true, std::memory_order_release);
  server.join();
  return has_failed ? server_status : status;
}

absl::Status FabricTransport::RunClients(uint64_t appends, bool is_timed,
                                         AppendTimes* times) {
  const int64_t begin = ends_.clock.NowNanos();
  const auto is_done = [&] {
    return std::ranges::all_of(clients_, [&](const auto& client) {
      return client->ended() == appends && client->IsIdle();
    });
  };
  while (!is_done()) {
    for (const auto& client : clients_) {
      ALPHEUS_RETURN_IF_ERROR(client->Advance(appends));
    }
    ALPHEUS_ASSIGN_OR_RETURN(bool had_any, TurnClients());
    if (ends_.pass) {
      ALPHEUS_ASSIGN_OR_RETURN(const bool had_more, server_->Turn());
      had_any = had_any || had_more;
    }
    ALPHEUS_RETURN_IF_ERROR(Idle(had_any));
  }
  for (const auto& client : clients_) {
    const std::vector<double> latency = client->TakeLatencies();
    if (!is_timed) continue;
    times->latency.insert(times->latency.end(), latency.begin(), latency.end());
  }
  times->elapsed = static_cast<double>(ends_.clock.NowNanos() - begin);
  return absl::OkStatus();
}

absl::StatusOr<bool> FabricTransport::TurnClients() {
  std::array<Completion, kCompletionsAtOnce> some;
  const size_t count = ends_.client.Poll(some, &events_);
  events_.clear();
  for (const Completion& completion : std::span(some).first(count)) {
    for (const auto& client : clients_) {
      if (client->connection() != completion.connection) continue;
      ALPHEUS_RETURN_IF_ERROR(client->OnCompletion(completion));
    }
  }
  return count > 0;
}

absl::Status FabricTransport::Idle(bool had_any) {
  if (!ends_.pass) {
    if (!had_any) sched_yield();
    return absl::OkStatus();
  }
  idle_turns_ = ends_.pass() || had_any ? 0 : idle_turns_ + 1;
  if (idle_turns_ < kIdleTurnsMax) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "remotelog: nothing happens any more, and clients wait");
}

// One-sided rows end before the server's program has seen their messages.
absl::Status FabricTransport::Drain(const AppendRun& run, uint64_t appends) {
  const replication::UpdateCost cost = replication::UpdateCostOf(
      run.steps, replication::SizesOfUpdate(kRecordBytes, kTailBytes));
  const uint64_t messages =
      (cost.immediates + cost.sends) * appends * run.clients;
  while (server_->received() < messages) {
    ALPHEUS_ASSIGN_OR_RETURN(const bool had_any, server_->Turn());
    ALPHEUS_RETURN_IF_ERROR(TurnClients().status());
    ALPHEUS_RETURN_IF_ERROR(Idle(had_any));
  }
  return server_->ApplyAll();
}

absl::Status FabricTransport::Close(const AppendRun& run, uint64_t appends) {
  absl::Status status = server_->Finish(IsCompound(run), appends);
  for (const auto& client : clients_) {
    status.Update(ends_.client.Close(client->connection()));
  }
  clients_.clear();
  idle_turns_ = 0;
  return status;
}

}  // namespace alpheus::bench::remotelog
