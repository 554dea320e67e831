// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/tiny_log.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/mix.h"
#include "log/core/format_region.h"
#include "log/core/record_cursor.h"
#include "log/format/layout.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kTableCapacity = 16;
constexpr uint32_t kExposureMax = 16;
constexpr size_t kOneLineBytes = kLineBytes - kRecordHeaderBytes;
constexpr size_t kTwoLinesBytes = kOneLineBytes + 8;
constexpr size_t kInPlaceBytes = 11;

RingLogOptions LogOptionsForTiny() {
  RingLogOptions options;
  options.name = "tiny";
  options.exposure_records_max = kExposureMax;
  return options;
}

// A word that a power cut could still change though the opened log is made of
// it (H7), or nothing. What lies behind the log's end is no part of it, and the
// mark of a cleaned record is a hint.
std::string FindUnpersisted(ModelPersistence& model,
                            const OpenedEpoch& opened) {
  const uint64_t ring_offset = opened.start.superline.ring_offset;
  const Ring ring = RingOf(model.region(), opened.start.superline);
  const uint64_t live_bytes = opened.start.end.offset - opened.head.offset;
  for (size_t offset = 0; offset < model.region().size();
       offset += sizeof(uint64_t)) {
    if (std::memcmp(model.region().data() + offset,
                    model.persistent().data() + offset,
                    sizeof(uint64_t)) == 0) {
      continue;
    }
    if (offset >= ring_offset) {
      const uint64_t behind_head = offset - ring_offset + ring.capacity() -
                                   ring.Place(opened.head.offset);
      if (behind_head % ring.capacity() >= live_bytes ||
          offset % kLineBytes == offsetof(RecordHeader, cleaned)) {
        continue;
      }
    }
    return absl::StrCat("recovery returned, but the word at ", offset,
                        " is not persisted (H7)");
  }
  return "";
}

std::string DescribeDifference(const RecoveredLog& expected,
                               const RecoveredLog& found) {
  return absl::StrCat("\n expected:\n", expected.Describe(), " found:\n",
                      found.Describe());
}

bool Same(const RecoveredLog& a, const RecoveredLog& b) {
  return a.head == b.head &&
         std::equal(a.records.begin(), a.records.end(), b.records.begin(),
                    b.records.end(),
                    [](const auto& x, const auto& y) { return x.SameAs(y); });
}

}  // namespace

void SoloWaiter::Wait(const std::atomic<uint32_t>&, uint32_t, Deadline) {
  std::fprintf(stderr, "%s\n", describe_().c_str());
  ALPHEUS_CHECK(false, "a log with one thread never waits for another");
}

std::string TinyConfig::Describe() const {
  return absl::StrCat("ring of ", ring_lines, " lines, phase ", phase_lines,
                      ", live records ", live_records, ", seed ", seed);
}

const char* TinyOpName(TinyOp op) {
  switch (op) {
    case TinyOp::kAppendOneLine:
      return "append1";
    case TinyOp::kAppendTwoLines:
      return "append2";
    case TinyOp::kFillInPlace:
      return "fill";
    case TinyOp::kForceLast:
      return "force";
    case TinyOp::kAbort:
      return "abort";
    case TinyOp::kOpen:
      return "open";
    case TinyOp::kCompleteOpen:
      return "complete";
    case TinyOp::kCleanOldest:
      return "clean-oldest";
    case TinyOp::kCleanMiddle:
      return "clean-middle";
    case TinyOp::kCleanThrough:
      return "clean-through";
    case TinyOp::kCleanAll:
      return "clean-all";
    case TinyOp::kReopen:
      return "reopen";
    case TinyOp::kIdle:
      return "idle";
  }
  return "unknown";
}

std::string TinyOpNames(std::span<const TinyOp> ops) {
  std::string names;
  for (const TinyOp op : ops) {
    absl::StrAppend(&names, names.empty() ? "" : " ", TinyOpName(op));
  }
  return names;
}

