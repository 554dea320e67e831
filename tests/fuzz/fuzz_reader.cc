// SPDX-License-Identifier: Apache-2.0
// Fuzzes all that reads a region file without owning it: LogReader, salvage,
// and the commands cat, inspect and verify as their users run them.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/captured_output.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/image_program.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/oracles/naive_format.h"
#include "tests/support/oracles/naive_scan.h"
#include "tools/cli/commands/command_line.h"
#include "tools/cli/commands/commands.h"

namespace alpheus::testing {
namespace {

// A truncated region is padded to what its superline says; a forged one may
// say anything, and reading that much is not what is tested here.
constexpr uint64_t kSalvageBytesMax = 1 << 20;

MemoryFile& RegionFile() {
  static MemoryFile* const file = new MemoryFile;
  return *file;
}

// The results of the naive code for the file.
struct Expectation {
  naive::Region region;
  naive::ScanTask task;
  naive::ScanOutcome scan;
  absl::StatusCode pass = absl::StatusCode::kOk;    // of ForEach
  absl::StatusCode verify = absl::StatusCode::kOk;  // of Verify
};

Expectation Expect(naive::Bytes bytes) {
  Expectation e;
  e.region = naive::ReadRegion(bytes, naive::Mode::kExact);
  if (e.region.outcome != naive::Outcome::kGood) return e;
  e.task = naive::TaskOf(e.region, bytes);
  e.scan = naive::Scan(e.task);
  const bool corrupt = e.scan.verdict == "corrupt";
  // After a clean close everything must be whole.
  const bool bad_copy = e.region.closed_cleanly && !e.region.bad_copies.empty();
  const bool bad_pad = e.region.closed_cleanly && !e.scan.damaged_pads.empty();
  if (corrupt || bad_copy) e.pass = absl::StatusCode::kDataLoss;
  if (corrupt || bad_copy || bad_pad) e.verify = absl::StatusCode::kDataLoss;
  return e;
}

// Headers and the head alone say it when W is above 1.
uint64_t DurableLsn(const Expectation& e) {
  if (e.region.superline.write_quorum == 1) return e.scan.proven_lsn;
  return std::max(e.scan.named_durable_lsn, e.region.superline.head_lsn - 1);
}

RecordState StateOf(const naive::Record& record, uint64_t durable_lsn) {
  if (record.cleaned) return RecordState::kCleaned;
  if (record.type == 3) return RecordState::kAborted;
  return record.lsn > durable_lsn ? RecordState::kCompleted
                                  : RecordState::kDurable;
}

void ExpectSameRecord(const ReaderRecord& record, const naive::Record& expected,
                      const Expectation& e) {
  ExpectSame("read LSN", record.lsn, expected.lsn);
  ExpectSame("read epoch", record.epoch, expected.epoch);
  ExpectSame("read state", RecordStateName(record.state),
             RecordStateName(StateOf(expected, DurableLsn(e))));
  ExpectSame("read offset", record.offset,
             e.region.superline.ring_offset +
                 expected.offset % e.region.superline.ring_capacity);
  ExpectTrue(std::ranges::equal(record.payload, expected.payload),
             "read payload");
}

void ExpectSameInfo(const RegionInfo& info, const Expectation& e) {
  ExpectSame("info's head", info.head_lsn, e.region.superline.head_lsn);
  ExpectSame("info's epochs", info.epochs.size(), e.region.table.size());
  ExpectSame("info's clean close", info.closed_cleanly,
             e.region.closed_cleanly);
  ExpectSame("info's writer", info.has_writer, false);
  ExpectSame("info's faults", info.single_faults.size(),
             e.region.bad_copies.size());
}

void ExpectSameReport(const VerifyReport& report, const Expectation& e) {
  ExpectSame("verified status", absl::StatusCodeToString(report.status.code()),
             absl::StatusCodeToString(e.verify));
  ExpectSame("verified verdict", report.verdict, e.scan.verdict);
  ExpectSame("verified end", report.end_lsn, e.scan.end.lsn - 1);
  ExpectSame("verified tail", report.tail_offset, e.scan.end.offset);
  ExpectSame("verified proof", report.proven_lsn, e.scan.proven_lsn);
  ExpectSame("verified durable", report.durable_lsn, DurableLsn(e));
  ExpectSame("verified data", report.data_records, e.scan.data_records);
  ExpectSame("verified cleaned", report.cleaned_records,
             e.scan.cleaned_records);
  ExpectSame("verified aborted", report.aborted_records,
             e.scan.aborted_records);
  ExpectSame("verified PADs", report.damaged_pads, e.scan.damaged_pads.size());
  ExpectSame("verified bytes", report.payload_bytes, e.scan.payload_bytes);
  ExpectSame("verified cut", report.cut_records, e.scan.cut_records);
}

void FuzzReader(const Expectation& e) {
  const auto reader = LogReader::Open(RegionFile().path());
  ExpectSameOutcome("reader", reader.status(), e.region.outcome);
  if (!reader.ok()) return;
  ExpectSameInfo((*reader)->info(), e);
  size_t seen = 0;
  const absl::Status pass = (*reader)->ForEach([&](const ReaderRecord& record) {
    ExpectTrue(seen < e.scan.records.size(), "no record is invented");
    ExpectSameRecord(record, e.scan.records[seen++], e);
    return absl::OkStatus();
  });
  ExpectSame("records read", seen, e.scan.records.size());
  ExpectSame("reading ends", absl::StatusCodeToString(pass.code()),
             absl::StatusCodeToString(e.pass));
  ExpectSameReport((*reader)->Verify(), e);
}

// The region's size, as the superline that holds says; 0 if none holds.
uint64_t NamedBytes(naive::Bytes bytes) {
  if (bytes.size() < naive::kFixedBytes) return 0;
  std::optional<naive::CellValue> newest;
  for (int copy = 0; copy < 2; ++copy) {
    auto value = naive::ReadCopy(naive::SuperlineCell(), copy,
                                 bytes.subspan(naive::SuperlineOffset(copy),
                                               naive::kSuperlineCopyBytes));
    if (value && (!newest || value->seq > newest->seq)) {
      newest = std::move(value);
    }
  }
  naive::Superline superline;
  if (!newest || naive::ReadSuperline(newest->content, &superline) !=
                     naive::Outcome::kGood) {
    return 0;
  }
  return superline.region_bytes;
}

// The record that salvage delivered is in the ring, whole.
void ExpectHolds(const ReaderRecord& record, const naive::Region& region,
                 const naive::ScanTask& task) {
  const uint64_t capacity = task.ring.size();
  uint64_t offset = task.head.offset / capacity * capacity + record.offset -
                    region.superline.ring_offset;
  if (offset < task.head.offset) offset += capacity;
  const auto expected = naive::RecordAt(task, record.lsn.value, offset);
  ExpectTrue(expected.has_value(), "what is salvaged has a header that holds");
  ExpectTrue(std::ranges::equal(record.payload, expected->payload),
             "what is salvaged is what is there");
  ExpectTrue(expected->cleaned || naive::PayloadHolds(task, *expected),
             "what is salvaged is whole");
}

// Salvage delivers what an opening would, then what else holds: in LSN order,
// each record whole and at its place, each gap told.
void FuzzSalvage(std::vector<std::byte> bytes, const Expectation& e) {
  const uint64_t wanted = NamedBytes(bytes);
  if (wanted > kSalvageBytesMax) return;
  bytes.resize(std::max<size_t>(bytes.size(), wanted));
  const naive::Region region = naive::ReadRegion(bytes, naive::Mode::kSalvage);
  const auto reader = LogReader::OpenForSalvage(RegionFile().path());
  ExpectSame("salvage opens", reader.ok(),
             region.outcome == naive::Outcome::kGood);
  if (!reader.ok()) return;
  const naive::ScanTask task = naive::TaskOf(region, bytes);
  const std::vector<naive::Record>& first = e.scan.records;
  uint64_t last = region.superline.head_lsn - 1;
  size_t seen = 0;
  bool gap_told = false;
  const absl::Status done = (*reader)->ForEachSalvageable(
      [&](const ReaderRecord& record) {
        if (seen < first.size()) ExpectSameRecord(record, first[seen], e);
        ++seen;
        ExpectHolds(record, region, task);
        ExpectTrue(record.lsn.value == last + 1 || gap_told,
                   "what salvage misses is told");
        ExpectTrue(record.lsn.value > last, "salvage goes on, never back");
        last = record.lsn.value;
        gap_told = false;
        return absl::OkStatus();
      },
      [&](Lsn from, Lsn after) {
        ExpectTrue(after == Lsn(0) || after > from, "a gap is not empty");
        ExpectSame("a gap starts after what was read", from, last + 1);
        if (after != Lsn(0)) last = after.value - 1;
        gap_told = true;
      });
  ExpectTrue(done.ok(), "salvage of a dead log has no error");
  ExpectTrue(seen >= first.size(), "salvage reads what opening would");
}

// ---- Commands

absl::Status RunCommand(const std::vector<std::string>& words) {
  std::ostringstream unused;
  const auto parsed = cli::ParseCommandLine(words, unused, unused);
  ExpectTrue(std::holds_alternative<cli::Command>(parsed), "a good command");
  return std::get<cli::Command>(parsed)();
}

void ExpectJson(const std::string& output) {
  size_t at = 0;
  while (at < output.size()) {
    const size_t end = output.find('\n', at);
    ExpectTrue(end != std::string::npos, "JSON comes in whole lines");
    ExpectTrue(nlohmann::json::accept(output.substr(at, end - at)),
               "JSON can be parsed");
    at = end + 1;
  }
}

std::string Framed(const Expectation& e) {
  std::string framed;
  for (const naive::Record& record : e.scan.records) {
    if (record.cleaned || record.type == 3) continue;
    for (int i = 0; i < 4; ++i) {
      framed.push_back(static_cast<char>(record.payload.size() >> (8 * i)));
    }
    for (const std::byte b : record.payload) {
      framed.push_back(static_cast<char>(b));
    }
  }
  return framed;
}

void FuzzCommand(uint64_t which, const Expectation& e) {
  const std::string& file = RegionFile().path();
  CapturedOutput().Take();
  absl::Status status;
  absl::StatusCode expected = e.verify;
  if (which == 0) {
    status = RunCommand({"cat", "--framing", "len32", "--file", file});
    expected = e.pass;
    ExpectTrue(CapturedOutput().Take() == Framed(e), "cat gives the payloads");
  } else {
    const char* const commands[] = {"cat", "inspect", "verify"};
    const std::string command = commands[which % 3];
    const bool as_json = which < 4 || command == "cat";
    if (command == "cat") expected = e.pass;
    std::vector<std::string> arguments = {command, "--file", file};
    if (as_json) arguments.emplace_back("--json");
    status = RunCommand(arguments);
    const std::string output = CapturedOutput().Take();
    if (as_json) ExpectJson(output);
  }
  if (e.region.outcome != naive::Outcome::kGood) {
    ExpectSameOutcome("command", status, e.region.outcome);
    return;
  }
  ExpectSame("command ends", absl::StatusCodeToString(status.code()),
             absl::StatusCodeToString(expected));
}

void FuzzOne(FuzzInput& input) {
  const uint64_t choice = input.Byte();
  TinyImage image;
  if (choice % 16 == 15) {
    const auto raw = std::as_bytes(input.rest());
    image.bytes.assign(raw.begin(), raw.end());
  } else if (choice % 16 >= 8) {
    image = PlainImage();
  } else {
    image = RunImageProgram(input);
  }
  Mutate(input, MutationTarget::kAnything, /*mutations_max=*/8, &image);
  RegionFile().Set(alpheus::AsText(image.bytes));
  const Expectation e = Expect(image.bytes);
  FuzzReader(e);
  switch (choice / 16) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
      FuzzCommand(choice / 16, e);
      break;
    default:
      FuzzSalvage(std::move(image.bytes), e);
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
