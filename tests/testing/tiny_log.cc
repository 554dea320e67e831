// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/tiny_log.h"

#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/mix.h"
#include "log/core/format_region.h"
#include "log/core/record_cursor.h"
#include "log/format/layout.h"

namespace alpheus::testing {
namespace {

constexpr uint64_t kTableCapacity = 16;
constexpr uint32_t kExposureMax = 16;

}  // namespace

void SoloWaiter::Wait(const std::atomic<uint32_t>&, uint32_t, Deadline) {
  std::fprintf(stderr, "%s\n", describe_().c_str());
  ALPHEUS_CHECK(false, "a log with one thread never waits for another");
}

std::string TinyConfig::Describe() const {
  return absl::StrCat("ring of ", ring_lines, " lines, phase ", phase_lines,
                      ", live records ", live_records, ", seed ", seed);
}

RingLogOptions OptionsOfTiny() {
  RingLogOptions options;
  options.name = "tiny";
  options.exposure_records_max = kExposureMax;
  return options;
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
                                    OptionsOfTiny(), clock_, waiter_);
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

}  // namespace alpheus::testing
