// SPDX-License-Identifier: Apache-2.0
#include "recovery/scrub/scrubbing.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace alpheus::recovery {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
// Nanoseconds between two checks of the logs while none is scrubbed.
constexpr int64_t kScrubRecheckNanos = 1'000'000;
// Incarnation in Hello; any number will do, since a View needs no promise.
constexpr uint64_t kScrubberIncarnation = 1;

std::string DescribeFinding(const ScrubFinding& finding) {
  const std::string lsns =
      finding.records() == 1 ? absl::StrCat("LSN ", finding.at.lsn.value)
                             : absl::StrCat("LSNs ", finding.at.lsn.value,
                                            " to ", finding.end_lsn.value - 1);
  const std::string where =
      absl::StrCat(lsns, " at ring offset ", finding.at.offset.value);
  switch (finding.kind) {
    case RingDamage::kHeaders:
      return absl::StrCat(where, ": can't be read");
    case RingDamage::kPayload:
      return absl::StrCat(where, ": the payload is damaged");
    case RingDamage::kPad:
      return absl::StrCat(where, ": the PAD before it is damaged");
    case RingDamage::kCleanedWord:
      return absl::StrCat(where, ": its CLEANED word is damaged");
    case RingDamage::kChain:
      return absl::StrCat(where,
                          ": its epoch starts elsewhere than the records "
                          "before it end");
  }
  return where;
}

// SCR3.
bool Counts(const Followed& said) {
  return said.log_epoch != Epoch() && !said.table.entries().empty() &&
         !said.repairing;
}

// Returns the last LSN that this replica has persisted (SCR1).
Lsn LastOf(const Followed& said) {
  const Lsn before_epoch = said.table.entries().back().start_lsn - 1;
  return std::max(said.persisted_lsn, before_epoch);
}

// Returns what an unfinished pass adds to the total. Damage that it could not
// repair is still there, and the last whole pass has counted it.
ScrubCounts WithoutUnrepairable(ScrubCounts counts) {
  counts.damaged -= counts.unrepairable;
  counts.unrepairable = 0;
  return counts;
}

void AddRun(const LsnRun& run, std::vector<LsnRun>* runs) {
  if (runs->size() >= kScrubbedRunsMax) return;
  if (std::ranges::find(*runs, run) == runs->end()) runs->push_back(run);
}

}  // namespace

Scrubbing::Scrubbing(fabric::Fabric& fabric, const Clock& clock, Node node,
                     ScrubbingOptions options)
    : fabric_(fabric),
      clock_(clock),
      node_(std::move(node)),
      options_(std::move(options)) {}

bool Scrubbing::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  return source_ != nullptr && source_->ring->OnConnectionEvent(event);
}

bool Scrubbing::OnCompletion(const fabric::Completion& completion) {
  if (source_ == nullptr || !source_->ring->OnCompletion(completion))
    return false;
  source_->until = clock_.NowNanos() + options_.reply_timeout_ns;
  return true;
}

void Scrubbing::Ask(Uuid log_id) {
  logs_[log_id].is_asked = true;
  recheck_at_ = 0;
}

void Scrubbing::Watch(ScrubbedReplica& replica) {
  LogState& state = logs_[replica.log_id()];
  if (state.incarnation !=
      replica.incarnation()) {  // counts are of one replica
    state.said = {};
    state.damage.clear();
  }
  state.incarnation = replica.incarnation();
  state.replica = &replica;
  if (state.due_at == 0) {
    state.due_at = clock_.NowNanos() + options_.interval_ns;
  }
  recheck_at_ = 0;
}

void Scrubbing::Forget(Uuid log_id) {
  const auto found = logs_.find(log_id);
  if (found != logs_.end()) found->second.replica = nullptr;
  if (pass_ != nullptr && pass_->log_id == log_id) DropPass();
}

Scrubbed Scrubbing::StateOf(Uuid log_id) const {
  const auto found = logs_.find(log_id);
  if (found == logs_.end()) return {};
  Scrubbed said = found->second.said;
  said.is_running = found->second.is_asked;
  said.unrepairable = DamageOf(found->second);
  if (pass_ != nullptr && pass_->log_id == log_id) {
    said.pass = CountsOf(*pass_);
    for (const LsnRun& run : pass_->unrepairable) {
      AddRun(run, &said.unrepairable);
    }
    Add(WithoutUnrepairable(said.pass), &said.total);
  }
  if (said.unrepairable.empty()) said.total.unrepairable = 0;  // no more
  return said;
}

// Returns known damage without records that an epoch was installed over, or
// that were cleaned since.
std::vector<LsnRun> Scrubbing::DamageOf(const LogState& state) const {
  std::vector<LsnRun> damage = state.damage;
  if (damage.empty() || state.replica == nullptr) return damage;
  const Followed said = state.replica->followed();
  if (said.log_epoch != state.damage_epoch) return {};
  std::erase_if(
      damage, [&said](const LsnRun& run) { return run.end <= said.head.lsn; });
  return damage;
}

