// SPDX-License-Identifier: Apache-2.0
#include "api/service/log/service_log.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mutex.h"
#include "log/base/status_macros.h"

namespace alpheus::service {
namespace {

// A record has a header, and ends with a line of the ring.
constexpr uint64_t kRecordOverhead = 2 * kLineBytes;

// Parts of a record that has one payload: the envelope, and that.
constexpr size_t kPartsOfOne = 2;

// Returns the room that a record with this payload may take: at the ring's end
// it leaves unused what is too small for it.
uint64_t RoomFor(uint64_t payload) { return 2 * (payload + kRecordOverhead); }

// The finding for a record that the log refused, with nothing written.
Finding Refusal(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return Finding::kTooLarge;
    case absl::StatusCode::kResourceExhausted:
      return Finding::kNoRoom;
    case absl::StatusCode::kDeadlineExceeded:
      return Finding::kHeldUp;
    default:
      return Finding::kFailed;
  }
}

// The finding for a request that is not admitted.
Finding Refusal(Admission admission) {
  switch (admission) {
    case Admission::kSuperseded:
      return Finding::kSuperseded;
    case Admission::kClosed:
      return Finding::kClosed;
    case Admission::kOutOfOrder:
      return Finding::kOutOfOrder;
    case Admission::kTooMany:
      return Finding::kTooMany;
    default:
      return Finding::kImpossible;
  }
}

// The verdict on a request that the table answers.
Verdict VerdictOf(const Judgement& judgement) {
  Verdict verdict;
  verdict.settled_with = judgement.durable_with.lsn;
  if (judgement.admission == Admission::kRepeated) {
    verdict.finding = Finding::kRepeated;
    verdict.place = judgement.place;
  } else {
    verdict.finding = Refusal(judgement.admission);
    verdict.expected = judgement.expected;
  }
  return verdict;
}

}  // namespace

absl::Status ServiceLog::Recover(const Place& place,
                                 std::span<const std::byte> payload) {
  ALPHEUS_ASSIGN_OR_RETURN(const ServiceRecord record,
                           DecodeServiceRecord(payload));
  const MutexLock lock(mutex_);
  if (record.envelope.kind != ServiceRecordKind::kTable &&
      record.envelope.kind != ServiceRecordKind::kKeys) {
    last_request_ = place.lsn;
  }
  return table_.Apply(record, place);
}

void ServiceLog::Append(Epoch epoch, std::span<const AppendRequest> requests,
                        std::vector<Verdict>* verdicts) {
  verdicts->reserve(verdicts->size() + requests.size());
  if (epoch != epoch_) {  // SLG1
    verdicts->insert(verdicts->end(), requests.size(),
                     {.finding = Finding::kWrongEpoch});
    return;
  }
  const MutexLock lock(mutex_);
  for (const AppendRequest& request : requests) {
    verdicts->push_back(AppendOne(request));
  }
}

Verdict ServiceLog::AppendOne(const AppendRequest& request) {
  ClientRequests* const client = Table().Find(request.client);
  if (client == nullptr) return {.finding = Finding::kUnknownClient};
  const Judgement judgement = client->Judge(request.number);
  if (judgement.admission != Admission::kAdmitted) return VerdictOf(judgement);
  if (const auto mismatch = Mismatch(request, *client)) return *mismatch;
  if (!LetsExpose(request.max_exposed)) {
    return {.finding = Finding::kTooExposed};
  }
  Envelope envelope = {ServiceRecordKind::kAppend, request.tag, request.client,
                       request.number.sequence};
  if (request.payloads.size() == 1) return Write(envelope, request.payloads);
  if (request.payloads.empty() || request.payloads.size() > kBatchMax) {
    return {.finding = Finding::kTooLarge, .expected = kBatchMax};
  }
  envelope.kind = ServiceRecordKind::kBatch;
  const std::vector<std::byte> head = EncodeBatchHead(request.payloads);
  std::vector<std::span<const std::byte>> body;
  body.reserve(request.payloads.size() + 1);
  body.emplace_back(head);
  body.insert(body.end(), request.payloads.begin(), request.payloads.end());
  return Write(envelope, body);
}

