// SPDX-License-Identifier: Apache-2.0
#include "recovery/follow/remote_tail.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "quorum/arithmetic/quorum.h"
#include "recovery/follow/durable_range.h"

namespace alpheus::recovery {
namespace {

// Bytes of a chunk: few for a log that is written slowly, many for one that is
// read from its start.
constexpr uint64_t kChunkBytesMin = uint64_t{16} << 10;
constexpr uint64_t kChunkBytesMax = uint64_t{1} << 20;

Lsn PersistedOf(const FollowedReplica& replica) {
  const Followed& said = *replica.said();
  const std::vector<EpochEntry>& epochs = replica.table().entries();
  const Lsn before = epochs.empty() ? Lsn(0) : epochs.back().start_lsn - 1;
  return std::max(before, said.persisted_lsn);
}

std::optional<ReplicaEvidence> EvidenceOf(const FollowedReplica* replica) {
  if (replica == nullptr || !replica->said()) return std::nullopt;
  const Followed& said = *replica->said();
  ReplicaEvidence evidence;
  evidence.log_epoch = said.log_epoch;
  evidence.counts = !said.repairing;
  evidence.watermark_lsn = PersistedOf(*replica);
  evidence.named_lsn = std::max(said.durable_lsn, said.head.lsn - 1);
  return evidence;
}

}  // namespace

RemoteTail::RemoteTail(fabric::Fabric& fabric, const Clock& clock,
                       Options options)
    : fabric_(fabric),
      clock_(clock),
      options_(std::move(options)),
      next_lsn_(options_.from),
      chunk_bytes_(kChunkBytesMin) {
  for (const Member& member : options_.members) {
    replicas_.emplace_back().member = member;
  }
}

bool RemoteTail::OnConnectionEvent(const fabric::ConnectionEvent& event) {
  return std::ranges::any_of(replicas_, [&event](const TailedReplica& replica) {
    return replica.followed != nullptr &&
           replica.followed->OnConnectionEvent(event);
  });
}

bool RemoteTail::OnCompletion(const fabric::Completion& completion) {
  for (TailedReplica& replica : replicas_) {
    if (replica.followed == nullptr ||
        !replica.followed->OnCompletion(completion)) {
      continue;
    }
    replica.silent_until_ns = clock_.NowNanos() + options_.reply_timeout_ns;
    return true;
  }
  return false;
}

void RemoteTail::Poll() {
  const int64_t now = clock_.NowNanos();
  for (TailedReplica& replica : replicas_) {
    if (replica.member.is_asked) Care(replica, now);
  }
  if (status_.ok()) Advance();
}

// --- Replicas ----------------------------------------------------------------

void RemoteTail::Care(TailedReplica& replica, int64_t now) {
  if (replica.followed == nullptr) {
    if (now >= replica.due_ns) Connect(replica, now);
    return;
  }
  FollowedReplica& followed = *replica.followed;
  CheckList(replica);
  if (!followed.status().ok()) return Abandon(replica, followed.status(), now);
  if (followed.answers() > replica.answers) {
    replica.answers = followed.answers();
    replica.is_settled |= replica.answers > replica.stale;
    replica.due_ns = replica.is_settled ? now + options_.poll_ns : now;
    Learn();
  }
  if (!followed.may_ask() || followed.is_reading()) {
    if (now <= replica.silent_until_ns) return;
    return Abandon(
        replica,
        absl::UnavailableError(absl::StrCat(
            replica.member.address, ": silent for ",
            options_.reply_timeout_ns / 1'000'000,
            " ms; the node has stopped, or the network to it is down")),
        now);
  }
  const bool is_of_chunk = source_ == &replica && (stage_ == Stage::kReading ||
                                                   stage_ == Stage::kChecking);
  if (is_of_chunk || now < replica.due_ns) return;
  replica.silent_until_ns = now + options_.reply_timeout_ns;
  followed.Ask();
}

void RemoteTail::Connect(TailedReplica& replica, int64_t now) {
  ControlCall::Options at;
  at.address = replica.member.address;
  at.node = replica.member.node;
  at.hello = {options_.cluster_id, options_.log_id, options_.self};
  at.deadline = Deadline::AtNanos(now + options_.reply_timeout_ns);
  at.credentials = options_.credentials;
  replica.answers = 0;
  replica.stale = 0;
  replica.silent_until_ns = now + options_.reply_timeout_ns;
  replica.followed =
      std::make_unique<FollowedReplica>(fabric_, std::move(at), List());
}

ReadersList RemoteTail::List() const {
  return {options_.configuration_id, static_cast<uint32_t>(replicas_.size()),
          options_.write_quorum, options_.list_file};
}

// RT5: ends the tail, whatever the others say.
void RemoteTail::CheckList(const TailedReplica& replica) {
  const uint64_t shown = replica.followed->configuration_id();
  if (!status_.ok() || !IsOutdated(List(), shown)) return;
  const absl::Status why = Outdated(List(), shown);
  status_ = {why.code(),
             absl::StrCat("node ", replica.member.node.value, " at ",
                          replica.member.address, ": ", why.message())};
}

// A whole chunk is still shown; an unfinished one comes from another replica.
void RemoteTail::Abandon(TailedReplica& replica, const absl::Status& why,
                         int64_t now) {
  if (source_ == &replica && stage_ != Stage::kShowing) {
    stage_ = Stage::kIdle;
    source_ = nullptr;
  }
  replica.absence = why;
  replica.is_settled = true;
  replica.due_ns = now + options_.retry_ns;
  replica.followed.reset();
}

void RemoteTail::Learn() {
  Epoch newest;
  std::vector<std::optional<ReplicaEvidence>> evidence;
  for (const TailedReplica& replica : replicas_) {
    evidence.push_back(EvidenceOf(replica.followed.get()));
    if (evidence.back()) newest = std::max(newest, evidence.back()->log_epoch);
  }
  newest_ = std::max(newest_, newest);
  const Lsn known = FindDurableRange(options_.write_quorum, evidence).known;
  if (known <= durable_lsn_) return;
  durable_lsn_ = known;
  durable_epoch_ = std::max(durable_epoch_, newest);
}

// RT2.
bool RemoteTail::MayBeRead(const TailedReplica& replica) const {
  if (replica.followed == nullptr || !replica.followed->said()) return false;
  const Followed& said = *replica.followed->said();
  return !said.repairing && said.log_epoch >= durable_epoch_;
}

Lsn RemoteTail::ReadableLsn(const TailedReplica& replica) const {
  const Lsn persisted = PersistedOf(*replica.followed);
  return std::min(durable_lsn_, persisted);
}

// --- Records -----------------------------------------------------------------

void RemoteTail::Advance() {
  if (stage_ == Stage::kReading && source_->followed->may_ask() &&
      !source_->followed->is_reading()) {
    asked_ = source_->followed->answers();
    source_->silent_until_ns = clock_.NowNanos() + options_.reply_timeout_ns;
    source_->followed->Ask();
    stage_ = Stage::kChecking;
  }
  if (stage_ == Stage::kChecking && source_->followed->answers() > asked_) {
    Check();
  }
  if (stage_ != Stage::kIdle) return;
  CheckOvertaken();
  if (!status_.ok()) return;
  if (TailedReplica* const source = ChooseSource(); source != nullptr) {
    Begin(*source);
  }
}

void RemoteTail::CheckOvertaken() {
  bool is_any = false;
  Lsn least;
  for (const TailedReplica& replica : replicas_) {
    if (!MayBeRead(replica)) continue;
    const Lsn head = replica.followed->said()->head.lsn;
    least = is_any ? std::min(least, head) : head;
    is_any = true;
  }
  if (!is_any) return;
  head_lsn_ = least;
  // The first record is wherever the log begins when it is read.
  if (next_lsn_ == Lsn(0)) return;
  if (next_lsn_ >= head_lsn_) return;
  status_ = absl::OutOfRangeError(absl::StrCat(
      "LSN ", next_lsn_.value, " was cleaned before it was read; the log ",
      "begins at LSN ", head_lsn_.value, " now. Go on there"));
}

RemoteTail::TailedReplica* RemoteTail::ChooseSource() {
  TailedReplica* chosen = nullptr;
  bool may_another = false;
  const TailedReplica* damaged = nullptr;
  for (TailedReplica& replica : replicas_) {
    if (!MayBeRead(replica)) {
      may_another |= !replica.is_settled && replica.member.is_asked;
      continue;
    }
    if (replica.damaged_lsn != Lsn(0) && replica.damaged_lsn == place_.lsn) {
      damaged = &replica;
      continue;
    }
    may_another = true;
    if (!HasNext(replica) || !replica.followed->may_ask()) continue;
    if (chosen == nullptr || &replica == source_) chosen = &replica;
  }
  if (damaged != nullptr && !may_another) {
    status_ = absl::DataLossError(absl::StrCat(
        "LSN ", place_.lsn.value, " at ring offset ", place_.offset.value,
        " is durable, but can't be read from any replica in reach; the last "
        "one tried was that of ",
        damaged->member.address,
        "; `alpheus verify --cluster FILE --log NAME` shows more"));
  }
  return chosen;
}

bool RemoteTail::HasNext(const TailedReplica& replica) const {
  const Lsn head = replica.followed->said()->head.lsn;
  const Lsn next = next_lsn_ == Lsn(0) ? head : next_lsn_;
  return head <= next && next <= ReadableLsn(replica);
}

absl::Status RemoteTail::MakeRing(uint64_t capacity) {
  if (ring_ != nullptr && capacity == capacity_) return absl::OkStatus();
  if (ring_ != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("its ring has ", capacity,
                     " bytes, those of other replicas ", capacity_));
  }
  // Not cleared: pages are allocated when they are read into.
  ring_bytes_.reset(new (std::nothrow) std::byte[capacity]);
  if (ring_bytes_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a ring of ", capacity, " bytes"));
  }
  capacity_ = capacity;
  ALPHEUS_ASSIGN_OR_RETURN(ring_, replication::RegisteredBytes::Make(
                                      fabric_, {ring_bytes_.get(), capacity},
                                      fabric::RemoteAccess::kNone));
  return absl::OkStatus();
}