void Scrubbing::NoteDamage(Uuid log_id, Epoch epoch,
                           const std::vector<LsnRun>& damage) {
  LogState& state = logs_[log_id];
  if (state.damage_epoch != epoch) state.damage.clear();
  for (const LsnRun& run : damage) AddRun(run, &state.damage);
  state.damage_epoch = epoch;
}

Deadline Scrubbing::NextPoll() const {
  const int64_t now = clock_.NowNanos();
  if (pass_ != nullptr) {
    const bool is_reading = HasFinding() && source_ != nullptr &&
                            source_->ring->status().ok() &&
                            source_->ring->is_reading();
    if (is_reading) return Deadline::AtNanos(source_->until);
    const bool is_at_once = pass_->is_asked || HasFinding();
    return Deadline::AtNanos(is_at_once ? now : std::max(now, next_slice_at_));
  }
  Deadline next;
  if (is_waiting_) next = Deadline::AtNanos(recheck_at_);
  for (const auto& [id, state] : logs_) {
    if (options_.bytes_per_second == 0 || state.replica == nullptr) continue;
    const int64_t at = std::max(state.due_at, recheck_at_);
    if (at < next.at_nanos()) next = Deadline::AtNanos(at);
  }
  return next;
}

// --- Passes ------------------------------------------------------------------

bool Scrubbing::IsIdle(int64_t now) const {
  if (now >= recheck_at_) return false;
  return pass_ == nullptr ||
         (!pass_->is_asked && !HasFinding() && now < next_slice_at_);
}

void Scrubbing::Poll(const IsBusy& is_busy) {
  const int64_t now = clock_.NowNanos();
  if (IsIdle(now)) return;
  recheck_at_ = now + kScrubRecheckNanos;
  ChoosePass(is_busy);
  if (pass_ == nullptr) return;
  if (!pass_->is_asked && !HasFinding() && now < next_slice_at_) return;
  ScrubbedReplica& replica = *logs_.at(pass_->log_id).replica;
  const Followed said = replica.followed();
  if (pass_->scrub == nullptr || pass_->epoch != said.log_epoch ||
      !Counts(said)) {
    return Begin(replica, said);
  }
  if (!pass_->scrub->MoveHead(said.head)) return EndFinding();
  HasFinding() ? ContinueRepair(replica) : ContinueWalk(replica);
}

// Passes that were asked for go first.
void Scrubbing::ChoosePass(const IsBusy& is_busy) {
  const auto may_be_scrubbed = [&](const LogState& state) {
    return state.replica != nullptr && !state.replica->medium_failed() &&
           !is_busy(state.replica->log_id());
  };
  if (pass_ != nullptr && !may_be_scrubbed(logs_.at(pass_->log_id))) DropPass();
  if (pass_ != nullptr && pass_->is_asked) return;
  const int64_t now = clock_.NowNanos();
  is_waiting_ = false;
  const LogState* chosen = nullptr;
  Uuid chosen_id;
  for (const auto& [id, state] : logs_) {
    if (state.replica == nullptr) continue;
    const bool is_due = options_.bytes_per_second > 0 && state.due_at <= now;
    if (!state.is_asked && !is_due) continue;
    if (!may_be_scrubbed(state)) {
      is_waiting_ = true;
      continue;
    }
    if (chosen != nullptr && (chosen->is_asked || !state.is_asked)) continue;
    chosen = &state;
    chosen_id = id;
  }
  if (chosen == nullptr || (pass_ != nullptr && !chosen->is_asked)) return;
  DropPass();
  pass_ = std::make_unique<Pass>();
  pass_->log_id = chosen_id;
  pass_->is_asked = chosen->is_asked;
}

void Scrubbing::Begin(ScrubbedReplica& replica, const Followed& said) {
  auto fresh = std::make_unique<Pass>();
  fresh->log_id = pass_->log_id;
  fresh->is_asked = pass_->is_asked;
  fresh->epoch = said.log_epoch;
  DropPass();
  pass_ = std::move(fresh);
  const bool is_empty = !Counts(said);
  logs_[pass_->log_id].said.is_empty = is_empty;
  if (is_empty) return EndPass();
  Repair(replica);
  const std::span<std::byte> ring = replica.ring_on_medium();
  pass_->scrub = std::make_unique<RingScrub>(
      Ring(ring.data(), ring.size()), said.table, said.head, LastOf(said));
}

