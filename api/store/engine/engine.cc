// SPDX-License-Identifier: Apache-2.0
#include "api/store/engine/engine.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "api/store/record/key_hash.h"
#include "api/store/record/store_record.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus::store {
namespace {

absl::string_view TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// How an operation is written.
Object ObjectOf(const Operation& operation) {
  const bool is_deleted = operation.kind == Operation::Kind::kDelete;
  return {.key = operation.key,
          .value = is_deleted ? std::span<const std::byte>() : operation.value,
          .is_deleted = is_deleted};
}

}  // namespace

Engine::Engine(ObjectLog& log, Options options)
    : log_(log),
      options_(std::move(options)),
      news_(std::make_shared<News>(options_.wake)) {}

// --- Recovery ---------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Engine>> Engine::Recover(ObjectLog& log,
                                                        Options options) {
  std::unique_ptr<Engine> engine(new Engine(log, std::move(options)));
  ALPHEUS_RETURN_IF_ERROR(engine->Rebuild());
  return engine;
}

absl::Status Engine::Rebuild() {
  ALPHEUS_ASSIGN_OR_RETURN(index_,
                           Index::Create(options_.allocate, [this](Slot slot) {
                             return HashOf(ObjectAt(slot).object.key);
                           }));
  return log_.ForEachRecovered(
      [this](const PlacedRecord& record) { return Recover(record); });
}

// ENG5. A cleaner's copy has the version of its original, and lies behind it.
absl::Status Engine::Recover(const PlacedRecord& record) {
  const absl::StatusOr<StoreRecordHeader> header =
      DecodeStoreRecordHeader(record.payload);
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat("record ", record.lsn.value, ": ",
                                     header.status().message()));
  }
  end_ = record.offset.value + record.payload.size();
  return ForEachObject(
      record.payload, header->count,
      [&](size_t offset, const DecodedObject& decoded) {
        const Object& object = decoded.object;
        const uint64_t hash = HashOf(object.key);
        const Slot slot(record.offset.value + offset, decoded.encoded_bytes,
                        hash, object.expires_ns.has_value());
        if (const std::optional<Slot> shown = Find(object.key, hash)) {
          const Version version = VersionOf(*shown, ObjectAt(*shown).object);
          if (VersionOf(slot, object) < version) return absl::OkStatus();
        }
        const auto has_key = [&](Slot one) { return HasKey(one, object.key); };
        const std::optional<Slot> before = index_->Find(hash, has_key);
        if (before) live_bytes_ -= before->bytes_max();
        if (object.is_deleted) {
          index_->Erase(hash, has_key);
          return absl::OkStatus();
        }
        live_bytes_ += slot.bytes_max();
        return index_->Put(hash, slot, has_key);
      });
}

// --- Objects ----------------------------------------------------------------

uint64_t Engine::HashOf(std::span<const std::byte> key) const {
  return HashKey(key, options_.hash_seed);
}

// A place is known modulo 16 TiB; no object lies further behind the end.
DecodedObject Engine::ObjectAt(Slot slot) const {
  constexpr uint64_t kWrap = (Slot::kPlaceMask + 1) * kPlaceUnitBytes;
  const uint64_t offset = end_ - ((end_ - slot.offset()) & (kWrap - 1));
  const std::span<const std::byte> ring = log_.ring();
  const std::span<const std::byte> rest = ring.subspan(offset % ring.size());
  const absl::StatusOr<DecodedObject> decoded =
      DecodeObject(rest.first(std::min<size_t>(rest.size(), slot.bytes_max())));
  ALPHEUS_CHECK(decoded.ok(), "ENG1 (engine.h)");
  return *decoded;
}

Version Engine::VersionOf(Slot slot, const Object& object) const {
  if (object.copied_version) return *object.copied_version;
  constexpr uint64_t kWrap = (Slot::kPlaceMask + 1) * kPlaceUnitBytes;
  const uint64_t offset = end_ - ((end_ - slot.offset()) & (kWrap - 1));
  return offset / kPlaceUnitBytes;
}