void RemoteTail::Begin(TailedReplica& source) {
  FollowedReplica& followed = *source.followed;
  const int64_t now = clock_.NowNanos();
  if (const absl::Status made = MakeRing(followed.ring_capacity());
      !made.ok()) {
    return Abandon(source, made, now);
  }
  const LogPosition& head = followed.said()->head;
  if (place_.lsn < head.lsn) place_ = head;
  source_ = &source;
  chunk_epoch_ = followed.said()->log_epoch;
  table_ = followed.table();
  readable_lsn_ = ReadableLsn(source);
  chunk_bytes_ = std::min(chunk_bytes_, capacity_);
  source.silent_until_ns = now + options_.reply_timeout_ns;
  followed.Read(*ring_, place_.offset, chunk_bytes_);
  stage_ = Stage::kReading;
}

// RT3.
void RemoteTail::Check() {
  const Followed& said = *source_->followed->said();
  const bool has_changed = said.log_epoch != chunk_epoch_ || said.repairing ||
                           said.head.lsn > place_.lsn;
  if (has_changed) {
    stage_ = Stage::kIdle;
    return;
  }
  // Cleaned records are shown, too: payloads are checked below.
  cursor_.emplace(Ring(ring_bytes_.get(), capacity_), table_, place_,
                  place_.offset + chunk_bytes_, RecordCursor::Payloads::kSkip);
  is_any_walked_ = false;
  stage_ = Stage::kShowing;
}