absl::StatusOr<OpenedEpoch> OpenModel(ModelPersistence& model, uint64_t seed) {
  Random random(seed);
  LocalOpeningOptions options;
  options.name = "tiny";
  return OpenEpochLocally(model, model.region(), options, random);
}

absl::StatusOr<RecoveredLog> ReadRecovered(ModelPersistence& model,
                                           const OpenedEpoch& opened) {
  RecoveredLog log;
  log.head = opened.head.lsn;
  const Ring ring = RingOf(model.region(), opened.start.superline);
  RecordCursor cursor(ring, opened.start.table, opened.head,
                      opened.head.offset + ring.capacity());
  while (cursor.position().lsn < opened.start.end.lsn) {
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return absl::DataLossError(
          absl::StrCat("LSN ", cursor.position().lsn.value,
                       " was recovered, but can't be read afterwards"));
    }
    const RecordView& record = cursor.record();
    log.records.push_back({record.aborted(), record.cleaned, record.payload});
  }
  return log;
}

TinyLog::TinyLog(const TinyConfig& config, Waiter* waiter)
    : config_(config),
      solo_waiter_([this] { return Describe(); }),
      waiter_(waiter == nullptr ? solo_waiter_ : *waiter) {
  const absl::StatusOr<Layout> layout =
      Layout::ForRing(config.ring_lines * kLineBytes, kTableCapacity);
  ALPHEUS_CHECK(layout.ok(), "the tiny ring is legal");
  model_ = std::make_unique<ModelPersistence>(layout->region_bytes);
  Random random(config.seed);
  const absl::Status formatted = FormatRegion(
      *model_, model_->region(), *layout, NewLocalIdentity(random));
  ALPHEUS_CHECK(formatted.ok(), "an empty region can be formatted");
  ALPHEUS_CHECK(Open().ok(), "an empty log can be opened");
  Advance(config.phase_lines);
  for (uint64_t i = 0; i < config.live_records; ++i) {
    ALPHEUS_CHECK(Run(TinyOp::kAppendOneLine).empty(),
                  "live records fit the ring");
  }
  ran_.clear();
}

TinyLog::~TinyLog() {
  model_->SetHook({});
  DropOpen();
}

void TinyLog::Advance(uint64_t lines) {
  for (uint64_t i = 0; i < lines; ++i) {
    std::string wrong = Run(TinyOp::kAppendOneLine);
    if (wrong.empty()) wrong = Run(TinyOp::kCleanAll);
    ALPHEUS_CHECK(wrong.empty(), "a log can be advanced");
  }
}

bool TinyLog::CanRun(TinyOp op) const {
  if (op == TinyOp::kCompleteOpen) return open_.has_value();
  if (op == TinyOp::kOpen) return !open_.has_value();
  return true;
}

std::string TinyLog::Run(TinyOp op) {
  ran_.push_back(op);
  last_status_ = absl::OkStatus();
  const Lsn head = log_->head_lsn();
  switch (op) {
    case TinyOp::kAppendOneLine:
      return Append(kOneLineBytes);
    case TinyOp::kAppendTwoLines:
      return Append(kTwoLinesBytes);
    case TinyOp::kFillInPlace:
      return FillInPlace();
    case TinyOp::kForceLast:
      return ForceLast();
    case TinyOp::kAbort:
      return Abort();
    case TinyOp::kOpen:
      return OpenReservation();
    case TinyOp::kCompleteOpen:
      return CompleteOpen();
    case TinyOp::kCleanOldest:
      return Clean(head, /*through=*/false);
    case TinyOp::kCleanMiddle:
      return Clean(head + 1, /*through=*/false);
    case TinyOp::kCleanThrough:
      return Clean(head + 1, /*through=*/true);
    case TinyOp::kCleanAll:
      return CleanAll();
    case TinyOp::kReopen:
      return Reopen();
    case TinyOp::kIdle:
      return Idle();
  }
  return "unknown operation";
}