bool Engine::HasKey(Slot slot, std::span<const std::byte> key) const {
  return TextOf(ObjectAt(slot).object.key) == TextOf(key);
}

std::optional<Slot> Engine::Find(std::span<const std::byte> key,
                                 uint64_t hash) const {
  return index_->Find(hash, [&](Slot slot) { return HasKey(slot, key); });
}

// --- Requests ---------------------------------------------------------------

absl::Status Engine::Check(const std::vector<Operation>& operations) const {
  if (operations.empty()) {
    return absl::InvalidArgumentError("a request without an operation");
  }
  absl::flat_hash_set<absl::string_view> keys;
  size_t bytes = kStoreRecordHeaderBytes;
  for (const Operation& one : operations) {
    if (one.key.empty() || one.key.size() > kKeyBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("a key of ", one.key.size(), " bytes: a key has 1 to ",
                       kKeyBytesMax));
    }
    if (!keys.insert(TextOf(one.key)).second) {
      return absl::InvalidArgumentError(
          "a request with two operations on one key: write one request for "
          "each");
    }
    bytes += EncodedBytes(ObjectOf(one));
  }
  if (bytes <= log_.payload_bytes_max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a request of ", bytes, " bytes: this log takes records of at most ",
      log_.payload_bytes_max(), ", half its ring"));
}

void Engine::Submit(std::vector<Operation> operations, Done done) {
  const absl::Status status = failure_.ok() ? Check(operations) : failure_;
  if (!status.ok()) {
    done(status, {});
    return;
  }
  submitted_.push_back({std::move(operations), std::move(done)});
}

Engine::Newest Engine::NewestOf(const Record& record,
                                std::span<const std::byte> key,
                                uint64_t hash) const {
  const absl::string_view text = TextOf(key);
  if (const auto made = record.newest.find(text); made != record.newest.end()) {
    return made->second;
  }
  if (const auto pending = newest_.find(text); pending != newest_.end()) {
    return pending->second;
  }
  const std::optional<Slot> shown = Find(key, hash);
  if (!shown) return {};
  return {.is_there = true,
          .version = VersionOf(*shown, ObjectAt(*shown).object)};
}

bool Engine::Holds(const Condition& condition, const Newest& newest) const {
  switch (condition.kind) {
    case Condition::Kind::kAlways:
      return true;
    case Condition::Kind::kAbsent:
      return !newest.is_there;
    case Condition::Kind::kPresent:
      return newest.is_there;
    case Condition::Kind::kVersion:
      // Nobody knows a version that is not appended yet.
      if (!newest.is_there) return condition.version == 0;
      return newest.version != 0 && newest.version == condition.version;
  }
  return false;
}

bool Engine::AddTo(Record& record, Submitted& request) {
  if (!request.originals.empty()) return AddCopiesTo(record, request);
  Judged judged{.done = std::move(request.done)};
  bool holds = true;
  std::vector<Newest> newest;
  std::vector<uint64_t> hashes;
  size_t bytes = 0;
  for (const Operation& one : request.operations) {
    hashes.push_back(HashOf(one.key));
    newest.push_back(NewestOf(record, one.key, hashes.back()));
    holds = holds && Holds(one.condition, newest.back());
    bytes += EncodedBytes(ObjectOf(one));
  }
  if (record.bytes + bytes > log_.payload_bytes_max()) {
    request.done = std::move(judged.done);
    return false;
  }
  for (size_t i = 0; i < request.operations.size(); ++i) {
    const Operation& one = request.operations[i];
    judged.judged_by = std::max(judged.judged_by, newest[i].record);
    const bool is_put = one.kind == Operation::Kind::kPut;
    if (!holds || (!is_put && !newest[i].is_there)) {
      judged.outcomes.push_back({false, newest[i].version});
      judged.changes.push_back(newest[i].change);
      continue;
    }
    judged.appends = true;
    judged.outcomes.push_back({true, 0});
    judged.changes.push_back(record.changes.size());
    record.changes.push_back({.operation = &one,
                              .key = std::string(TextOf(one.key)),
                              .hash = hashes[i]});
    record.bytes += EncodedBytes(ObjectOf(one));
    record.newest[TextOf(one.key)] = {.is_there = is_put,
                                      .version = 0,
                                      .record = record.number,
                                      .change = record.changes.size() - 1};
  }
  record.judged.push_back(std::move(judged));
  return true;
}