std::optional<Verdict> ServiceLog::Mismatch(
    const AppendRequest& request, const ClientRequests& client) const {
  const Lsn next = log_.next_lsn();
  const bool is_other_place =
      request.expected_lsn && *request.expected_lsn != next;
  const bool is_other_client =
      request.only_if_last && client.last_place().lsn != last_request_;
  if (!is_other_place && !is_other_client) return std::nullopt;
  return Verdict{Finding::kTailMismatch, std::nullopt, Lsn(next.value - 1),
                 next.value};
}

// SLG9. The durable LSN first: what becomes durable meanwhile counts as
// exposed.
bool ServiceLog::LetsExpose(uint64_t max_exposed) const {
  if (max_exposed == 0) return true;
  const Lsn durable = log_.durable_lsn();
  return log_.next_lsn().value - durable.value <= max_exposed;
}

bool ServiceLog::HasRoomFor(size_t bytes) const {
  // With one that begins.
  const uint64_t clients = table_.size() + 1;
  const uint64_t keys = table_.keys() + 1;
  return log_.free_bytes() >=
         RoomFor(bytes) + RoomFor(kEnvelopeBytes + clients * kTableEntryBytes) +
             RoomFor(kEnvelopeBytes + keys * kKeyEntryBytes);
}

Verdict ServiceLog::Write(const Envelope& envelope,
                          std::span<const std::span<const std::byte>> body) {
  size_t bytes = 0;
  for (const auto part : body) bytes += part.size();
  if (bytes > request_bytes_max()) {
    return {.finding = Finding::kTooLarge, .expected = request_bytes_max()};
  }
  if (!HasRoomFor(kEnvelopeBytes + bytes)) {  // SLG7
    return {.finding = Finding::kNoRoom};
  }
  std::array<std::byte, kEnvelopeBytes> head;
  EncodeEnvelope(envelope, head);
  absl::InlinedVector<std::span<const std::byte>, kPartsOfOne> parts;
  parts.reserve(body.size() + 1);
  parts.emplace_back(head);
  parts.insert(parts.end(), body.begin(), body.end());
  const absl::StatusOr<Place> place = log_.Append(parts);
  if (!place.ok()) {
    return {.finding = Refusal(place.status()),
            .expected = request_bytes_max()};
  }
  table_.Note(envelope, *place);
  const bool is_request = envelope.kind == ServiceRecordKind::kAppend ||
                          envelope.kind == ServiceRecordKind::kBatch;
  if (counts_ != nullptr && is_request) counts_->NoteAppended(bytes);
  last_request_ = place->lsn;
  return {Finding::kAppended, *place, place->lsn};
}

Verdict ServiceLog::Open(Epoch epoch, const std::optional<ClientKey>& key) {
  if (epoch != epoch_) return {.finding = Finding::kWrongEpoch};
  const MutexLock lock(mutex_);
  if (!key) return Write({.kind = ServiceRecordKind::kOpen}, {});
  if (const auto known = Table().FindByKey(*key)) {  // SLG10
    return {Finding::kRepeated, known->opened, known->opened.lsn};
  }
  const std::span<const std::byte> body = *key;
  const Verdict opened =
      Write({.kind = ServiceRecordKind::kOpenByKey}, {&body, 1});
  if (opened.finding == Finding::kAppended) {
    const KeyEntry entry = {{*opened.place}, *key};
    table_.NoteKeys({&entry, 1}, opened.place->lsn);
  }
  return opened;
}

Verdict ServiceLog::Close(Epoch epoch, ClientId client) {
  if (epoch != epoch_) return {.finding = Finding::kWrongEpoch};
  const MutexLock lock(mutex_);
  const ClientRequests* const known = Table().Find(client);
  if (known == nullptr) return {.finding = Finding::kUnknownClient};
  if (known->is_closed()) {
    return {Finding::kRepeated, known->last_place(), known->last_place().lsn};
  }
  return Write({.kind = ServiceRecordKind::kClose,
                .client = client,
                .sequence = known->last()},
               {});
}

