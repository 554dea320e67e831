// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/candidates/bare_fabric.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/floor_replica.h"
#include "log/base/bytes.h"
#include "log/base/clock.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "log/format/record.h"
#include "replication/fabric/tcp/tcp_fabric.h"
#include "replication/fabric/verbs/verbs_fabric.h"
#include "replication/wire/ack.h"

namespace alpheus::bench::replicated {

using fabric::Completion;
using fabric::ConnectionEvent;
using fabric::Fabric;
using fabric::RegionKey;
using fabric::WorkId;
using replication::kAckBytes;

namespace {

constexpr size_t kReceives = 64;
constexpr std::chrono::seconds kConnectTimeout{10};

// Nothing polls while other candidates have their turn. That must not count as
// silence where programs answer. It is not part of the timed path.
constexpr int64_t kRetryNanos = 3'600'000'000'000;

absl::StatusOr<std::unique_ptr<Fabric>> OpenFabric(const std::string& host,
                                                   RandomSource& random) {
  if (host.empty()) {
    fabric::tcp::TcpFabricOptions options;
    options.limits.retry_ns = kRetryNanos;
    return std::make_unique<fabric::tcp::TcpFabric>(options, Clock::Real(),
                                                    random);
  }
  fabric::verbs::VerbsFabricOptions options;
  options.source_host = host;
  return fabric::verbs::VerbsFabric::Open(options, Clock::Real(), random);
}

// The immediate: line of the ring where the record begins, and above it how the
// backup is to wait for the next one.
constexpr uint32_t kNextShift = 31;

// A fabric, and the one place where its completions are waited for.
class Adapter {
 public:
  // `host`: of the adapter with RDMA; empty: over TCP.
  static absl::StatusOr<std::unique_ptr<Adapter>> Open(
      const std::string& host) {
    auto made = std::make_unique<Adapter>();
    ALPHEUS_ASSIGN_OR_RETURN(made->fabric_, OpenFabric(host, made->random_));
    return made;
  }

  Fabric& fabric() { return *fabric_; }

  // Sends posted operations; arrivals stay for Until.
  void Send() { fabric_->Poll({}, &events_); }

  // Passes every completion and event to `use`, until it returns true for the
  // awaited one.
  template <class OnCompletion, class OnEvent>
  absl::Status Until(Waiting waiting, OnCompletion on_completion,
                     OnEvent on_event) {
    for (bool is_done = false; !is_done;) {
      std::array<Completion, 16> completions;
      const size_t count = fabric_->Poll(completions, &events_);
      for (const Completion& one : std::span(completions).first(count)) {
        if (one.status != fabric::CompletionStatus::kOk) {
          return absl::UnavailableError(absl::StrCat(
              "bare fabric: ", fabric::OperationName(one.operation),
              " failed: ", fabric::CompletionStatusName(one.status)));
        }
        ALPHEUS_ASSIGN_OR_RETURN(const bool is_it, on_completion(one));
        is_done |= is_it;
      }
      for (const ConnectionEvent& event : events_) is_done |= on_event(event);
      const bool was_idle = count == 0 && events_.empty();
      events_.clear();
      if (was_idle) Wait(waiting);
    }
    return absl::OkStatus();
  }

 private:
  void Wait(Waiting waiting) {
    if (waiting == Waiting::kSpin) {
      sched_yield();
    } else {
      fabric_->WaitForActivity(Deadline());
    }
  }

  EntropyRandom random_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<ConnectionEvent> events_;
};

absl::StatusOr<bool> NotExpected(const Completion& completion) {
  return absl::UnavailableError(absl::StrCat(
      "bare fabric: completion of ",
      fabric::OperationName(completion.operation), " while connecting"));
}

class BareFabricCandidate final : public Candidate {
 public:
  static absl::StatusOr<std::unique_ptr<Candidate>> Make(const Work& work) {
    ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                             FloorReplica::Make(work.folder, work.ring_bytes));
    ALPHEUS_ASSIGN_OR_RETURN(
        std::unique_ptr<Adapter> adapter,
        Adapter::Open(work.hosts.empty() ? "" : work.hosts.front()));
    auto made = std::make_unique<BareFabricCandidate>(std::move(replica),
                                                      std::move(adapter));
    ALPHEUS_ASSIGN_OR_RETURN(
        made->ring_key_, made->fabric().Register(made->replica_.bytes(),
                                                 fabric::RemoteAccess::kNone));
    ALPHEUS_ASSIGN_OR_RETURN(
        made->answers_key_,
        made->fabric().Register(made->answers_, fabric::RemoteAccess::kNone));
    for (int i = 0; i < work.backups; ++i) {
      ALPHEUS_RETURN_IF_ERROR(made->AddBackup(work));
    }
    return made;
  }

  BareFabricCandidate(FloorReplica replica, std::unique_ptr<Adapter> adapter)
      : replica_(std::move(replica)),
        answers_(kReceives * kAckBytes),
        adapter_(std::move(adapter)) {}

  std::string name() const override { return kBareFabricName; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    record_.assign(RecordBytes(payload_bytes), std::byte{0x5a});
    waiting_ = waiting;
    return absl::OkStatus();
  }
  absl::Status Append() override { return AppendOne(waiting_); }
  absl::Status End() override { return AppendOne(Waiting::kBlock); }

 private:
  struct Backup {
    BackupProcess process;
    fabric::ConnectionId connection;
    RegionKey key;
  };

  Fabric& fabric() { return adapter_->fabric(); }