std::string TinyLog::Append(size_t bytes) {
  const std::string payload = MakePayload(bytes);
  const Lsn next = log_->next_lsn();
  const bool was_empty = log_->head_lsn() == next;
  const LogOracle::Ticket ticket = oracle_.NoteAppending(payload);
  // Two parts, so that a line is assembled from both.
  const std::span<const std::byte> all = AsBytes(payload);
  const std::array<std::span<const std::byte>, 2> parts = {all.first(5),
                                                           all.subspan(5)};
  const absl::StatusOr<Lsn> lsn = log_->Append(parts, /*policy=*/1, Deadline());
  if (lsn.ok()) {
    oracle_.NoteAppended(ticket, *lsn);
    oracle_.NoteDurable(*lsn);
    if (log_->durable_lsn() < *lsn) return "append: OK, but not durable";
    return "";
  }
  if (log_->next_lsn() == next) {
    oracle_.NoteRefused(ticket);
  } else if (!absl::IsUnavailable(lsn.status())) {
    return absl::StrCat("append: refused, but LSN ", next.value,
                        " was given: ", lsn.status().ToString());
  }
  return JudgeRoom("append", lsn.status(), was_empty);
}

std::string TinyLog::FillInPlace() {
  const bool was_empty = log_->head_lsn() == log_->next_lsn();
  absl::StatusOr<ReservedRecord> record =
      log_->Reserve(kInPlaceBytes, Deadline());
  if (!record.ok()) return JudgeRoom("reserve", record.status(), was_empty);
  oracle_.NoteReserved(record->lsn);
  const std::string payload = MakePayload(kInPlaceBytes);
  std::memcpy(record->payload, payload.data(), payload.size());
  record->filled_in_place = true;
  model_->YieldPoint("test: filled");
  oracle_.NoteCompleting(record->lsn, payload);
  return Judge("complete", log_->Complete(*record), {});
}

std::string TinyLog::ForceLast() {
  const Lsn last = log_->next_lsn() - 1;
  if (last.value == 0) return "";
  const absl::Status status = log_->Force(last, 1, Deadline());
  if (!status.ok()) {
    if (!open_) return Judge("force", status, {});
    return Judge("force", status, {absl::StatusCode::kFailedPrecondition});
  }
  if (open_) return "force: OK behind an open reservation";
  oracle_.NoteDurable(last);
  return "";
}

std::string TinyLog::Abort() {
  const bool was_empty = log_->head_lsn() == log_->next_lsn();
  absl::StatusOr<ReservedRecord> record =
      log_->Reserve(kInPlaceBytes, Deadline());
  if (!record.ok()) return JudgeRoom("reserve", record.status(), was_empty);
  oracle_.NoteReserved(record->lsn);
  const std::string payload = MakePayload(4);
  std::memcpy(record->payload, payload.data(), payload.size());
  oracle_.NoteAborting(record->lsn);
  log_->Abort(*record);
  return "";
}

std::string TinyLog::OpenReservation() {
  const bool was_empty = log_->head_lsn() == log_->next_lsn();
  absl::StatusOr<ReservedRecord> record =
      log_->Reserve(kTwoLinesBytes, Deadline());
  if (!record.ok()) return JudgeRoom("reserve", record.status(), was_empty);
  oracle_.NoteReserved(record->lsn);
  open_ = *record;
  open_payload_ = MakePayload(kTwoLinesBytes);
  return Judge("copy", log_->Copy(*open_, 0, AsBytes(open_payload_).first(10)),
               {});
}