void Scrubbing::Repair(ScrubbedReplica& replica) {
  const absl::StatusOr<int> repaired = replica.RepairCopies();
  if (repaired.ok()) {
    pass_->found.damaged += static_cast<uint64_t>(*repaired);
    pass_->found.repaired += static_cast<uint64_t>(*repaired);
    if (*repaired > 0) {
      Report(
          absl::StrCat("the two copies of the superline or the epoch table "
                       "differed; the bad one was written again"));
    }
    return;
  }
  ++pass_->found.damaged;
  ++pass_->found.unrepairable;
  Report(repaired.status().ToString());
}

void Scrubbing::ContinueWalk(ScrubbedReplica& replica) {
  RingScrub::Step step = RingScrub::Step::kMore;
  replica.WithRingFrozen(
      [&] { step = pass_->scrub->Continue(options_.slice_bytes); });
  if (!pass_->is_asked && options_.bytes_per_second > 0) {
    next_slice_at_ =
        clock_.NowNanos() +
        static_cast<int64_t>(static_cast<double>(options_.slice_bytes) *
                             kNanosPerSecond /
                             static_cast<double>(options_.bytes_per_second));
  }
  if (step == RingScrub::Step::kDone) return EndPass();
}

ScrubCounts Scrubbing::CountsOf(const Pass& pass) const {
  ScrubCounts counts = pass.found;
  if (pass.scrub != nullptr) {
    counts.records = pass.scrub->records();
    counts.bytes = pass.scrub->bytes();
  }
  return counts;
}

void Scrubbing::EndPass() {
  LogState& state = logs_[pass_->log_id];
  // The total counts each unrepaired record once, however often it was found.
  ScrubCounts& total = state.said.total;
  total.damaged += pass_->found.unrepairable - total.unrepairable;
  total.unrepairable = pass_->found.unrepairable;
  state.said.pass = CountsOf(*pass_);
  state.damage = pass_->unrepairable;
  state.damage_epoch = pass_->epoch;
  ++state.said.passes;
  state.is_asked = false;
  state.due_at = clock_.NowNanos() + options_.interval_ns;
  if (pass_->found.damaged > 0) {
    Report(absl::StrCat(
        "scrubbed: ", state.said.pass.records,
        " records are whole; damaged places: ", pass_->found.damaged,
        ", repaired: ", pass_->found.repaired,
        ", not repaired: ", pass_->found.unrepairable));
  }
  DropPass();
}

void Scrubbing::DropPass() {
  if (pass_ == nullptr) return;
  Add(WithoutUnrepairable(CountsOf(*pass_)), &logs_[pass_->log_id].said.total);
  pass_.reset();
  source_.reset();
}

void Scrubbing::AbandonPass() {
  if (pass_ == nullptr) return;
  LogState& state = logs_[pass_->log_id];
  state.is_asked = false;
  state.due_at = clock_.NowNanos() + options_.interval_ns;
  DropPass();
}

void Scrubbing::Reconfigure(const Credentials& credentials,
                            ScrubbingOptions options) {
  DropPass();  // the pass counts peers by their place in the list
  node_.credentials = credentials;
  options_ = std::move(options);
}

void Scrubbing::Report(const std::string& what) const {
  if (!node_.warn) return;
  const std::string name =
      node_.name_of ? node_.name_of(pass_->log_id) : pass_->log_id.ToString();
  node_.warn(
      absl::StrCat("node ", node_.node.value, ", log ", name, ": ", what));
}

// --- Repairs -----------------------------------------------------------------

void Scrubbing::ContinueRepair(ScrubbedReplica& replica) {
  const RingScrub& scrub = *pass_->scrub;
  if (scrub.finding().kind == RingDamage::kChain) {
    return Abandon("every record is valid by itself");
  }
  if (IsReading()) return ContinueReading(replica);
  const std::span<std::byte> copy = replica.ring();
  const bool is_of_copy = copy.data() != scrub.ring().data();
  if (is_of_copy && RepairWith(replica, [&] {
        return RepairedFromPeer(Ring(copy.data(), copy.size()),
                                scrub.finding().end_offset, scrub);
      })) {
    return;
  }
  if (!RepairWith(replica, [&] { return RepairedWithoutPeer(scrub); })) {
    ContinueReading(replica);
  }
}

// SCR7, for the present finding.
bool Scrubbing::IsReading() const {
  return source_ != nullptr && pass_->read_bytes > 0 &&
         source_->ring->status().ok() && source_->ring->is_reading();
}

// SCR5. A record that was cleaned since it was found needs no payload, and must
// not get a CLEANED word of 0.
bool Scrubbing::RepairWith(ScrubbedReplica& replica,
                           absl::FunctionRef<RepairedRecords()> find) {
  bool is_over = false;
  replica.WithRingFrozen([&] {
    is_over = ValidInFinding(*pass_->scrub, 1) > 0;
    if (is_over) {
      pass_->scrub->GoBack();
      return EndFinding();
    }
    const RepairedRecords repaired = find();
    is_over = repaired.records > 0;
    if (is_over) Restore(replica, repaired);
  });
  return is_over;
}

