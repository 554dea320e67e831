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

// Returns what a copy of the object takes: a first one has the version of the
// original, too.
size_t BytesAsCopy(const Object& object) {
  return EncodedBytes(object) + (object.copied_version ? 0 : sizeof(Version));
}

}  // namespace

Engine::Engine(ObjectLog& log, Options options)
    : log_(log),
      options_(std::move(options)),
      news_(std::make_shared<News>(options_.wake)),
      room_(log.ring().size()) {}

// --- Recovery ---------------------------------------------------------------

absl::StatusOr<std::unique_ptr<Engine>> Engine::Recover(ObjectLog& log,
                                                        Options options) {
  if (log.ring().size() < Room::kRingBytesMin) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a ring of ", log.ring().size(), " bytes: a store needs a log of ",
        Room::kRingBytesMin, " or more"));
  }
  std::unique_ptr<Engine> engine(new Engine(log, std::move(options)));
  ALPHEUS_RETURN_IF_ERROR(engine->Rebuild());
  return engine;
}

absl::Status Engine::Rebuild() {
  ALPHEUS_ASSIGN_OR_RETURN(index_,
                           Index::Create(options_.allocate, [this](Slot slot) {
                             return HashOf(ObjectAt(slot).key);
                           }));
  return log_.ForEachRecovered([this](const PlacedRecord& record) {
    const absl::Status recovered = RecoverRecord(record);
    if (recovered.ok()) return recovered;
    return absl::Status(
        recovered.code(),
        absl::StrCat("record ", record.lsn.value, ": ", recovered.message()));
  });
}

absl::Status Engine::RecoverRecord(const PlacedRecord& record) {
  ALPHEUS_ASSIGN_OR_RETURN(const StoreRecordHeader header,
                           DecodeStoreRecordHeader(record.payload));
  end_ = record.offset.value + record.payload.size();
  shown_lsn_ = record.lsn;
  return ForEachObject(
      record.payload, header.count,
      [&](size_t offset, const DecodedObject& decoded) {
        const Object& object = decoded.object;
        if (object.expires_ns || object.request) {
          return absl::UnimplementedError(
              "an object that expires, or that a client's request wrote: this "
              "store knows neither. Use the store that wrote it, or a later "
              "one");
        }
        return RecoverObject(Slot(record.offset.value + offset,
                                  decoded.encoded_bytes, HashOf(object.key)),
                             object);
      });
}

// ENG5. The higher version wins; of one version the copy, which lies behind.
absl::Status Engine::RecoverObject(Slot slot, const Object& object) {
  const uint64_t hash = HashOf(object.key);
  const auto has_key = [&](Slot one) { return HasKey(one, object.key); };
  Live before;
  if (const std::optional<Slot> shown = index_->Find(hash, has_key)) {
    const Object other = ObjectAt(*shown);
    if (VersionOf(slot, object) < VersionOf(*shown, other)) {
      return absl::OkStatus();
    }
    before = LiveOf(other);
  }
  live_.Replace(before, LiveOf(object));
  if (!object.is_deleted) return index_->Put(hash, slot, has_key);
  index_->Erase(hash, has_key);
  return absl::OkStatus();
}

// --- Objects ----------------------------------------------------------------

Engine::Live Engine::LiveOf(const Object& object) {
  if (object.is_deleted) return {};
  return {BytesAsCopy(object), object.copied_version ? 0U : 1U};
}

uint64_t Engine::HashOf(std::span<const std::byte> key) const {
  return HashKey(key, options_.hash_seed);
}

// A place is known modulo 16 TiB; no object lies further behind the end.
uint64_t Engine::OffsetOf(Slot slot) const {
  constexpr uint64_t kWrap = (Slot::kPlaceMask + 1) * kPlaceUnitBytes;
  return end_ - ((end_ - slot.offset()) & (kWrap - 1));
}

Object Engine::ObjectAt(Slot slot) const {
  const std::span<const std::byte> ring = log_.ring();
  const std::span<const std::byte> rest =
      ring.subspan(OffsetOf(slot) % ring.size());
  const absl::StatusOr<DecodedObject> decoded =
      DecodeObject(rest.first(std::min<size_t>(rest.size(), slot.bytes_max())));
  if (decoded.ok()) return decoded->object;
  ALPHEUS_CHECK(!log_.CheckPayloads().ok(), "ENG1 (engine.h)");
  return {};
}

Version Engine::VersionOf(Slot slot, const Object& object) const {
  if (object.copied_version) return *object.copied_version;
  return OffsetOf(slot) / kPlaceUnitBytes;
}