// P-E16. In the order of the log no copy lies behind a newer version of its key.
bool Engine::AddCopiesTo(Record& record, Submitted& request) {
  size_t bytes = 0;
  for (const Object& one : request.kept) bytes += EncodedBytes(one);
  if (record.bytes + bytes > log_.payload_bytes_max()) return false;
  Judged judged{.done = std::move(request.done)};
  for (size_t i = 0; i < request.kept.size(); ++i) {
    const Object& one = request.kept[i];
    const absl::string_view key = TextOf(one.key);
    const Slot original = request.originals[i];
    const uint64_t hash = HashOf(one.key);
    const Newest newest = NewestOf(record, one.key, hash);
    if (newest.record != 0 || Find(one.key, hash) != original) {
      // The one that is newer must be durable first (CLN1 of cleaner.h).
      judged.judged_by = std::max(judged.judged_by, newest.record);
      continue;
    }
    judged.appends = true;
    record.newest[key] = {.is_there = true,
                          .version = *one.copied_version,
                          .record = record.number,
                          .change = record.changes.size()};
    record.changes.push_back({.key = std::string(key),
                              .hash = hash,
                              .kept = &one,
                              .original = original});
    record.bytes += EncodedBytes(one);
  }
  record.judged.push_back(std::move(judged));
  return true;
}

absl::Status Engine::CopyForward(const PlacedRecord& record, Done done) {
  ALPHEUS_ASSIGN_OR_RETURN(const StoreRecordHeader header,
                           DecodeStoreRecordHeader(record.payload));
  Submitted request{.operations = {}, .done = std::move(done)};
  ALPHEUS_RETURN_IF_ERROR(ForEachObject(
      record.payload, header.count,
      [&](size_t offset, const DecodedObject& decoded) {
        const Object& object = decoded.object;
        if (object.is_deleted) return absl::OkStatus();  // all older ones go
        const uint64_t hash = HashOf(object.key);
        const Slot slot(record.offset.value + offset, decoded.encoded_bytes,
                        hash, object.expires_ns.has_value());
        if (Find(object.key, hash) != slot) return absl::OkStatus();
        Object copy = object;
        copy.copied_version = VersionOf(slot, object);
        request.originals.push_back(slot);
        request.kept.push_back(copy);
        return absl::OkStatus();
      }));
  if (!failure_.ok() || request.kept.empty()) {
    request.done(failure_, {});
    return absl::OkStatus();
  }
  submitted_.push_back(std::move(request));
  return absl::OkStatus();
}

void Engine::RefusePuts(std::vector<Submitted>& submitted) {
  std::erase_if(submitted, [&](Submitted& request) {
    const bool has_put =
        std::ranges::any_of(request.operations, [](const Operation& one) {
          return one.kind == Operation::Kind::kPut;
        });
    if (has_put) {
      request.done(absl::ResourceExhaustedError(absl::StrCat(
                       "the store is full: ", live_bytes_, " of the ",
                       log_.ring().size(),
                       " bytes of its log have objects that are the newest of "
                       "their keys. Delete some, or use a larger log")),
                   {});
    }
    return has_put;
  });
}