std::string TinyLog::CompleteOpen() {
  const absl::Status copied =
      log_->Copy(*open_, 10, AsBytes(open_payload_).subspan(10));
  if (!copied.ok()) return Judge("copy", copied, {});
  ReservedRecord record = *open_;
  open_.reset();
  if (record.lsn.value % 2 == 0) {
    // A last change through the pointer, after all was copied.
    open_payload_[3] ^= 1;
    record.payload[3] ^= std::byte{1};
    record.filled_in_place = true;
  }
  oracle_.NoteCompleting(record.lsn, open_payload_);
  return Judge("complete", log_->Complete(record), {});
}

std::string TinyLog::Clean(Lsn lsn, bool through) {
  // What is not durable must be refused without effect.
  const bool allowed = lsn <= log_->durable_lsn();
  if (allowed) {
    oracle_.NoteCleaning(through ? log_->head_lsn() : lsn, lsn);
  }
  const absl::Status status =
      through ? log_->CleanupThrough(lsn) : log_->Cleanup(lsn);
  if (!allowed) {
    if (status.ok()) return "cleanup: OK beyond what is durable";
    return Judge(
        "cleanup", status,
        {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kOutOfRange});
  }
  if (through) return Judge("cleanup", status, {});
  return Judge("cleanup", status, {absl::StatusCode::kNotFound});
}

std::string TinyLog::CleanAll() {
  const Lsn next = log_->next_lsn();
  if (open_) {
    const absl::Status status = log_->CleanupAll();
    if (status.ok()) return "cleanup all: OK with an open reservation";
    return Judge("cleanup all", status,
                 {absl::StatusCode::kFailedPrecondition});
  }
  oracle_.NoteCleaning(log_->head_lsn(), next - 1);
  const absl::Status status = log_->CleanupAll();
  if (!status.ok()) return Judge("cleanup all", status, {});
  oracle_.NoteDurable(next - 1);
  oracle_.NoteAllCleaned(next);
  return log_->head_lsn() == next ? "" : "cleanup all: OK, but not empty";
}

std::string TinyLog::Reopen() {
  const Lsn next = log_->next_lsn();
  const absl::Status closed = log_->Close();
  if (open_) {
    if (closed.ok()) return "close: OK with an open reservation";
    return Judge("close", closed, {absl::StatusCode::kFailedPrecondition});
  }
  if (!closed.ok()) return Judge("close", closed, {});
  oracle_.NoteDurable(next - 1);
  if (std::string wrong = CheckOnlyHintsAreOpen(); !wrong.empty()) return wrong;
  log_.reset();
  closed_ = true;
  return Judge("open", Open(), {});
}

std::string TinyLog::Idle() {
  using Next = IdleKeeper<ModelPersistence>::Next;
  for (int i = 0; i < 2; ++i) {
    if (log_->Poll() == Next::kSleep) break;
  }
  // What went wrong meanwhile is told by the next call.
  const Lsn durable = log_->durable_lsn();
  const absl::Status status = durable.value == 0
                                  ? absl::OkStatus()
                                  : log_->WaitDurable(durable, Deadline());
  if (status.ok() && !open_ && durable + 1 < log_->next_lsn()) {
    return "idle: a record stays exposed (J1)";
  }
  return Judge("idle", status, {});
}

absl::Status TinyLog::Open() {
  absl::StatusOr<OpenedEpoch> opened =
      OpenModel(*model_, Mix(config_.seed, ++openings_));
  if (!opened.ok()) return opened.status();
  absl::StatusOr<RecoveredLog> recovered = ReadRecovered(*model_, *opened);
  if (!recovered.ok()) return recovered.status();
  if (const std::string wrong = oracle_.Check(*recovered); !wrong.empty()) {
    return absl::InternalError(absl::StrCat(wrong, "\n expected:\n",
                                            oracle_.Describe(), " found:\n",
                                            recovered->Describe()));
  }
  oracle_.NoteRecovered(*recovered);
  if (closed_ && !opened->was_closed_cleanly) {
    return absl::InternalError("closed cleanly, but not opened as such");
  }
  if (closed_ && !opened->repairs.empty()) {
    return absl::InternalError(
        absl::StrCat("closed cleanly, but needs repair: ", opened->repairs[0]));
  }
  closed_ = false;
  log_ = std::make_unique<ModelLog>(*model_, model_->region(), opened->start,
                                    LogOptionsForTiny(), clock_, waiter_);
  return absl::OkStatus();
}