bool Engine::HasKey(Slot slot, std::span<const std::byte> key) const {
  return TextOf(ObjectAt(slot).key) == TextOf(key);
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
  size_t bytes = 0;
  for (const Operation& one : operations) {
    if (one.key.empty() || one.key.size() > kKeyBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("a key of ", one.key.size(), " bytes: a key has 1 to ",
                       kKeyBytesMax));
    }
    if (one.value.size() > room_.objects_bytes_max()) {
      bytes = one.value.size();
      break;
    }
    bytes += BytesAsCopy({.key = one.key, .value = one.value});
  }
  if (bytes <= room_.objects_bytes_max()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a request of ", bytes, " bytes: in this log it may have ",
      room_.objects_bytes_max(), ", a 64th of its ring. Use a larger log"));
}

absl::Status Engine::CheckKeys(const std::vector<Asked>& operations) const {
  absl::flat_hash_set<absl::string_view> keys;
  for (const Asked& one : operations) {
    if (keys.insert(one.key).second) continue;
    return absl::InvalidArgumentError(
        "a request with two operations on one key: write one request for "
        "each");
  }
  return absl::OkStatus();
}

void Engine::Submit(const std::vector<Operation>& operations, Done done) {
  absl::Status status = failure_.ok() ? Check(operations) : failure_;
  Submitted request{.operations = {}, .done = std::move(done)};
  if (status.ok()) {
    for (const Operation& one : operations) {
      const bool is_put = one.kind == Operation::Kind::kPut;
      // ENG4. All that follows is by this copy of the key.
      std::string key(TextOf(one.key));
      const uint64_t hash = HashOf(AsBytes(key));
      request.operations.push_back(
          {std::move(key), hash, is_put,
           is_put ? one.value : std::span<const std::byte>(), one.condition});
    }
    status = CheckKeys(request.operations);
  }
  if (!status.ok()) {
    request.done(status, {});
    return;
  }
  submitted_.push_back(std::move(request));
}

Engine::Newest Engine::NewestOf(const Record& record, const std::string& key,
                                uint64_t hash) const {
  if (const auto made = record.newest.find(key); made != record.newest.end()) {
    return made->second;
  }
  if (const auto pending = newest_.find(key); pending != newest_.end()) {
    return pending->second;
  }
  const std::optional<Slot> shown = Find(AsBytes(key), hash);
  if (!shown) return {};
  const Object object = ObjectAt(*shown);
  return {.is_there = true,
          .version = VersionOf(*shown, object),
          .live = LiveOf(object)};
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

// A record with more than that could not be copied in one step (ROM1).
bool Engine::HasRoomFor(const Record& record, uint64_t objects_bytes) const {
  const uint64_t others =
      record.bytes - kStoreRecordHeaderBytes + record.changes.size() * 8;
  return record.changes.empty() ||
         others + objects_bytes <= room_.objects_bytes_max();
}

// ENG7.
absl::Status Engine::CheckRoom(const Record& record, const Live& live,
                               size_t bytes, bool has_put) const {
  if (has_put && live.bytes > room_.live_bytes_max() &&
      live.bytes > record.live.bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the store is full: its objects would take ", live.bytes, " of the ",
        log_.ring().size(), " bytes of its log, where they may take ",
        room_.live_bytes_max(), ". Delete some, or use a larger log"));
  }
  // At the ring's end a record leaves unused what is too small for it.
  const uint64_t taken =
      2 * (record.bytes + bytes + Room::kRecordOverhead) + live.owed();
  const uint64_t left =
      has_put ? room_.left_by_puts() : room_.left_by_deletions();
  const uint64_t free = log_.free_bytes();
  if (free >= taken + left) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(free, " of the ", log_.ring().size(),
                   " bytes of the store's log are free, and ", taken + left,
                   " must be. It must be cleaned first"));
}

void Engine::AddChange(Record& record, Change change, const Newest& before) {
  const Live live = LiveOf(change.object);
  record.live.Replace(before.live, live);
  record.bytes += EncodedBytes(change.object);
  record.newest[change.key] = {
      .is_there = !change.object.is_deleted,
      .version = change.object.copied_version.value_or(0),
      .live = live,
      .record = record.number,
      .change = record.changes.size()};
  record.changes.push_back(std::move(change));
}