std::optional<RemoteTail::Record> RemoteTail::Next() {
  while (stage_ == Stage::kShowing) {
    if (place_.lsn > readable_lsn_ ||
        cursor_->Next() != RecordCursor::Step::kRecord) {
      EndChunk(/*is_damaged=*/false);
      break;
    }
    const RecordView& record = cursor_->record();
    if (!PayloadIsValid(record.seed, record.header, record.payload)) {
      EndChunk(/*is_damaged=*/true);
      break;
    }
    is_any_walked_ = true;
    place_ = cursor_->position();
    if (record.lsn() < next_lsn_) continue;
    next_lsn_ = record.lsn() + 1;
    if (record.aborted()) continue;
    return Record{record.lsn(), record.epoch(), record.payload};
  }
  return std::nullopt;
}

// An unreadable header may only mean that its record extends past the chunk,
// unless the chunk is the whole ring: the chunk is doubled.
void RemoteTail::EndChunk(bool is_damaged) {
  stage_ = Stage::kIdle;
  if (place_.lsn > readable_lsn_) {
    chunk_bytes_ = kChunkBytesMin;
  } else if (is_any_walked_ && !is_damaged) {
    chunk_bytes_ = std::min(2 * chunk_bytes_, kChunkBytesMax);
  } else if (!is_damaged && chunk_bytes_ < capacity_) {
    chunk_bytes_ *= 2;
  } else {
    source_->damaged_lsn = place_.lsn;
    chunk_bytes_ = kChunkBytesMin;
  }
}