Resumed ServiceLog::Resume(ClientId client, uint64_t lowest_unanswered,
                           Epoch last_epoch) {
  Resumed resumed;
  if (last_epoch > epoch_) {  // a later primary may have what this one lacks
    resumed.verdict.finding = Finding::kWrongEpoch;
    return resumed;
  }
  const MutexLock lock(mutex_);
  ClientRequests* const known = Table().Find(client);
  if (known == nullptr) {
    resumed.verdict.finding = Finding::kUnknownClient;
    return resumed;
  }
  resumed.resumption = known->Resume(lowest_unanswered);
  resumed.verdict = {Finding::kRepeated, known->last_place(),
                     known->last_place().lsn};
  resumed.last = known->last();
  resumed.is_closed = known->is_closed();
  resumed.places.assign(known->places().begin(), known->places().end());
  return resumed;
}

Verdict Resumed::On(uint64_t sequence) const {
  if (sequence == 0) return {.finding = Finding::kImpossible};
  if (verdict.finding != Finding::kRepeated) return verdict;
  if (sequence > last) return {.finding = Finding::kNever};  // SLG4
  Verdict repeated = {Finding::kRepeated, std::nullopt, verdict.settled_with};
  const auto found =
      std::ranges::lower_bound(places, sequence, {}, &Placed::sequence);
  if (found != places.end() && found->sequence == sequence) {
    repeated.place = found->place;
  }
  return repeated;
}

void ServiceLog::Settle(std::span<const Verdict> verdicts,
                        std::optional<PersistedBy> by,
                        const std::function<void(const absl::Status&)>& done) {
  Lsn own;   // the last record that a request has
  Lsn rest;  // what the other findings came of
  for (const Verdict& verdict : verdicts) {
    Lsn& last = verdict.is_in_log() ? own : rest;
    last = std::max(last, verdict.settled_with);
  }
  if (!by) own = Lsn();
  const PersistedBy own_by = by.value_or(PersistedBy::kQuorum);
  if (rest == Lsn()) {
    WhenPersisted(own, own_by, done);
    return;
  }
  // Both are under way then; WhenPersisted tells of an error.
  if (own > rest) (void)log_.BeginForce(own);
  WhenPersisted(rest, PersistedBy::kQuorum,
                [this, own, own_by, done](const absl::Status& is_durable) {
                  if (is_durable.ok()) {
                    WhenPersisted(own, own_by, done);
                  } else {
                    done(is_durable);
                  }
                });
}

void ServiceLog::WhenPersisted(
    Lsn lsn, PersistedBy by,
    const std::function<void(const absl::Status&)>& done) {
  if (lsn == Lsn()) {
    done(absl::OkStatus());
    return;
  }
  absl::Status begun = log_.BeginForce(lsn);
  if (begun.ok()) begun = log_.OnPersisted(lsn, by, done);
  if (!begun.ok()) done(begun);
}

bool ServiceLog::AwaitRoom(const std::function<void()>& go_on) {
  // A log that has failed says so of each request.
  const auto told = [go_on](const absl::Status&) { go_on(); };
  const Lsn last = log_.next_lsn() - 1;
  if (log_.durable_lsn() < last) {
    WhenPersisted(last, PersistedBy::kQuorum, told);
    return true;
  }
  const absl::StatusOr<bool> waits = log_.OnResumed(told);
  if (!waits.ok()) go_on();
  return !waits.ok() || *waits;
}

// SLG8.
void ServiceLog::BeginRead(
    Consistency consistency, Lsn through,
    const std::function<void(const absl::StatusOr<Lsn>&)>& done) {
  const bool is_settled = through != Lsn() && through <= log_.durable_lsn();
  if (consistency == Consistency::kLocal || is_settled) {
    done(log_.durable_lsn());
    return;
  }
  const absl::Status asked =
      log_.OnEpochConfirmed([this, done](const absl::Status& confirmed) {
        if (confirmed.ok()) {
          done(log_.durable_lsn());
        } else {
          done(confirmed);
        }
      });
  if (!asked.ok()) done(asked);
}