bool Engine::AddTo(Record& record, Submitted& request) {
  if (request.kept) return AddCopyTo(record, request);
  bool holds = true;
  std::vector<Newest> newest;
  for (const Asked& one : request.operations) {
    newest.push_back(NewestOf(record, one.key, one.hash));
    holds = holds && Holds(one.condition, newest.back());
  }
  Judged judged;
  std::vector<Change> changes;
  Live live = record.live;
  size_t bytes = 0;
  size_t bytes_as_copies = 0;
  bool has_put = false;
  for (size_t i = 0; i < request.operations.size(); ++i) {
    const Asked& one = request.operations[i];
    judged.judged_by = std::max(judged.judged_by, newest[i].record);
    if (!holds || (!one.is_put && !newest[i].is_there)) {
      judged.outcomes.push_back({false, newest[i].version});
      judged.changes.push_back(newest[i].change);
      continue;
    }
    judged.outcomes.push_back({true, 0});
    judged.changes.push_back(record.changes.size() + changes.size());
    const Object object{
        .key = AsBytes(one.key), .value = one.value, .is_deleted = !one.is_put};
    live.Replace(newest[i].live, LiveOf(object));
    bytes += EncodedBytes(object);
    bytes_as_copies += BytesAsCopy(object);
    has_put = has_put || one.is_put;
    changes.push_back({.key = one.key, .hash = one.hash, .object = object});
  }
  if (!HasRoomFor(record, bytes_as_copies)) return false;
  judged.appends = !changes.empty();
  if (judged.appends) {
    const absl::Status room = CheckRoom(record, live, bytes, has_put);
    if (!room.ok()) {
      request.done(room, {});
      return true;
    }
  }
  size_t next = 0;
  for (size_t i = 0; i < newest.size(); ++i) {
    if (!judged.outcomes[i].is_done) continue;
    AddChange(record, std::move(changes[next++]), newest[i]);
  }
  judged.done = std::move(request.done);
  record.judged.push_back(std::move(judged));
  return true;
}

// ENG6. In the order of the log no copy lies behind a newer version of its key.
bool Engine::AddCopyTo(Record& record, Submitted& request) {
  const Object& kept = *request.kept;
  if (!HasRoomFor(record, EncodedBytes(kept))) return false;
  Asked& one = request.operations.front();
  const Newest newest = NewestOf(record, one.key, one.hash);
  Judged judged{.done = std::move(request.done),
                .judged_by = newest.record,
                .needs_confirmation = false};
  const bool is_newest = newest.record == 0 &&
                         Find(AsBytes(one.key), one.hash) == request.original;
  // A newer version must be durable before the head moves on (CLN1, cleaner.h).
  if (is_newest) {
    judged.appends = true;
    AddChange(record,
              {.key = std::move(one.key),
               .hash = one.hash,
               .object = kept,
               .original = request.original},
              newest);
  }
  record.judged.push_back(std::move(judged));
  return true;
}

absl::StatusOr<Engine::Copies> Engine::CopyForward(const PlacedRecord& record,
                                                   const CopyDone& done) {
  ALPHEUS_RETURN_IF_ERROR(failure_);
  ALPHEUS_ASSIGN_OR_RETURN(const StoreRecordHeader header,
                           DecodeStoreRecordHeader(record.payload));
  Copies copies;
  ALPHEUS_RETURN_IF_ERROR(ForEachObject(
      record.payload, header.count,
      [&](size_t offset, const DecodedObject& decoded) {
        const Object& object = decoded.object;
        if (object.is_deleted) return absl::OkStatus();  // all older ones go
        const uint64_t hash = HashOf(object.key);
        const Slot slot(record.offset.value + offset, decoded.encoded_bytes,
                        hash);
        if (Find(object.key, hash) != slot) return absl::OkStatus();
        Object copy = object;
        copy.copied_version = VersionOf(slot, object);
        ++copies.count;
        copies.bytes += EncodedBytes(copy);
        Submitted request{
            .operations = {},
            .done = [done](const absl::Status& status,
                           const std::vector<Outcome>&) { done(status); },
            .kept = copy,
            .original = slot};
        request.operations.push_back(
            {.key = std::string(TextOf(object.key)), .hash = hash});
        submitted_.push_back(std::move(request));
        return absl::OkStatus();
      }));
  return copies;
}

uint64_t Engine::garbage_bytes() const {
  const uint64_t used = log_.ring().size() - log_.free_bytes();
  return used + live_.owed() - live_.bytes;
}

Lsn Engine::Append() {
  Lsn last;
  std::vector<Submitted> submitted = std::exchange(submitted_, {});
  for (auto next = submitted.begin(); next != submitted.end();) {
    Record record{.number = last_record_ + 1,
                  .bytes = kStoreRecordHeaderBytes,
                  .live = live_};
    while (next != submitted.end() && AddTo(record, *next)) ++next;
    last = std::max(last, AppendRecord(std::move(record)));
  }
  return last;
}