void RemoteTail::AskAgain() {
  for (TailedReplica& replica : replicas_) {
    const FollowedReplica* const followed = replica.followed.get();
    if (followed == nullptr || !followed->said()) continue;
    // An awaited answer may have been given before this call.
    replica.stale = followed->answers() + (followed->may_ask() ? 0 : 1);
    replica.is_settled = false;
    replica.due_ns = 0;
  }
}

// --- What it says ------------------------------------------------------------

Deadline RemoteTail::NextPoll() const {
  Deadline next;
  for (const TailedReplica& replica : replicas_) {
    if (!replica.member.is_asked) continue;
    const FollowedReplica* const followed = replica.followed.get();
    const bool is_busy =
        followed != nullptr && (!followed->may_ask() || followed->is_reading());
    const int64_t at = is_busy ? replica.silent_until_ns + 1 : replica.due_ns;
    if (at < next.at_nanos()) next = Deadline::AtNanos(at);
  }
  return next;
}

bool RemoteTail::is_caught_up() const {
  return stage_ != Stage::kShowing && next_lsn() > durable_lsn_ &&
         is_in_reach() && is_settled() && Doubt().ok();
}

bool RemoteTail::AsksAll() const {
  return std::ranges::all_of(replicas_, [](const TailedReplica& replica) {
    return replica.member.is_asked;
  });
}

// RT5. A tail that asks one member only gives what that member knows.
absl::Status RemoteTail::Doubt() const {
  std::vector<std::optional<ReplicaEvidence>> evidence;
  uint32_t heard = 0;
  const TailedReplica* above = nullptr;
  bool is_list_known = false;
  for (const TailedReplica& replica : replicas_) {
    evidence.push_back(EvidenceOf(replica.followed.get()));
    if (!evidence.back()) continue;
    ++heard;
    const Followed& said = *replica.followed->said();
    if (said.promised.epoch > newest_) above = &replica;
    is_list_known |= said.configuration_id >= options_.configuration_id;
  }
  if (heard == 0) {
    return absl::UnavailableError(
        absl::StrCat("no node answers: ", Absences().message()));
  }
  const auto members = static_cast<uint32_t>(replicas_.size());
  const uint32_t write_quorum = options_.write_quorum;
  const uint32_t opening = quorum::OpeningQuorumSize(
      {members, write_quorum, members - write_quorum + 1});
  const bool may_be_elsewhere =
      FindDurableRange(write_quorum, evidence).unheard >= write_quorum;
  if (AsksAll() && may_be_elsewhere && heard < members - opening + 1) {
    return absl::UnavailableError(absl::StrCat(
        members - heard, " of ", members,
        " members did not answer: another epoch may be open on them, and more "
        "records may be durable than the members in reach know. ",
        Absences().message()));
  }
  if (!is_list_known) {
    return absl::UnavailableError(
        absl::StrCat("no member in reach has configuration ",
                     options_.configuration_id, " of ", options_.list_file,
                     ": the members that have it, or a later one, may know of "
                     "more durable records. ",
                     Absences().message()));
  }
  if (above == nullptr || (!may_be_elsewhere && heard >= opening)) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "node ", above->member.node.value, " has promised epoch ",
      above->followed->said()->promised.epoch.value,
      ", and no member in reach has an epoch above ", newest_.value,
      ": more records may be durable than the members in reach know. ",
      Absences().message()));
}

bool RemoteTail::is_settled() const {
  return std::ranges::all_of(replicas_, [](const TailedReplica& replica) {
    return replica.is_settled || !replica.member.is_asked;
  });
}

bool RemoteTail::is_in_reach() const {
  return std::ranges::any_of(replicas_, [](const TailedReplica& replica) {
    return replica.followed != nullptr && replica.followed->said();
  });
}

NodeId RemoteTail::source() const {
  return source_ == nullptr ? NodeId(0) : source_->member.node;
}

absl::Status RemoteTail::Absences() const {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string text;
  for (const TailedReplica& replica : replicas_) {
    const bool is_here =
        replica.followed != nullptr && replica.followed->said().has_value();
    if (is_here || replica.absence.ok()) continue;
    const bool is_first = code == absl::StatusCode::kOk;
    if (is_first) code = replica.absence.code();
    if (replica.absence.code() != code) code = absl::StatusCode::kUnavailable;
    absl::StrAppend(&text, is_first ? "" : ". ", "node ",
                    replica.member.node.value, " at ",
                    replica.absence.message());
  }
  return {code, text};
}

}  // namespace alpheus::recovery
