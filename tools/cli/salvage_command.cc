// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands.h"
#include "tools/cli/parser.h"
#include "tools/cli/progress.h"
#include "tools/cli/standard_streams.h"

namespace alpheus::cli {
namespace {

// Only the last force counts; a cap on what waits for it is enough.
constexpr uint32_t kForceFrequency = 1024;

struct SalvageArguments {
  std::string in;
  std::string out;
};

struct SalvageTally {
  uint64_t records = 0;
  uint64_t payload_bytes = 0;
  uint64_t passed_over = 0;  // cleaned or aborted: no longer wanted
  uint64_t gaps = 0;
  uint64_t lost_lsns = 0;        // in gaps whose end is known
  bool lost_open_end = false;    // a gap without an end: number unknown
  bool has_unknown_end = false;  // records at the end may be missing unseen
};

void Tell(const std::string& message) {
  std::fprintf(stderr, "alpheus: %s\n", message.c_str());
}

bool AreSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

bool Exists(const std::string& path) {
  std::error_code error;
  // Not followed: a dangling link is something that exists, too.
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

absl::Status CheckPaths(const SalvageArguments& arguments) {
  if (AreSameFile(arguments.in, arguments.out)) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.out, ": is the same file as ", arguments.in,
        "; salvage never writes in place. Name a new file. Nothing was "
        "changed"));
  }
  if (Exists(arguments.out)) {
    return absl::AlreadyExistsError(absl::StrCat(
        arguments.out,
        ": exists. Name a new file, or remove it. Nothing was changed"));
  }
  return absl::OkStatus();
}

// What opening for reading refuses (no watermark, a file cut short) may still
// hold records; but then nothing says where the log ended.
absl::StatusOr<std::unique_ptr<LogReader>> OpenDamaged(const std::string& in,
                                                       SalvageTally* tally) {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<LogReader> reader,
                           LogReader::OpenForSalvage(in));
  if (reader->info().has_writer) {
    return absl::FailedPreconditionError(
        absl::StrCat(in, ": a writer has this region open; close it first"));
  }
  const absl::Status opened = LogReader::Open(in).status();
  if (!opened.ok()) {
    tally->has_unknown_end = true;
    Tell(std::string(opened.message()));
  }
  return reader;
}

// Creates OUT; nothing is left of it on an error.
absl::StatusOr<std::unique_ptr<Log>> CreateLike(const RegionInfo& info,
                                                const std::string& out) {
  FormatOptions format;
  format.path = out;
  format.region_bytes = info.region_bytes;
  ALPHEUS_RETURN_IF_ERROR(Log::Format(format).status());
  LogOptions options;
  options.path = out;
  absl::StatusOr<std::unique_ptr<Log>> log = Log::Open(options);
  if (!log.ok()) unlink(out.c_str());
  return log;
}

absl::Status Keep(const ReaderRecord& record, Log* out, SalvageTally* tally) {
  if (record.state == RecordState::kCleaned ||
      record.state == RecordState::kAborted) {
    ++tally->passed_over;
    return absl::OkStatus();
  }
  ForceOptions force;
  force.frequency = kForceFrequency;
  ALPHEUS_RETURN_IF_ERROR(out->Append(record.payload, force).status());
  ++tally->records;
  tally->payload_bytes += record.payload.size();
  return absl::OkStatus();
}

void CountLoss(const std::string& in, Lsn first, Lsn behind,
               SalvageTally* tally) {
  ++tally->gaps;
  if (behind == Lsn(0)) {
    tally->lost_open_end = true;
    Tell(absl::StrCat(in, ": lost: LSN ", first.value,
                      " and what was behind it, if anything"));
    return;
  }
  tally->lost_lsns += behind - first;
  Tell(absl::StrCat(in, ": lost: LSN ", first.value, " to ", behind.value - 1));
}

absl::Status CopyReadable(const SalvageArguments& arguments, LogReader* reader,
                          Log* out, SalvageTally* tally) {
  ProgressLine progress("salvaging");
  absl::Status copied = reader->ForEachSalvageable(
      [&](const ReaderRecord& record) {
        progress.ShowCount(tally->records);
        return Keep(record, out, tally);
      },
      [&](Lsn first, Lsn behind) {
        CountLoss(arguments.in, first, behind, tally);
      });
  // Damage is what this command is for: the gaps have told it.
  if (!copied.ok() && !absl::IsDataLoss(copied)) return copied;
  return out->Close();
}

void TellTally(const SalvageArguments& arguments, const SalvageTally& tally) {
  const bool is_minimum = tally.lost_open_end;
  Tell(absl::StrCat(arguments.out, ": ", tally.records, " records with ",
                    tally.payload_bytes,
                    " bytes salvaged, numbered anew from LSN 1; ",
                    tally.passed_over, " cleaned or aborted passed over; ",
                    tally.gaps, " gaps with ", is_minimum ? "at least " : "",
                    tally.lost_lsns + (is_minimum ? 1 : 0), " LSNs lost"));
}

// What the exit status says of the salvage.
absl::Status Verdict(const SalvageArguments& arguments,
                     const SalvageTally& tally) {
  if (tally.gaps > 0) {
    return absl::DataLossError(absl::StrCat(
        arguments.in, ": some records can't be read any more; ", arguments.out,
        " holds the others. Compare with a copy before using it"));
  }
  if (tally.has_unknown_end) {
    return absl::DataLossError(absl::StrCat(
        arguments.in, ": nothing tells where the log ended; ", arguments.out,
        " holds all that could be found, but records at the end may be "
        "missing. Compare with a copy before using it"));
  }
  return absl::OkStatus();
}

absl::Status RunSalvage(const SalvageArguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(CheckPaths(arguments));
  SalvageTally tally;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           OpenDamaged(arguments.in, &tally));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> out,
                           CreateLike(reader->info(), arguments.out));
  const absl::Status copied =
      CopyReadable(arguments, reader.get(), out.get(), &tally);
  out.reset();
  if (!copied.ok()) {
    // Made by us a moment ago, and not what was asked for.
    unlink(arguments.out.c_str());
    return copied;
  }
  TellTally(arguments, tally);
  ALPHEUS_RETURN_IF_ERROR(
      WriteAll(STDOUT_FILENO, absl::StrCat(tally.records, "\n")));
  return Verdict(arguments, tally);
}

}  // namespace

void AddSalvageCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<SalvageArguments>();
  CLI::App* command = AddSubcommand(
      app, "salvage",
      "Copy every record that can still be read from a damaged region into a "
      "new one of the same size. Never changes the damaged region. Prints the "
      "number of records; exit status 3 if any was, or may have been, lost.");
  AddOption(command, "IN", &arguments->in, "Damaged region").Required();
  AddOption(command, "OUT", &arguments->out, "Region to create").Required();
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunSalvage(*arguments); };
  });
}

}  // namespace alpheus::cli