Lsn Engine::Append() {
  Lsn last;
  std::vector<Submitted> submitted = std::exchange(submitted_, {});
  const uint64_t reserve = log_.ring().size() / kReservedParts;
  if (log_.free_bytes() < reserve) RefusePuts(submitted);
  for (auto next = submitted.begin(); next != submitted.end();) {
    Record record{.number = last_record_ + 1, .bytes = kStoreRecordHeaderBytes};
    while (next != submitted.end() && AddTo(record, *next)) ++next;
    last = std::max(last, AppendRecord(std::move(record)));
  }
  return last;
}

// ENG4. Keys and values go from the client's bytes into the log, once.
void Engine::FillIn(Record& record, RingOffset offset,
                    std::span<std::byte> payload) {
  EncodeStoreRecordHeader(
      {.count = static_cast<uint32_t>(record.changes.size())},
      payload.first<kStoreRecordHeaderBytes>());
  const auto lap = static_cast<uint8_t>(offset.value / log_.ring().size());
  size_t at = kStoreRecordHeaderBytes;
  for (Change& change : record.changes) {
    Object object =
        change.kept != nullptr ? *change.kept : ObjectOf(*change.operation);
    object.lap = lap;
    const size_t bytes = EncodedBytes(object);
    EncodeObject(object, payload.subspan(at, bytes));
    const uint64_t place = offset.value + at;
    change.slot =
        Slot(place, bytes, change.hash, object.expires_ns.has_value());
    change.version = object.is_deleted ? 0 : place / kPlaceUnitBytes;
    if (object.copied_version) change.version = *object.copied_version;
    at += bytes;
  }
}

Lsn Engine::AppendRecord(Record record) {
  absl::Status appended;
  Lsn lsn;
  bool is_filled = false;
  if (!record.changes.empty()) {
    const absl::StatusOr<PlacedRecord> placed = log_.Append(
        record.bytes, [&](RingOffset offset, std::span<std::byte> payload) {
          is_filled = true;
          FillIn(record, offset, payload);
        });
    appended = placed.status();
    if (placed.ok()) {
      lsn = placed->lsn;
      BeginForce(record, *placed);
    }
  }
  std::vector<Judged> unappended;
  std::vector<Judged> waits;
  for (Judged& one : record.judged) {
    const bool knows = one.appends || one.judged_by == record.number;
    if (!appended.ok() && knows) {
      one.done(appended, {});
      continue;
    }
    for (size_t i = 0; i < one.outcomes.size(); ++i) {
      if (one.changes[i] == kNoChange) continue;
      one.outcomes[i].version = record.changes[one.changes[i]].version;
    }
    (one.appends ? waits : unappended).push_back(std::move(one));
  }
  record.judged = std::move(waits);
  if (appended.ok() && is_filled) records_.push_back(std::move(record));
  Confirm(std::move(unappended));
  if (!appended.ok() && is_filled) Fail(appended);
  return lsn;
}

void Engine::BeginForce(Record& record, const PlacedRecord& placed) {
  end_ = placed.offset.value + placed.payload.size();
  last_record_ = record.number;
  for (Change& change : record.changes) {
    const bool is_there = change.kept != nullptr ||
                          change.operation->kind == Operation::Kind::kPut;
    change.is_deleted = !is_there;
    change.operation = nullptr;
    change.kept = nullptr;
    newest_[change.key] = {.is_there = is_there,
                           .version = change.version,
                           .record = record.number};
  }
  absl::Status begun = log_.BeginForce(placed.lsn);
  if (begun.ok()) {
    begun = log_.OnDurable(placed.lsn, [news = news_, number = record.number](
                                           const absl::Status& status) {
      news->OnDurable(number, status);
    });
  }
  if (!begun.ok()) news_->OnDurable(record.number, begun);
}