std::string TinyLog::CrashAndReopen(std::span<const std::byte> image) {
  DropOpen();
  log_.reset();
  closed_ = false;
  model_->Reset(image);
  const absl::Status opened = Open();
  return opened.ok() ? "" : absl::StrCat("after a crash: ", opened.ToString());
}

void TinyLog::DropOpen() {
  if (open_) log_->Abort(*open_);
  open_.reset();
}

std::string TinyLog::CheckDurableIsPersisted() {
  if (log_ == nullptr) return "";
  const Ring& ring = log_->ring();
  const auto persisted = [&](RingOffset offset, size_t bytes) {
    return model_->IsPersisted(ring.At(offset), bytes);
  };
  // The cleaned word is a hint and may be anything.
  constexpr size_t kHeaderBytes = offsetof(RecordHeader, cleaned);
  RecordCursor cursor = LiveRecords();
  while (cursor.position().lsn <= log_->durable_lsn()) {
    const Lsn lsn = cursor.position().lsn;
    if (cursor.Next() != RecordCursor::Step::kRecord) {
      return absl::StrCat("LSN ", lsn.value, " is durable but can't be read");
    }
    const RecordView& record = cursor.record();
    const bool pad_persisted = cursor.record_begin() == record.offset ||
                               persisted(cursor.record_begin(), kHeaderBytes);
    if (!pad_persisted || !persisted(record.offset, kHeaderBytes) ||
        !persisted(record.offset + kRecordHeaderBytes, record.payload.size())) {
      return absl::StrCat("LSN ", lsn.value,
                          " is durable but not wholly persisted");
    }
  }
  return "";
}

std::string TinyLog::Describe() const {
  return absl::StrCat(config_.Describe(), "\n operations: ", TinyOpNames(ran_));
}

std::string TinyLog::CheckOnlyHintsAreOpen() {
  // In the place of a mark, and in no record that anybody needs.
  for (const auto& word : model_->DirtyWords()) {
    if (word.offset < kTableOffset ||
        word.offset % kLineBytes != offsetof(RecordHeader, cleaned)) {
      return absl::StrCat("closed, but the word at ", word.offset,
                          " is not persisted");
    }
  }
  return CheckDurableIsPersisted();
}

RecordCursor TinyLog::LiveRecords() const {
  const LogPosition head = log_->head();
  return {log_->ring(), log_->table(), head,
          head.offset + log_->ring().capacity()};
}

LogOracle& TinyLog::oracle() {
  if (log_ != nullptr) oracle_.NoteDurable(log_->durable_lsn());
  return oracle_;
}

std::string TinyLog::MakePayload(size_t bytes) {
  Random random(Mix(config_.seed, ++payload_count_));
  std::string payload(bytes, '\0');
  for (char& c : payload) c = static_cast<char>(random.Next() >> 56);
  return payload;
}

std::string TinyLog::Judge(const char* what, const absl::Status& status,
                           std::initializer_list<absl::StatusCode> allowed) {
  last_status_ = status;
  if (status.ok()) return "";
  for (const absl::StatusCode code : allowed) {
    if (status.code() == code) return "";
  }
  // Whatever the medium made fail may fail, as the medium did.
  if (!model_->Error().ok() && status == model_->Error()) return "";
  return absl::StrCat(what, ": ", status.ToString());
}

std::string TinyLog::JudgeRoom(const char* what, const absl::Status& status,
                               bool was_empty) {
  last_status_ = status;
  if (status.code() == absl::StatusCode::kResourceExhausted && was_empty) {
    return absl::StrCat(what, ": an empty ring is full: ", status.ToString());
  }
  if (status.code() == absl::StatusCode::kFailedPrecondition && !open_) {
    return absl::StrCat(what, ": ", status.ToString());
  }
  return Judge(what, status,
               {absl::StatusCode::kResourceExhausted,
                absl::StatusCode::kFailedPrecondition});
}

