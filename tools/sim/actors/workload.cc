// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/workload.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "tools/sim/actors/primary_process.h"

namespace alpheus::sim {
namespace {

// A log that works makes no caller wait longer.
constexpr int64_t kPatienceNanos = 20'000'000;

class MixedClient {
 public:
  explicit MixedClient(PrimaryProcess& primary)
      : primary_(primary), world_(primary.world()) {}

  void Run() {
    while (!primary_.is_closing()) {
      Think();
      if (primary_.is_closing()) break;
      Call();
    }
    if (record_) AbortOne();
  }

 private:
  using Model = World::Model;

  RingLog<Model>& log() { return primary_.log(); }
  uint64_t Draw(uint64_t below) { return world_.random().Below(below); }

  void Think() {
    const auto ns = static_cast<int64_t>(
        Draw(static_cast<uint64_t>(world_.options().think_ns_max) + 1));
    world_.threads().SleepUntil(world_.now() +
                                (primary_.is_filling() ? ns / 8 : ns));
  }

  Deadline Patience() {
    return Draw(8) == 0
               ? Deadline::AtNanos(primary_.clock().NowNanos() + 20'000)
               : Deadline::AtNanos(primary_.clock().NowNanos() +
                                   kPatienceNanos);
  }

  ForcePolicy Policy() {
    switch (Draw(4)) {
      case 0:
        return {static_cast<uint32_t>(1 + Draw(8))};
      case 1:
        return {1, static_cast<uint32_t>(1 + Draw(4))};
      default:
        return {1};
    }
  }

  void Call() {
    if (record_) return Draw(6) == 0 ? AbortOne() : CompleteOne();
    if (primary_.is_filling()) return Draw(4) == 0 ? Reserve() : Append();
    switch (Draw(16)) {
      case 0:
      case 1:
        return Reserve();
      case 2:
      case 3:
        return Force();
      case 4:
        return WaitDurable();
      case 5:
        return RequestNotice();
      case 6:
        return Cleanup();
      case 7:
      case 8:
        return CleanupThrough();
      case 9:
        return Draw(8) == 0 ? CleanupAll() : Append();
      default:
        return Append();
    }
  }

  // Judges a call. Returns whether it was OK.
  bool Judge(const BegunCall& call, Lsn lsn, const absl::Status& status) {
    const bool ok = primary_.Returned(call, lsn, status);
    if (!absl::IsResourceExhausted(status)) return ok;
    primary_.profiles().FoundFull();
    if (!primary_.is_filling()) CleanupThrough();
    return ok;
  }

  // Records up to this LSN were reported durable to the caller.
  void Acknowledge(Lsn lsn) {
    world_.history().Acknowledged(primary_.number(), lsn);
  }

  size_t DrawBytes() {
    return kPayloadBytesMin +
           Draw(world_.options().payload_bytes_max - kPayloadBytesMin + 1);
  }

  void Append() {
    std::vector<std::byte> payload(DrawBytes());
    const OperationId operation =
        world_.history().Begin(primary_.number(), payload.size());
    FillPayload(operation, payload);
    world_.history().MayBeCompleted(operation);
    const size_t cut = Draw(payload.size() + 1);
    const std::span<const std::byte> all(payload);
    const std::span<const std::byte> parts[] = {all.first(cut),
                                                all.subspan(cut)};
    const ForcePolicy policy = Policy();
    const BegunCall call = primary_.Begin(ClientCall::kAppend, Patience());
    const absl::StatusOr<Lsn> lsn = log().Append(parts, policy, call.deadline);
    if (!Judge(call, lsn.value_or(Lsn(0)), lsn.status())) return;
    world_.history().HasLsn(operation, *lsn);
    if (policy.group == 0 && lsn->value % policy.frequency == 0) {
      Acknowledge(*lsn);
    }
  }

  void Reserve() {
    const size_t bytes = DrawBytes();
    const BegunCall call = primary_.Begin(ClientCall::kReserve, Patience());
    absl::StatusOr<ReservedRecord> record = log().Reserve(bytes, call.deadline);
    if (!Judge(call, record.ok() ? record->lsn : Lsn(0), record.status())) {
      return;
    }
    record_ = *record;
    operation_ = world_.history().Begin(primary_.number(), bytes);
    world_.history().HasLsn(operation_, record->lsn);
  }

  void CompleteOne() {
    std::vector<std::byte> payload(record_->payload_bytes);
    FillPayload(operation_, payload);
    if (Draw(2) == 0) {
      const size_t half = payload.size() / 2;
      const std::span<const std::byte> all(payload);
      Copy(0, all.first(half));
      if (Draw(2) == 0) Think();
      Copy(half, all.subspan(half));
    } else {
      std::ranges::copy(payload, record_->payload);
      record_->filled_in_place = true;
    }
    world_.history().MayBeCompleted(operation_);
    const BegunCall call = primary_.Begin(ClientCall::kComplete);
    Judge(call, record_->lsn, log().Complete(*record_));
    record_.reset();
  }

  void Copy(size_t offset, std::span<const std::byte> bytes) {
    const BegunCall call = primary_.Begin(ClientCall::kCopy);
    Judge(call, record_->lsn, log().Copy(*record_, offset, bytes));
  }

  void AbortOne() {
    world_.history().MayBeAborted(operation_);
    log().Abort(*record_);
    ++world_.counters().calls;
    record_.reset();
  }

  Lsn LastAssigned() { return log().next_lsn() - 1; }

  void Force() {
    const Lsn lsn = LastAssigned();
    if (lsn == Lsn(0)) return;
    const ForcePolicy policy = Policy();
    const BegunCall call = primary_.Begin(ClientCall::kForce, Patience());
    if (!Judge(call, lsn, log().Force(lsn, policy, call.deadline))) return;
    if (policy.group == 0 && lsn.value % policy.frequency == 0) {
      Acknowledge(lsn);
    }
  }

  void WaitDurable() {
    const Lsn lsn = LastAssigned();
    if (lsn == Lsn(0)) return;
    const BegunCall call = primary_.Begin(ClientCall::kWaitDurable, Patience());
    if (Judge(call, lsn, log().WaitDurable(lsn, call.deadline))) {
      Acknowledge(lsn);
    }
  }

  void RequestNotice() {
    const Lsn lsn = LastAssigned();
    if (lsn == Lsn(0)) return;
    primary_.RequestNotice(lsn, {});
  }

  void Cleanup() {
    const Lsn lsn = log().head_lsn() + Draw(4);
    if (lsn > log().durable_lsn()) return;
    world_.history().MayBeCleaned(primary_.number(), lsn);
    const BegunCall call = primary_.Begin(ClientCall::kCleanup);
    Judge(call, lsn, log().Cleanup(lsn));
  }

  void CleanupThrough() {
    const Lsn durable = log().durable_lsn();
    if (durable < log().head_lsn()) return;
    const Lsn lsn =
        durable - Draw(std::min<uint64_t>(8, durable - log().head_lsn() + 1));
    world_.history().MayBeCleanedThrough(primary_.number(), lsn);
    const BegunCall call = primary_.Begin(ClientCall::kCleanupThrough);
    Judge(call, lsn, log().CleanupThrough(lsn));
  }

  void CleanupAll() { primary_.CleanupAll(); }

  PrimaryProcess& primary_;
  World& world_;
  std::optional<ReservedRecord> record_;
  OperationId operation_ = 0;
};

}  // namespace

void RunMixedClient(PrimaryProcess& primary) { MixedClient(primary).Run(); }

}  // namespace alpheus::sim
