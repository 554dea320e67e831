// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/workload.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "tools/sim/primary_process.h"

namespace alpheus::sim {
namespace {

// Nobody has to wait longer for a log that works.
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
    world_.threads().SleepUntil(world_.now() + ns);
  }

  Deadline Patience() {
    return Draw(8) == 0 ? Deadline::AtNanos(world_.now() + 20'000)
                        : Deadline::AtNanos(world_.now() + kPatienceNanos);
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
        return AskToBeTold();
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

  // What a call may answer beside OK. True: it was OK.
  bool Judge(const char* call, Lsn lsn, const absl::Status& status) {
    ++world_.counters().calls;
    if (world_.IsTraced()) {
      world_.Trace(absl::StrCat("client of primary ", primary_.number(), ": ",
                                call, " LSN ", lsn.value, ": ",
                                status.ToString()));
    }
    switch (status.code()) {
      case absl::StatusCode::kOk:
        return true;
      case absl::StatusCode::kAborted:
      case absl::StatusCode::kUnavailable:
        primary_.LogFailed();
        return false;
      case absl::StatusCode::kResourceExhausted:
        CleanupThrough();
        return false;
      case absl::StatusCode::kNotFound:  // cleaned already
      case absl::StatusCode::kDeadlineExceeded:
      case absl::StatusCode::kFailedPrecondition:
        return false;
      default:
        world_.referee().Violate(
            "API", absl::StrCat(call, " of the log: ", status.ToString()));
        return false;
    }
  }

  // Up to there the caller was told that it is durable.
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
    const absl::StatusOr<Lsn> lsn = log().Append(parts, policy, Patience());
    if (!Judge("append", lsn.value_or(Lsn(0)), lsn.status())) return;
    world_.history().HasLsn(operation, *lsn);
    if (policy.group == 0 && lsn->value % policy.frequency == 0) {
      Acknowledge(*lsn);
    }
  }

  void Reserve() {
    const size_t bytes = DrawBytes();
    absl::StatusOr<ReservedRecord> record = log().Reserve(bytes, Patience());
    if (!Judge("reserve", record.ok() ? record->lsn : Lsn(0),
               record.status())) {
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
      Judge("copy", record_->lsn, log().Copy(*record_, 0, all.first(half)));
      if (Draw(2) == 0) Think();
      Judge("copy", record_->lsn,
            log().Copy(*record_, half, all.subspan(half)));
    } else {
      std::ranges::copy(payload, record_->payload);
      record_->filled_in_place = true;
    }
    world_.history().MayBeCompleted(operation_);
    Judge("complete", record_->lsn, log().Complete(*record_));
    record_.reset();
  }

  void AbortOne() {
    world_.history().MayBeAborted(operation_);
    log().Abort(*record_);
    Judge("abort", record_->lsn, absl::OkStatus());
    record_.reset();
  }

  Lsn LastGiven() { return log().next_lsn() - 1; }

  void Force() {
    const Lsn lsn = LastGiven();
    if (lsn == Lsn(0)) return;
    const ForcePolicy policy = Policy();
    if (!Judge("force", lsn, log().Force(lsn, policy, Patience()))) return;
    if (policy.group == 0 && lsn.value % policy.frequency == 0) {
      Acknowledge(lsn);
    }
  }

  void WaitDurable() {
    const Lsn lsn = LastGiven();
    if (lsn == Lsn(0)) return;
    if (Judge("wait", lsn, log().WaitDurable(lsn, Patience())))
      Acknowledge(lsn);
  }

  void AskToBeTold() {
    const Lsn lsn = LastGiven();
    if (lsn == Lsn(0)) return;
    Judge("ask to be told", lsn,
          log().OnDurable(lsn, [number = primary_.number(), &world = world_,
                                lsn](const absl::Status& told) {
            if (told.ok()) world.history().Acknowledged(number, lsn);
          }));
  }

  void Cleanup() {
    const Lsn lsn = log().head_lsn() + Draw(4);
    if (lsn > log().durable_lsn()) return;
    world_.history().MayBeCleaned(primary_.number(), lsn);
    Judge("clean", lsn, log().Cleanup(lsn));
  }

  void CleanupThrough() {
    const Lsn durable = log().durable_lsn();
    if (durable < log().head_lsn()) return;
    const Lsn lsn =
        durable - Draw(std::min<uint64_t>(8, durable - log().head_lsn() + 1));
    world_.history().MayBeCleanedThrough(primary_.number(), lsn);
    Judge("clean through", lsn, log().CleanupThrough(lsn));
  }

  void CleanupAll() {
    // What others append in between is cleaned, too.
    const Lsn before = log().next_lsn();
    world_.history().MayBeCleanedThrough(primary_.number(), before - 1);
    if (Judge("clean everything", before - 1, log().CleanupAll())) {
      world_.history().Emptied(before);
    }
  }

  PrimaryProcess& primary_;
  World& world_;
  std::optional<ReservedRecord> record_;
  OperationId operation_ = 0;
};

}  // namespace

void RunMixedClient(PrimaryProcess& primary) { MixedClient(primary).Run(); }

}  // namespace alpheus::sim
