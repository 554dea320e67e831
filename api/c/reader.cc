// SPDX-License-Identifier: Apache-2.0
// The reader of the C interface, over alpheus/log_reader.h.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "alpheus/alpheus.h"
#include "alpheus/log_reader.h"
#include "api/c/result.h"
#include "api/c/views.h"

using alpheus::LogReader;
using alpheus::Lsn;
using alpheus::ReaderRecord;
using alpheus::RecordState;
using alpheus::c::Return;
using alpheus::c::ReturnNull;
using alpheus::c::ReturnOk;

struct alpheus_reader {
  std::unique_ptr<LogReader> reader;
  // Lent until the next call.
  std::optional<alpheus::c::RegionInfoView> info;
  std::optional<alpheus::c::VerificationView> verification;
};

namespace {

static_assert(ALPHEUS_RECORD_DURABLE ==
              static_cast<int>(RecordState::kDurable));
static_assert(ALPHEUS_RECORD_COMPLETED ==
              static_cast<int>(RecordState::kCompleted));
static_assert(ALPHEUS_RECORD_CLEANED ==
              static_cast<int>(RecordState::kCleaned));
static_assert(ALPHEUS_RECORD_ABORTED ==
              static_cast<int>(RecordState::kAborted));

using OpenFunction =
    absl::StatusOr<std::unique_ptr<LogReader>> (*)(const std::string&);

alpheus_code Open(const char* function, OpenFunction open, const char* path,
                  alpheus_reader** reader, alpheus_error* error) {
  if (reader == nullptr) return ReturnNull(function, "reader", error);
  *reader = nullptr;
  if (path == nullptr) return ReturnNull(function, "path", error);
  absl::StatusOr<std::unique_ptr<LogReader>> opened = open(path);
  if (!opened.ok()) return Return(opened.status(), error);
  *reader = new alpheus_reader{*std::move(opened), {}, {}};
  return ReturnOk(error);
}

// Returns the visitor as a function for LogReader.
std::function<absl::Status(const ReaderRecord&)> Visitor(
    alpheus_reader_visitor visit, void* context) {
  return [visit, context](const ReaderRecord& record) {
    const alpheus_reader_record view = {
        record.lsn.value,
        record.epoch.value,
        static_cast<alpheus_record_state>(record.state),
        record.offset,
        record.payload.data(),
        record.payload.size()};
    if (visit(context, &view)) return absl::OkStatus();
    return absl::CancelledError(
        absl::StrCat("the visitor stopped at LSN ", record.lsn.value));
  };
}

}  // namespace

extern "C" {

const char* alpheus_record_state_name(int state) noexcept {
  return alpheus::RecordStateName(static_cast<RecordState>(state));
}

alpheus_code alpheus_reader_open(const char* path, alpheus_reader** reader,
                                 alpheus_error* error) noexcept {
  return Open("alpheus_reader_open", LogReader::Open, path, reader, error);
}

alpheus_code alpheus_reader_open_for_salvage(const char* path,
                                             alpheus_reader** reader,
                                             alpheus_error* error) noexcept {
  return Open("alpheus_reader_open_for_salvage", LogReader::OpenForSalvage,
              path, reader, error);
}

void alpheus_reader_free(alpheus_reader* reader) noexcept { delete reader; }

alpheus_code alpheus_reader_for_each(alpheus_reader* reader,
                                     alpheus_reader_visitor visit,
                                     void* context,
                                     alpheus_error* error) noexcept {
  if (reader == nullptr) {
    return ReturnNull("alpheus_reader_for_each", "reader", error);
  }
  if (visit == nullptr) {
    return ReturnNull("alpheus_reader_for_each", "visit", error);
  }
  return Return(reader->reader->ForEach(Visitor(visit, context)), error);
}

alpheus_code alpheus_reader_for_each_salvageable(
    alpheus_reader* reader, alpheus_reader_visitor visit,
    alpheus_gap_visitor lost, void* context, alpheus_error* error) noexcept {
  if (reader == nullptr) {
    return ReturnNull("alpheus_reader_for_each_salvageable", "reader", error);
  }
  if (visit == nullptr) {
    return ReturnNull("alpheus_reader_for_each_salvageable", "visit", error);
  }
  const auto report_lost = [lost, context](Lsn first, Lsn after) {
    if (lost != nullptr) lost(context, first.value, after.value);
  };
  return Return(
      reader->reader->ForEachSalvageable(Visitor(visit, context), report_lost),
      error);
}

const alpheus_region_info* alpheus_reader_info(
    alpheus_reader* reader) noexcept {
  if (reader == nullptr) return nullptr;
  return reader->info.emplace(reader->reader->info()).get();
}

alpheus_code alpheus_reader_verify(alpheus_reader* reader,
                                   alpheus_progress progress, void* context,
                                   const alpheus_verification** verification,
                                   alpheus_error* error) noexcept {
  if (verification != nullptr) *verification = nullptr;
  if (reader == nullptr) {
    return ReturnNull("alpheus_reader_verify", "reader", error);
  }
  const alpheus::VerifyReport report =
      reader->reader->Verify([progress, context](double fraction) {
        if (progress != nullptr) progress(context, fraction);
      });
  reader->verification.emplace(report);
  if (verification != nullptr) *verification = reader->verification->get();
  return Return(report.status, error);
}

}  // extern "C"