PeerRing::Range Scrubbing::NextRange() {
  const ScrubFinding& finding = pass_->scrub->finding();
  pass_->read_bytes =
      std::min(finding.end_offset - finding.at.offset,
               std::max({options_.read_bytes, 8 * pass_->read_bytes,
                         uint64_t{kLineBytes}}));
  return {finding.at.offset, pass_->read_bytes};
}

void Scrubbing::Connect() {
  const ScrubFinding& finding = pass_->scrub->finding();
  if (finding.end_offset <= finding.at.offset) {
    return Abandon("it has no bytes that a peer could show");
  }
  size_t peer = 0;
  const auto is_of_no_use = [this](size_t i) {
    return options_.peers[i].node == node_.node || pass_->tried.contains(i) ||
           pass_->silent.contains(i);
  };
  while (peer < options_.peers.size() && is_of_no_use(peer)) ++peer;
  if (peer == options_.peers.size()) {
    return Abandon("no peer that could be reached has it whole");
  }
  source_ = std::make_unique<Source>();
  source_->peer = peer;
  source_->until = clock_.NowNanos() + options_.reply_timeout_ns;
  ControlCall::Options at;
  at.address = options_.peers[peer].address;
  at.node = options_.peers[peer].node;
  at.hello = {
      node_.cluster_id, pass_->log_id, {node_.node, kScrubberIncarnation}};
  at.deadline = Deadline::AtNanos(source_->until);
  at.credentials = node_.credentials;
  source_->ring = std::make_unique<PeerRing>(
      fabric_, std::move(at), pass_->scrub->ring().capacity(), NextRange());
}

// A node ends a connection that was silent for long: such a peer may be asked
// again.
void Scrubbing::LeaveSource(const std::string& why) {
  if (source_->ring->has_answered()) {
    if (pass_->read_bytes > 0) pass_->tried.insert(source_->peer);
  } else {
    pass_->silent.insert(source_->peer);
    Report(absl::StrCat("can't repair from ",
                        DescribePeer(options_.peers[source_->peer]), ": ",
                        why));
  }
  pass_->read_bytes = 0;
  source_.reset();
}

void Scrubbing::TryNextPeer() {
  pass_->tried.insert(source_->peer);
  pass_->read_bytes = 0;
  source_.reset();
}

void Scrubbing::ContinueReading(ScrubbedReplica& replica) {
  if (source_ == nullptr) return Connect();
  PeerRing& peer = *source_->ring;
  if (const absl::Status status = peer.status(); !status.ok()) {
    return LeaveSource(std::string(status.message()));
  }
  if (peer.is_reading()) {
    if (clock_.NowNanos() >= source_->until) LeaveSource("it is silent");
    return;
  }
  const ScrubFinding& finding = pass_->scrub->finding();
  if (pass_->read_bytes > 0) {
    if (RepairWith(replica, [&] {
          return RepairedFromPeer(peer.ring(), peer.read_end(), *pass_->scrub);
        })) {
      return;
    }
    const bool is_all = peer.read_end() >= finding.end_offset;
    const bool shows_no_more =
        peer.read_end() < finding.at.offset + pass_->read_bytes;
    if (is_all || shows_no_more) return TryNextPeer();
  }
  source_->until = clock_.NowNanos() + options_.reply_timeout_ns;
  peer.Read(NextRange());
}

void Scrubbing::Restore(ScrubbedReplica& replica,
                        const RepairedRecords& repaired) {
  for (const RepairedBytes& place : repaired.places) {
    const absl::Status restored =
        replica.RestoreBytes(place.offset, place.bytes);
    if (!restored.ok()) return Abandon(restored.ToString());
  }
  const uint64_t valid_records =
      ValidInFinding(*pass_->scrub, repaired.records);
  if (valid_records < repaired.records) {
    return Abandon("the repaired record can't be read back");
  }
  Report(absl::StrCat(DescribeFinding(pass_->scrub->finding()),
                      "; repaired: ", repaired.records));
  pass_->found.damaged += repaired.records;
  pass_->found.repaired += repaired.records;
  pass_->scrub->GoBack();
  EndFinding();
}

void Scrubbing::Abandon(const std::string& why) {
  const ScrubFinding& finding = pass_->scrub->finding();
  pass_->found.damaged += finding.records();
  pass_->found.unrepairable += finding.records();
  if (pass_->unrepairable.size() < kScrubbedRunsMax) {
    pass_->unrepairable.push_back({finding.at.lsn, finding.end_lsn});
    Report(absl::StrCat(DescribeFinding(finding), "; not repaired: ", why));
  }
  pass_->scrub->PassOver();
  EndFinding();
}

void Scrubbing::EndFinding() {
  pass_->tried.clear();
  pass_->read_bytes = 0;
}

}  // namespace alpheus::recovery