void ServiceLog::CleanupThrough(Lsn through,
                                std::function<void(const absl::Status&)> done) {
  absl::Status saved;
  Lsn rests_on;  // SLG5
  {
    const MutexLock lock(mutex_);
    if (through >= log_.next_lsn()) {
      saved = absl::OutOfRangeError(
          absl::StrCat("LSN ", through.value,
                       " was never assigned, so it can't be cleaned; ",
                       "the next one is LSN ", log_.next_lsn().value));
    } else {
      if (last_request_ != Lsn()) {
        through = std::min(through, last_request_ - 1);  // SLG6
      }
      saved = WriteTables(through);
      rests_on = log_.next_lsn() - 1;
    }
  }
  if (!saved.ok() || through == Lsn()) {
    done(saved);
    return;
  }
  const auto clean = [this, through,
                      done = std::move(done)](const absl::Status& is_durable) {
    absl::Status cleaned = is_durable;
    if (cleaned.ok()) cleaned = log_.CleanupThrough(through);
    // Callbacks of one log run one at a time.
    if (cleaned.ok()) {
      cleaned_.store(std::max(cleaned_.load(), through.value));
    }
    done(cleaned);
  };
  WhenPersisted(rests_on, PersistedBy::kQuorum, clean);
}

absl::StatusOr<Lsn> ServiceLog::WriteOwn(ServiceRecordKind kind,
                                         std::span<const std::byte> body) {
  std::array<std::byte, kEnvelopeBytes> head;
  EncodeEnvelope({.kind = kind}, head);
  const std::array<std::span<const std::byte>, 2> parts = {head, body};
  ALPHEUS_ASSIGN_OR_RETURN(const Place place, log_.Append(parts));
  return place.lsn;
}

// Tables before keys: a key counts for a client that is known (CLT4).
absl::Status ServiceLog::WriteTables(Lsn through) {
  const size_t body_bytes_max = log_.payload_bytes_max() - kEnvelopeBytes;
  const std::vector<TableEntry> entries = Table().ToSaveBefore(through);
  const std::span<const TableEntry> all(entries);
  size_t fitting = body_bytes_max / kTableEntryBytes;
  for (size_t at = 0; at < all.size(); at += fitting) {
    const auto some = all.subspan(at, std::min(fitting, all.size() - at));
    ALPHEUS_ASSIGN_OR_RETURN(
        const Lsn lsn, WriteOwn(ServiceRecordKind::kTable, EncodeTable(some)));
    table_.NoteTable(some, lsn);
  }
  const std::vector<KeyEntry> saved = table_.KeysToSaveBefore(through);
  const std::span<const KeyEntry> keys(saved);
  fitting = body_bytes_max / kKeyEntryBytes;
  for (size_t at = 0; at < keys.size(); at += fitting) {
    const auto some = keys.subspan(at, std::min(fitting, keys.size() - at));
    ALPHEUS_ASSIGN_OR_RETURN(
        const Lsn lsn, WriteOwn(ServiceRecordKind::kKeys, EncodeKeys(some)));
    table_.NoteKeys(some, lsn);
  }
  return absl::OkStatus();
}

ClientTable& ServiceLog::Table() {
  if (cleaned_.load(std::memory_order_relaxed) != 0) {
    table_.OnCleaned(Lsn(cleaned_.exchange(0)));
  }
  return table_;
}

size_t ServiceLog::clients() {
  const MutexLock lock(mutex_);
  return Table().open();
}

size_t ServiceLog::known_clients() {
  const MutexLock lock(mutex_);
  return Table().size();
}

std::vector<TableEntry> ServiceLog::ListOpen(ClientId after, size_t max) {
  const MutexLock lock(mutex_);
  return Table().ListOpen(after, max);
}

}  // namespace alpheus::service