RecoveryChecker::RecoveryChecker(const Options& options)
    : options_(options),
      waiter_([] { return "one more record after a recovery"; }),
      extra_payload_(kOneLineBytes, 'X') {
  for (Level& level : levels_) {
    level.crashes = std::make_unique<CrashEnumerator>(options.nested);
  }
}

std::string RecoveryChecker::Check(std::span<const std::byte> image,
                                   uint64_t hash, const LogOracle& oracle) {
  Model(0, 0, image.size()).Reset(image);
  return CheckAt(0, hash, oracle, CrashesInside(0, hash));
}

std::string RecoveryChecker::CheckAfterKill(const ModelPersistence& model,
                                            uint64_t hash,
                                            const LogOracle& oracle) {
  Model(0, 0, model.persistent().size()).CopyAfterKill(model);
  const std::string wrong = CheckAt(0, hash, oracle, /*crash_inside=*/true);
  return wrong.empty() ? wrong : absl::StrCat("killed, not cut: ", wrong);
}

bool RecoveryChecker::CrashesInside(int level, uint64_t hash) const {
  return level < options_.depth &&
         hash % options_.crash_inside_one_in[level] == 0;
}

std::string RecoveryChecker::CheckAt(int level, uint64_t hash,
                                     const LogOracle& oracle,
                                     bool crash_inside) {
  ModelPersistence& model = *levels_[level].models[0];
  std::string wrong_inside;
  if (crash_inside) {
    model.SetHook([&](const ModelPersistence::Event& event) {
      if (event.primitive == ModelPersistence::Primitive::kFence &&
          wrong_inside.empty()) {
        wrong_inside = CheckCrashesInside(level, model, oracle);
      }
    });
  }
  ++recoveries_;
  const absl::StatusOr<OpenedEpoch> opened =
      OpenModel(model, Mix(Mix(options_.seed, hash), level));
  model.SetHook({});
  if (!wrong_inside.empty()) return wrong_inside;
  if (!opened.ok()) {
    return absl::StrCat("the log does not open again: ",
                        opened.status().ToString());
  }
  const absl::StatusOr<RecoveredLog> recovered = ReadRecovered(model, *opened);
  if (!recovered.ok()) return recovered.status().ToString();
  if (std::string wrong = oracle.Check(*recovered); !wrong.empty()) {
    return absl::StrCat(wrong, "\n expected:\n", oracle.Describe(),
                        " recovered:\n", recovered->Describe());
  }
  if (std::string wrong = FindUnpersisted(model, *opened); !wrong.empty()) {
    return wrong;
  }
  if (level > 0 && hash % options_.nested_repeat_one_in != 0) return "";
  return CheckRepeats(level, *opened, *recovered, hash / 4);
}

std::string RecoveryChecker::CheckCrashesInside(int level,
                                                ModelPersistence& model,
                                                const LogOracle& oracle) {
  std::string wrong;
  const auto visit = [&](const CrashState& state) {
    if (!wrong.empty()) return;
    ++nested_states_[level];
    Model(level + 1, 0, state.image.size()).Reset(state.image);
    wrong = CheckAt(level + 1, state.hash, oracle,
                    CrashesInside(level + 1, state.hash));
    if (!wrong.empty()) {
      wrong = absl::StrCat(wrong, "\n crash inside recovery, before fence ",
                           model.fence_count() + 1, ":\n", state.Describe());
    }
  };
  levels_[level].crashes->Enumerate(model, oracle.Digest(), visit);
  return wrong;
}

