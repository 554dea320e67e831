// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/wal_workload.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "tools/sim/actors/primary_process.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kWalPatienceNanos = 15'000'000;
constexpr int kNotesMax = 3;      // one about the other
constexpr uint32_t kRarely = 16;  // forced by others

}  // namespace

WalApplication::WalApplication(PrimaryProcess& primary)
    : primary_(primary),
      world_(primary.world()),
      is_lazy_(primary.world().random().Below(2) == 0) {}

uint64_t WalApplication::Draw(uint64_t below) {
  return world_.random().Below(below);
}

Deadline WalApplication::DrawDeadline() {
  const int64_t now = primary_.clock().NowNanos();
  switch (Draw(10)) {
    case 0:
      return Deadline::AtNanos(now);  // over already
    case 1:
      return Deadline::AtNanos(now + static_cast<int64_t>(Draw(50'000)));
    default:
      return Deadline::AtNanos(now + kWalPatienceNanos);
  }
}

size_t WalApplication::DrawBytes(bool is_bulk) {
  const uint64_t most = is_bulk
                            ? PayloadBytesMax(world_.options().ring_capacity)
                            : world_.options().payload_bytes_max;
  // The largest as often as all others.
  if (is_bulk && OneIn(2)) return most;
  return kPayloadBytesMin + Draw(most - kPayloadBytesMin + 1);
}

void WalApplication::Pause() {
  const auto most = static_cast<uint64_t>(world_.options().think_ns_max);
  const auto ns = static_cast<int64_t>(Draw(2 * most + 1));
  world_.threads().SleepUntil(world_.now() +
                              (primary_.is_filling() ? ns / 8 : ns));
}

bool WalApplication::Judge(const BegunCall& call, Lsn lsn,
                           const absl::Status& status) {
  const bool ok = primary_.Returned(call, lsn, status);
  if (absl::IsResourceExhausted(status)) {
    is_full_ = true;
    world_.threads().Wake(&is_full_);
    primary_.profiles().FoundFull();
  }
  has_failed_ |= !ok && primary_.has_failed();
  return ok;
}

void WalApplication::RunThread(int thread) {
  const bool is_alone = world_.options().clients == 1;
  while (!primary_.is_closing()) {
    Pause();
    if (primary_.is_closing()) break;
    if (thread == 0 && !is_alone) {
      Checkpoint();
      continue;
    }
    RunTransaction();
    if (is_alone && (is_full_ || OneIn(8))) Checkpoint();
  }
  FinishDetached(/*all=*/true);
  // A log that has failed stays so.
  if (has_failed_ && thread != 0) Commit(primary_.log().next_lsn() - 1);
}

void WalApplication::RunTransaction() {
  const bool is_bulk = OneIn(12);
  const uint64_t records = is_bulk ? 1 + Draw(3) : 1 + Draw(6);
  std::vector<Filling> open;
  Lsn last(0);
  for (uint64_t i = 0; i < records; ++i) {
    if (!ReserveOne(is_bulk, open)) break;
    last = open.back().record.lsn;
    if (OneIn(10)) Pause();
  }
  while (!open.empty()) {
    std::swap(open[Draw(open.size())], open.back());
    const Filling filling = open.back();
    open.pop_back();
    if (OneIn(5)) {
      detached_.push_back(filling);
      primary_.log().Detach(detached_.back().record);
    } else {
      FinishOne(filling);
    }
  }
  FinishDetached(/*all=*/OneIn(2));
  if (last != Lsn(0) && !primary_.is_closing()) Commit(last);
}

bool WalApplication::ReserveOne(bool is_bulk, std::vector<Filling>& open) {
  const size_t bytes = DrawBytes(is_bulk);
  const BegunCall call =
      primary_.Begin(ClientCall::kReserve, DrawDeadline(), !open.empty());
  absl::StatusOr<ReservedRecord> record =
      primary_.log().Reserve(bytes, call.deadline);
  const Lsn lsn = record.ok() ? record->lsn : Lsn(0);
  if (!Judge(call, lsn, record.status())) return false;
  Filling filling{*record, world_.history().Begin(primary_.number(), bytes)};
  world_.history().HasLsn(filling.operation, lsn);
  open.push_back(filling);
  return true;
}

void WalApplication::FinishOne(Filling filling) {
  History& history = world_.history();
  ReservedRecord& record = filling.record;
  if (OneIn(12)) {
    history.MayBeAborted(filling.operation);
    primary_.log().Abort(record);
    return;
  }
  std::vector<std::byte> payload(record.payload_bytes);
  FillPayload(filling.operation, payload);
  const std::span<const std::byte> all(payload);
  const size_t split = Draw(all.size() + 1);
  if (OneIn(3)) {
    std::ranges::copy(payload, record.payload);
    record.filled_in_place = true;
  } else if (OneIn(2)) {
    // The end first.
    Copy(record, split, all.subspan(split));
    Copy(record, 0, all.first(split));
  } else {
    Copy(record, 0, all);
  }
  if (OneIn(6)) Pause();
  history.MayBeCompleted(filling.operation);
  const BegunCall call = primary_.Begin(ClientCall::kComplete);
  Judge(call, record.lsn, primary_.log().Complete(record));
}

void WalApplication::Copy(ReservedRecord& record, size_t offset,
                          std::span<const std::byte> bytes) {
  const BegunCall call = primary_.Begin(ClientCall::kCopy);
  Judge(call, record.lsn, primary_.log().Copy(record, offset, bytes));
}

void WalApplication::FinishDetached(bool all) {
  while (!detached_.empty()) {
    const Filling filling = detached_.front();
    detached_.pop_front();
    FinishOne(filling);
    if (!all) return;
  }
}

void WalApplication::Commit(Lsn last) {
  if (last == Lsn(0)) return;
  if (OneIn(3)) NoteWhenDurable(last, 0);
  const bool in_group = OneIn(4);
  const ForcePolicy policy =
      in_group ? ForcePolicy(1, static_cast<uint32_t>(1 + Draw(4)))
               : ForcePolicy(1);
  const BegunCall call = primary_.Begin(ClientCall::kForce, DrawDeadline());
  const absl::Status status = primary_.log().Force(last, policy, call.deadline);
  if (Judge(call, last, status) && !in_group) {
    world_.history().Acknowledged(primary_.number(), last);
  }
}

void WalApplication::NoteWhenDurable(Lsn lsn, int depth) {
  primary_.RequestNotice(lsn, [this, depth](const absl::Status& outcome) {
    OnCommitted(depth, outcome);
  });
}

void WalApplication::OnCommitted(int depth, const absl::Status& outcome) {
  if (!outcome.ok()) return;
  if (depth < kNotesMax) AppendNote(depth + 1);
  primary_.RanCallback();
}

void WalApplication::AppendNote(int depth) {
  std::vector<std::byte> payload(DrawBytes(/*is_bulk=*/false));
  const OperationId operation =
      world_.history().Begin(primary_.number(), payload.size());
  FillPayload(operation, payload);
  world_.history().MayBeCompleted(operation);
  const std::span<const std::byte> parts[] = {payload};
  const bool is_forced = OneIn(2);
  // The call of the thread that runs the callback.
  const BegunCall call = primary_.Begin(ClientCall::kAppend, DrawDeadline(),
                                        /*owns_open=*/true);
  const absl::StatusOr<Lsn> lsn = primary_.log().Append(
      parts, is_forced ? ForcePolicy(1) : ForcePolicy(kRarely), call.deadline);
  if (!Judge(call, lsn.value_or(Lsn(0)), lsn.status())) return;
  world_.history().HasLsn(operation, *lsn);
  if (is_forced) world_.history().Acknowledged(primary_.number(), *lsn);
  NoteWhenDurable(*lsn, depth);
}

void WalApplication::Checkpoint() {
  if (primary_.is_filling()) return;
  if (is_lazy_ && !is_full_) {
    world_.threads().WaitFor(&is_full_,
                             Deadline::AtNanos(world_.now() + 1'000'000));
    if (!is_full_ || primary_.is_closing()) return;
  }
  RingLog<World::Model>& log = primary_.log();
  // The log refuses this while reservations are open.
  if (OneIn(10) && log.first_open_lsn() == log.next_lsn()) {
    if (primary_.CleanupAll()) {
      is_full_ = false;
      return;
    }
  }
  const Lsn durable = log.durable_lsn();
  if (durable < log.head_lsn()) return;
  // A database needs no more than its last transactions.
  const uint64_t kept = is_full_ ? Draw(3) : Draw(durable - log.head_lsn() + 1);
  if (durable.value <= kept) return;
  const Lsn lsn = durable - kept;
  world_.history().MayBeCleanedThrough(primary_.number(), lsn);
  const BegunCall call = primary_.Begin(ClientCall::kCleanupThrough);
  if (Judge(call, lsn, log.CleanupThrough(lsn))) {
    is_full_ = false;
  }
}

}  // namespace alpheus::sim
