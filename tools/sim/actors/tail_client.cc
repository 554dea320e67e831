// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/tail_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/sim/actors/member_lists.h"
#include "tools/sim/checkers/checkers.h"
#include "tools/sim/world/region_store.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kPollNanosMin = 100'000;
constexpr int64_t kLifeNanosMin = 1'000'000;
// One tail in this many begins at the head.
constexpr uint64_t kHeadOdds = 4;
// One of the others in this many begins anywhere, the rest this near to the
// end.
constexpr uint64_t kAnywhereOdds = 8;
constexpr uint64_t kNear = 16;
// A deaf tail misses one record in this many.
constexpr uint64_t kDeafOdds = 4;
// One tail in this many asks one replica only.
constexpr uint64_t kOneSourceOdds = 4;
// One look in this many asks all again.
constexpr uint64_t kAskAgainOdds = 8;

}  // namespace

TailClient::TailClient(World& world, int host)
    : world_(world),
      host_(host),
      random_(world.options().seed ^ 0x7a11),
      clock_(world.network().clock(),
             static_cast<int64_t>(random_.Below(uint64_t{1} << 40))),
      fabric_(world.network().fabric(host_), clock_,
              [&world] { world.SwitchByLot(); }) {
  world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
}

// Returns the first LSN; 0: the head. Mostly near the end, since older records
// were cleaned.
Lsn TailClient::DrawFrom() {
  if (std::exchange(is_overtaken_, false)) return Lsn(0);
  if (random_.Below(kHeadOdds) == 0) return Lsn(0);
  const uint64_t end = world_.history().chosen_end().value + 1;
  const uint64_t span = random_.Below(kAnywhereOdds) == 0 ? end : kNear;
  return Lsn(1 + end - std::min(end, 1 + random_.Below(span)));
}

recovery::RemoteTail::Options TailClient::DrawTail() {
  recovery::RemoteTail::Options options;
  options.cluster_id = kClusterId;
  options.log_id = kLogId;
  const MemberList& list = world_.lists().of(world_.options().tail_machine);
  options.configuration_id = list_id_ = list.id;
  options.write_quorum = list.write_quorum;
  const bool asks_one = random_.Below(kOneSourceOdds) == 0;
  asks_all_ = !asks_one;
  const uint64_t source = random_.Below(list.machines.size());
  for (size_t i = 0; i < list.machines.size(); ++i) {
    const World::Machine& machine = world_.machine(list.machines[i]);
    options.members.push_back({machine.id(), world_.NodeAddress(machine.number),
                               !asks_one || i == source});
  }
  options.self.incarnation = random_.Next() | 1;
  options.credentials = {SimulatedKey(), &random_};
  options.from = DrawFrom();
  options.poll_ns = kPollNanosMin << random_.Below(4);
  options.retry_ns = options.poll_ns;
  options.reply_timeout_ns = 10 * kPollNanosMin;
  return options;
}

// Destroys the previous tail first, so that nobody gets its replies.
void TailClient::Begin() {
  tail_ = nullptr;
  recovery::RemoteTail::Options options = DrawTail();
  next_ = options.from;
  asked_after_.reset();
  tail_ = std::make_unique<recovery::RemoteTail>(fabric_, clock_,
                                                 std::move(options));
  ends_at_ = world_.now() + (kLifeNanosMin << random_.Below(6));
  ++world_.counters().tails;
}

bool TailClient::Turn() {
  world_.ClearActivity(host_);
  const size_t count = fabric_.Poll(completions_, &events_);
  const bool any = count != 0 || !events_.empty();
  for (const fabric::ConnectionEvent& event : std::exchange(events_, {})) {
    tail_->OnConnectionEvent(event);
  }
  for (size_t i = 0; i < count; ++i) tail_->OnCompletion(completions_[i]);
  tail_->Poll();
  return any;
}

void TailClient::Show() {
  const bool is_deaf = world_.options().canary == Canary::kDeafTail;
  while (const auto record = tail_->Next()) {
    ++world_.counters().tail_records;
    if (is_deaf && random_.Below(kDeafOdds) == 0) continue;
    world_.history().Followed(next_, {.lsn = record->lsn,
                                      .epoch = record->epoch,
                                      .payload = record->payload});
    if (record->lsn > tail_->durable_lsn()) {
      world_.oracle().Violate(
          "P-C4", absl::StrCat("a tail shows LSN ", record->lsn.value,
                               ", and knows only LSN ",
                               tail_->durable_lsn().value, " to be durable"));
    }
    next_ = record->lsn + 1;
  }
}

void TailClient::Judge(const absl::Status& status) {
  if (absl::IsOutOfRange(status)) {
    ++world_.counters().tails_overtaken;
    is_overtaken_ = true;
    return world_.history().Overtaken(tail_->next_lsn(), tail_->head_lsn());
  }
  if (absl::IsDataLoss(status) && HasStorageFaults(world_.options())) return;
  // Marked replicas show nothing.
  if (absl::IsNotFound(status) && world_.deleter() != nullptr &&
      world_.checkers().deletion.HasMarks()) {
    return;
  }
  // An operator wrote another list since.
  const bool has_newer_list =
      world_.lists().list(world_.lists().count() - 1).id > list_id_;
  if (absl::IsFailedPrecondition(status) && has_newer_list) {
    ++world_.counters().tails_outdated;
    return;
  }
  world_.oracle().Violate("API",
                          absl::StrCat("a tail ends with ", status.ToString()));
}

// A medium that was lost or changed may have had the newest epoch.
void TailClient::JudgeEnd() {
  if (!asks_all_ || HasStorageFaults(world_.options())) return;
  if (!asked_after_) {
    if (random_.Below(kAskAgainOdds) != 0) return;
    asked_after_ = world_.history().epoch_acknowledged();
    return tail_->AskAgain();
  }
  if (!tail_->is_caught_up()) return;
  ++world_.counters().tail_ends;
  if (tail_->newest_epoch() < *asked_after_) {
    world_.oracle().Violate(
        "RT5", absl::StrCat("a tail says that there is no more, of epoch ",
                            tail_->newest_epoch().value, ", and epoch ",
                            asked_after_->value, " had acknowledged records"));
  }
  asked_after_.reset();
}

void TailClient::Run() {
  for (;;) {
    if (tail_ == nullptr || world_.now() >= ends_at_) Begin();
    const bool any = Turn();
    Show();
    if (tail_->status().ok()) JudgeEnd();
    if (!tail_->status().ok()) {
      Judge(tail_->status());
      tail_ = nullptr;
      world_.threads().SleepUntil(world_.now() + kPollNanosMin);
      continue;
    }
    if (any || tail_->has_records()) {
      world_.threads().Yield();
      continue;
    }
    Deadline deadline = clock_.InWorld(tail_->NextPoll());
    if (ends_at_ < deadline.at_nanos()) deadline = Deadline::AtNanos(ends_at_);
    world_.WaitForActivity(host_, deadline);
  }
}

}  // namespace alpheus::sim