std::string RecoveryChecker::CheckRepeats(int level, const OpenedEpoch& opened,
                                          const RecoveredLog& first,
                                          uint64_t hash) {
  auto& models = levels_[level].models;
  const size_t size = models[0]->region().size();
  RecoveredLog expected = first;
  OpenedEpoch again;
  // Half of the images are recovered twice before the next record comes, the
  // others twice after it.
  const bool append_last = hash % 2 == 0;
  if (append_last) {
    std::string wrong = RecoverAgain(*models[0], Model(level, 1, size),
                                     expected, "recovering again", &again);
    if (wrong.empty()) wrong = AppendOneMore(*models[1], again, &expected);
    if (!wrong.empty()) return wrong;
  } else {
    std::string wrong = AppendOneMore(*models[0], opened, &expected);
    if (wrong.empty()) {
      wrong = RecoverAgain(*models[0], Model(level, 1, size), expected,
                           "one more record", &again);
    }
    if (!wrong.empty()) return wrong;
  }
  return RecoverAgain(
      *models[1], Model(level, 2, size), expected,
      append_last ? "one more record" : "one more record and recovering again",
      &again);
}

std::string RecoveryChecker::RecoverAgain(ModelPersistence& from,
                                          ModelPersistence& to,
                                          const RecoveredLog& expected,
                                          const char* after,
                                          OpenedEpoch* opened) {
  ++recoveries_;
  to.Reset(from.persistent());
  absl::StatusOr<OpenedEpoch> again =
      OpenModel(to, Mix(options_.seed, ++nonce_count_));
  if (!again.ok()) {
    return absl::StrCat("after ", after,
                        ": does not open: ", again.status().ToString());
  }
  const absl::StatusOr<RecoveredLog> recovered = ReadRecovered(to, *again);
  if (!recovered.ok()) {
    return absl::StrCat("after ", after, ": ", recovered.status().ToString());
  }
  if (!Same(expected, *recovered)) {
    return absl::StrCat("C4: after ", after, " the log differs",
                        DescribeDifference(expected, *recovered));
  }
  *opened = *std::move(again);
  return "";
}

std::string RecoveryChecker::AppendOneMore(ModelPersistence& model,
                                           const OpenedEpoch& opened,
                                           RecoveredLog* expected) {
  ModelLog log(model, model.region(), opened.start, LogOptionsForTiny(), clock_,
               waiter_);
  const std::array<std::span<const std::byte>, 1> parts = {
      AsBytes(extra_payload_)};
  const absl::StatusOr<Lsn> lsn = log.Append(parts, 1, Deadline());
  if (!lsn.ok() &&
      lsn.status().code() != absl::StatusCode::kResourceExhausted) {
    return absl::StrCat("append after recovery: ", lsn.status().ToString());
  }
  if (lsn.ok() && *lsn != expected->next()) {
    return absl::StrCat("the record after recovery got LSN ", lsn->value,
                        " instead of ", expected->next().value);
  }
  // Short of room, the head may have moved over what nobody needs.
  while (expected->head < log.head_lsn()) {
    const RecoveredLog::Record& oldest = expected->records.front();
    if (!oldest.cleaned && !oldest.aborted) {
      return absl::StrCat("the head moved over LSN ", expected->head.value);
    }
    expected->records.erase(expected->records.begin());
    expected->head = expected->head + 1;
  }
  if (lsn.ok()) {
    expected->records.push_back({false, false, AsBytes(extra_payload_)});
  }
  return "";
}

ModelPersistence& RecoveryChecker::Model(int level, int which, size_t bytes) {
  std::unique_ptr<ModelPersistence>& model = levels_[level].models[which];
  if (model == nullptr || model->region().size() != bytes) {
    model = std::make_unique<ModelPersistence>(bytes);
  }
  return *model;
}

RecoveryChecker::Counts RecoveryChecker::counts() const {
  Counts counts;
  counts.recoveries = recoveries_;
  counts.nested_states = nested_states_;
  return counts;
}

}  // namespace alpheus::testing