  absl::Status AddBackup(const Work& work) {
    ALPHEUS_ASSIGN_OR_RETURN(
        BackupProcess process,
        BackupProcess::Start(
            work.hosts.empty() ? kBareFabricName : kBareVerbsKind, work.folder,
            work.ring_bytes));
    ALPHEUS_ASSIGN_OR_RETURN(
        const fabric::ConnectionId connection,
        fabric().Connect(process.address(), "", Deadline::In(kConnectTimeout)));
    RegionKey key;
    ALPHEUS_RETURN_IF_ERROR(adapter_->Until(
        Waiting::kBlock, NotExpected, [&](const ConnectionEvent& event) {
          if (event.kind == ConnectionEvent::Kind::kEstablished) {
            std::memcpy(&key.value, event.private_data.data(),
                        std::min(sizeof(key.value), event.private_data.size()));
          }
          return true;
        }));
    if (key.value == 0) {
      return absl::UnavailableError(
          absl::StrCat("no connection to the backup at ", process.address()));
    }
    for (size_t i = 0; i < kReceives / 2; ++i) {
      const WorkId slot(backups_.size() * kReceives / 2 + i);
      ALPHEUS_RETURN_IF_ERROR(PostReceive(connection, slot));
    }
    backups_.push_back({std::move(process), connection, key});
    return absl::OkStatus();
  }

  absl::Status PostReceive(fabric::ConnectionId connection, WorkId slot) {
    return fabric().PostReceive(connection, slot,
                                {.key = answers_key_,
                                 .bytes = std::span(answers_).subspan(
                                     slot.value * kAckBytes, kAckBytes)});
  }

  absl::Status AppendOne(Waiting next) {
    const std::span<std::byte> place = replica_.Next(record_.size());
    replica_.Store(place, record_);
    const auto offset =
        static_cast<uint64_t>(place.data() - replica_.bytes().data());
    const auto immediate = static_cast<uint32_t>(offset / kLineBytes) |
                           static_cast<uint32_t>(next) << kNextShift;
    for (const Backup& backup : backups_) {
      ALPHEUS_RETURN_IF_ERROR(fabric().PostWriteImmediate(
          backup.connection, WorkId(), {.key = ring_key_, .bytes = place},
          {.key = backup.key, .offset = offset}, immediate));
    }
    adapter_->Send();  // before this replica is flushed
    replica_.Persist(place);
    size_t answers = 0;
    return adapter_->Until(
        waiting_,
        [&](const Completion& one) -> absl::StatusOr<bool> {
          if (one.operation != fabric::Operation::kReceive) return false;
          ALPHEUS_RETURN_IF_ERROR(PostReceive(one.connection, one.work));
          return ++answers == backups_.size();
        },
        [](const ConnectionEvent&) { return false; });
  }

  FloorReplica replica_;
  std::vector<std::byte> answers_;
  std::unique_ptr<Adapter> adapter_;
  RegionKey ring_key_;
  RegionKey answers_key_;
  std::vector<Backup> backups_;
  std::vector<std::byte> record_;
  Waiting waiting_ = Waiting::kBlock;
};

}  // namespace

MakeCandidate BareFabric() { return BareFabricCandidate::Make; }

absl::Status ServeBareFabric(const std::string& host, const std::string& folder,
                             uint64_t ring_bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(FloorReplica replica,
                           FloorReplica::Make(folder, ring_bytes));
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Adapter> adapter,
                           Adapter::Open(host));
  Fabric& fabric = adapter->fabric();
  ALPHEUS_ASSIGN_OR_RETURN(
      const RegionKey ring_key,
      fabric.Register(replica.bytes(), fabric::RemoteAccess::kWrite));
  // More than one, so that an answer need not wait for the last one's end.
  std::array<std::byte, 2 * kAckBytes> answers{};
  ALPHEUS_ASSIGN_OR_RETURN(
      const RegionKey answers_key,
      fabric.Register(answers, fabric::RemoteAccess::kNone));
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::string address,
      fabric.Listen(host.empty() ? "127.0.0.1:0" : absl::StrCat(host, ":0")));
  AnnounceAddress(address);
  uint64_t answer_count = 0;
  Waiting waiting = Waiting::kBlock;
  bool is_over = false;
  const auto on_record = [&](const Completion& one) -> absl::StatusOr<bool> {
    if (one.operation != fabric::Operation::kReceiveImmediate) return false;
    ALPHEUS_RETURN_IF_ERROR(fabric.PostReceive(one.connection, WorkId(), {}));
    const uint64_t line = one.immediate & ((uint32_t{1} << kNextShift) - 1);
    replica.Persist(replica.bytes().subspan(line * kLineBytes, one.bytes));
    waiting = static_cast<Waiting>(one.immediate >> kNextShift);
    const auto answer =
        std::span(answers).subspan(answer_count++ % 2 * kAckBytes, kAckBytes);
    ALPHEUS_RETURN_IF_ERROR(fabric.PostSend(
        one.connection, WorkId(), {.key = answers_key, .bytes = answer}));
    return true;
  };
  const auto on_event = [&](const ConnectionEvent& event) {
    if (event.kind != ConnectionEvent::Kind::kRequested) {
      is_over = event.kind == ConnectionEvent::Kind::kDisconnected;
      return true;
    }
    for (size_t i = 0; i < kReceives; ++i) {
      (void)fabric.PostReceive(event.connection, WorkId(), {});  // room for all
    }
    const std::string key(reinterpret_cast<const char*>(&ring_key.value),
                          sizeof(ring_key.value));
    (void)fabric.Accept(event.connection, key);  // if it has gone, it is over
    return true;
  };
  while (!is_over) {
    ALPHEUS_RETURN_IF_ERROR(adapter->Until(waiting, on_record, on_event));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