// ENG4. Values go from the client's bytes into the log, once.
void Engine::FillIn(Record& record, RingOffset offset,
                    std::span<std::byte> payload) {
  EncodeStoreRecordHeader(
      {.count = static_cast<uint32_t>(record.changes.size())},
      payload.first<kStoreRecordHeaderBytes>());
  const auto lap = static_cast<uint8_t>(offset.value / log_.ring().size());
  size_t at = kStoreRecordHeaderBytes;
  for (Change& change : record.changes) {
    Object& object = change.object;
    object.key = AsBytes(change.key);
    object.lap = lap;
    const size_t bytes = EncodedBytes(object);
    EncodeObject(object, payload.subspan(at, bytes));
    const uint64_t place = offset.value + at;
    change.slot = Slot(place, bytes, change.hash);
    change.version = object.is_deleted ? 0 : place / kPlaceUnitBytes;
    if (object.copied_version) change.version = *object.copied_version;
    at += bytes;
  }
}

Lsn Engine::AppendRecord(Record record) {
  absl::Status appended;
  bool is_filled = false;
  if (!record.changes.empty()) {
    const absl::StatusOr<PlacedRecord> placed = log_.Append(
        record.bytes, [&](RingOffset offset, std::span<std::byte> payload) {
          is_filled = true;
          FillIn(record, offset, payload);
        });
    appended = placed.status();
    if (placed.ok()) BeginForce(record, *placed);
  }
  const Lsn lsn = record.lsn;
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
  if (lsn != Lsn()) records_.push_back(std::move(record));
  Confirm(std::move(unappended));
  if (!appended.ok() && is_filled) Fail(appended);
  return lsn;
}

void Engine::BeginForce(Record& record, const PlacedRecord& placed) {
  end_ = placed.offset.value + placed.payload.size();
  record.lsn = placed.lsn;
  last_record_ = record.number;
  live_ = record.live;
  for (auto& [key, newest] : record.newest) {
    newest.version = record.changes[newest.change].version;
    newest.change = kNoChange;
    newest_[key] = newest;
  }
  record.newest.clear();
  for (Change& change : record.changes) {
    change.object = {.is_deleted = change.object.is_deleted};
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
  bool needs_any = false;
  for (Judged& one : judged) {
    if (one.needs_confirmation) one.confirmation = last_confirmation_ + 1;
    needs_any = needs_any || one.needs_confirmation;
    unappended_.push_back(std::move(one));
  }
  if (!needs_any) return;
  const uint64_t number = ++last_confirmation_;
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
  if (!news.failure.ok() && failure_.ok()) {
    Fail(news.failure);
    did_any = true;
  }
  return did_any || !answered.empty();
}

// ENG1, ENG2.
void Engine::Show(Record& record) {
  absl::Status shown;
  for (const Change& change : record.changes) {
    const auto key = AsBytes(change.key);
    const auto has_key = [&](Slot slot) { return HasKey(slot, key); };
    if (change.object.is_deleted) {
      index_->Erase(change.hash, has_key);
    } else if (!change.original.is_empty()) {
      index_->Replace(change.hash, change.original, change.slot);  // P-O13
    } else {
      shown.Update(index_->Put(change.hash, change.slot, has_key));
    }
    // A record may change a key more than once.
    const auto newest = newest_.find(change.key);
    if (newest != newest_.end() && newest->second.record == record.number) {
      newest_.erase(newest);
    }
  }
  if (!shown.ok()) {
    // It is durable, and can't be found before the store is opened again.
    records_.push_front(std::move(record));
    Fail(shown);
    return;
  }
  durable_ = record.number;
  shown_lsn_ = record.lsn;
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
  // Others may wait for what was answered here.
  options_.wake();
}

// --- Readers ----------------------------------------------------------------

std::optional<Engine::Found> Engine::Get(std::span<const std::byte> key) const {
  const std::optional<Slot> slot = Find(key, HashOf(key));
  if (!slot) return std::nullopt;
  const Object object = ObjectAt(*slot);
  return Found{object.value, VersionOf(*slot, object)};
}

std::optional<uint64_t> Engine::Scan(
    uint64_t cursor,
    absl::FunctionRef<void(std::span<const std::byte> key, const Found& found)>
        visit) const {
  return index_->Scan(cursor, [&](Slot slot) {
    const Object object = ObjectAt(slot);
    // Keys before the cursor were shown.
    if (Index::ScanOrder(HashOf(object.key)) < cursor) return;
    visit(object.key, {object.value, VersionOf(slot, object)});
  });
}

}  // namespace alpheus::store