// ENG3. Asked after the requests came; one confirmation serves them all.
void Engine::Confirm(std::vector<Judged> judged) {
  if (judged.empty()) return;
  const uint64_t number = ++last_confirmation_;
  for (Judged& one : judged) {
    one.confirmation = number;
    unappended_.push_back(std::move(one));
  }
  const absl::Status asked =
      log_.OnEpochConfirmed([news = news_, number](const absl::Status& status) {
        news->OnConfirmed(number, status);
      });
  if (!asked.ok()) news_->OnConfirmed(number, asked);
}

bool Engine::Poll() {
  const News::State news = news_->state();
  bool did_any = false;
  while (!records_.empty() && records_.front().number <= news.durable) {
    Record record = std::move(records_.front());
    records_.pop_front();
    Show(record);
    did_any = true;
  }
  std::vector<Judged> answered;
  std::erase_if(unappended_, [&](Judged& one) {
    if (one.confirmation > news.confirmed || one.judged_by > durable_) {
      return false;
    }
    answered.push_back(std::move(one));
    return true;
  });
  for (const Judged& one : answered) one.done(absl::OkStatus(), one.outcomes);
  if (!news.failure.ok() && failure_.ok()) Fail(news.failure);
  return did_any || !answered.empty();
}

// ENG1, ENG2.
void Engine::Show(Record& record) {
  absl::Status shown;
  for (const Change& change : record.changes) {
    const auto key = AsBytes(change.key);
    const auto has_key = [&](Slot slot) { return HasKey(slot, key); };
    const std::optional<Slot> before = index_->Find(change.hash, has_key);
    if (change.is_deleted) {
      index_->Erase(change.hash, has_key);
    } else if (!change.original.is_empty()) {
      index_->Replace(change.hash, change.original, change.slot);  // P-O13
    } else {
      shown.Update(index_->Put(change.hash, change.slot, has_key));
    }
    if (before) live_bytes_ -= before->bytes_max();
    if (!change.is_deleted) live_bytes_ += change.slot.bytes_max();
    const auto newest = newest_.find(change.key);
    // A record may change a key more than once.
    const bool is_there = newest != newest_.end();
    if (is_there && newest->second.record == record.number) {
      newest_.erase(newest);
    }
  }
  durable_ = record.number;
  if (!shown.ok()) {
    // It is durable, and can't be found before the store is opened again.
    records_.push_front(std::move(record));
    Fail(shown);
    return;
  }
  for (const Judged& one : record.judged) {
    one.done(absl::OkStatus(), one.outcomes);
  }
}

void Engine::Fail(const absl::Status& failure) {
  failure_ = failure;
  std::vector<Done> waiting;
  for (Submitted& one : std::exchange(submitted_, {})) {
    waiting.push_back(std::move(one.done));
  }
  for (Record& record : std::exchange(records_, {})) {
    for (Judged& one : record.judged) waiting.push_back(std::move(one.done));
  }
  for (Judged& one : std::exchange(unappended_, {})) {
    waiting.push_back(std::move(one.done));
  }
  for (const Done& done : waiting) done(failure_, {});
}

// --- Readers ----------------------------------------------------------------

std::optional<Engine::Found> Engine::Get(std::span<const std::byte> key) const {
  const std::optional<Slot> slot = Find(key, HashOf(key));
  if (!slot) return std::nullopt;
  const DecodedObject decoded = ObjectAt(*slot);
  return Found{decoded.object.value, VersionOf(*slot, decoded.object)};
}

std::optional<uint64_t> Engine::Scan(
    uint64_t cursor,
    absl::FunctionRef<void(std::span<const std::byte> key, const Found& found)>
        visit) const {
  return index_->Scan(cursor, [&](Slot slot) {
    const DecodedObject decoded = ObjectAt(slot);
    const Object& object = decoded.object;
    // Those before the cursor were shown.
    if (Index::ScanOrder(HashOf(object.key)) < cursor) return;
    visit(object.key, {object.value, VersionOf(slot, object)});
  });
}

}  // namespace alpheus::store
