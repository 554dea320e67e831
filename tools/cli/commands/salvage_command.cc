// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "api/rocksdb/store/wal_repairer.h"
#include "log/base/status_macros.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/progress.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/damaged_region.h"

namespace alpheus::cli {
namespace {

// Only the last force counts; a cap on what waits for it is enough.
constexpr uint32_t kForceFrequency = 1024;

struct SalvageArguments {
  std::string in;
  std::string out;
};

bool AreSameFile(const std::string& a, const std::string& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error) && !error;
}

bool Exists(const std::string& path) {
  std::error_code error;
  // Links are not followed: a dangling link exists, too.
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
    return absl::AlreadyExistsError(
        absl::StrCat(arguments.out,
                     ": exists, and salvage overwrites nothing. Name a new "
                     "file. Nothing was changed"));
  }
  return absl::OkStatus();
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

absl::Status Keep(std::span<const std::byte> payload, Log* out,
                  SalvageTally* tally) {
  ForceOptions force;
  force.frequency = kForceFrequency;
  ALPHEUS_RETURN_IF_ERROR(out->Append(payload, force).status());
  ++tally->records;
  tally->payload_bytes += payload.size();
  return absl::OkStatus();
}

absl::Status CopyReadable(LogReader* reader, Log* out,
                          wal::WalRepairer* repairer, SalvageTally* tally) {
  ProgressLine progress("salvaging");
  ALPHEUS_RETURN_IF_ERROR(
      ForEachLeft(reader, tally, [&](const ReaderRecord& record) {
        progress.ShowCount(tally->records);
        return repairer->Repair(record.payload,
                                [&](std::span<const std::byte> payload) {
                                  return Keep(payload, out, tally);
                                });
      }));
  return out->Close();
}

void ReportTally(const SalvageArguments& arguments, const SalvageTally& tally,
                 const wal::WalRepairer& repairer) {
  Report(absl::StrCat(
      arguments.out, ": ", tally.records, " records with ", tally.payload_bytes,
      " bytes salvaged, numbered again from LSN 1; ", tally.passed_over,
      " cleaned or aborted records skipped; ", DescribeGaps(tally)));
  ReportRepair(arguments.out, repairer, tally);
}

absl::Status RunSalvage(const SalvageArguments& arguments) {
  ALPHEUS_RETURN_IF_ERROR(CheckPaths(arguments));
  SalvageTally tally;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                           OpenDamaged(arguments.in, &tally));
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Log> out,
                           CreateLike(reader->info(), arguments.out));
  wal::WalRepairer repairer;
  const absl::Status copied =
      CopyReadable(reader.get(), out.get(), &repairer, &tally);
  out.reset();
  if (!copied.ok()) {
    // This command has just made it, and it is incomplete.
    unlink(arguments.out.c_str());
    return copied;
  }
  ReportTally(arguments, tally, repairer);
  ALPHEUS_RETURN_IF_ERROR(
      WriteAll(STDOUT_FILENO, absl::StrCat(tally.records, "\n")));
  return Verdict(arguments.in, arguments.out, tally);
}

}  // namespace

void AddSalvageCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<SalvageArguments>();
  CLI::App* command =
      AddCommand(app, "salvage",
                 {.purpose = "Copy what can be read of a damaged region",
                  .about = "Copies every record that can still be read into a "
                           "new region of the same size. Never changes the "
                           "damaged region. Prints the number of records.",
                  .good = "all records were copied",
                  .failed = "anything else: no such file, the new file exists",
                  .data_loss = "records were, or may have been, lost"});
  AddOption(command, "IN", &arguments->in, "Damaged region").Required();
  AddOption(command, "OUT", &arguments->out, "Region to create").Required();
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunSalvage(*arguments); };
  });
}

}  // namespace alpheus::cli
