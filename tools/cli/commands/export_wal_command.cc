// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "alpheus/cluster_reader.h"
#include "alpheus/log_reader.h"
#include "api/rocksdb/store/wal_index.h"
#include "api/rocksdb/store/wal_record.h"
#include "api/rocksdb/store/wal_repairer.h"
#include "log/base/bytes.h"
#include "log/base/status_macros.h"
#include "log/pmem/file_error.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/standard_streams.h"
#include "tools/cli/source/damaged_region.h"
#include "tools/cli/source/log_source.h"

namespace alpheus::cli {
namespace {

constexpr size_t kPieceBytes = 1 << 20;
constexpr char kUnfinished[] = ".export";

struct ExportArguments {
  LogSource source;
  std::string first;   // REGION, or with --cluster DIR
  std::string second;  // DIR

  const std::string& directory() const {
    return source.is_cluster() ? first : second;
  }
};

// The WAL files of a log, and what their bytes lie in.
class WalFiles {
 public:
  absl::Status Take(const ReaderRecord& record) {
    absl::Status taken = repairer_.Repair(
        record.payload, [this, &record](std::span<const std::byte> payload) {
          return Apply(record.lsn, payload);
        });
    if (!repairer_.is_of_the_plugin()) {
      return absl::FailedPreconditionError(
          "the log has no WAL files of RocksDB: it is used for something else. "
          "`alpheus cat` shows its records");
    }
    return taken;
  }
  // "" and "archive".
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const char* directory : {"", "archive"}) {
      for (const std::string& name : index_.List(directory)) {
        if (!absl::EndsWith(name, ".log")) continue;
        names.push_back(
            *directory == '\0' ? name : absl::StrCat(directory, "/", name));
      }
    }
    return names;
  }
  std::shared_ptr<wal::WalFile> Find(const std::string& name) const {
    return index_.Find(name);
  }
  const wal::WalRepairer& repairer() const { return repairer_; }

 private:
  absl::Status Apply(Lsn lsn, std::span<const std::byte> payload) {
    records_.emplace_back(payload.begin(), payload.end());
    ALPHEUS_ASSIGN_OR_RETURN(const wal::WalRecord record,
                             wal::DecodeWalRecord(records_.back()));
    return index_.Apply(lsn, 0, record);
  }

  wal::WalRepairer repairer_;
  std::deque<std::vector<std::byte>> records_;
  wal::WalIndex index_;
};

absl::Status Sync(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return NewFileError(path, "open", errno);
  const bool is_synced = fsync(file) == 0;
  absl::Status synced =
      is_synced ? absl::OkStatus() : NewFileError(path, "fsync", errno);
  close(file);
  return synced;
}

absl::Status WriteFile(const std::string& path, wal::WalFile& from) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return NewFileError(path, "open", errno);
  std::vector<std::byte> piece(kPieceBytes);
  absl::Status written;
  for (uint64_t offset = 0; written.ok();) {
    const size_t bytes = from.Read(offset, piece);
    if (bytes == 0) break;
    written = WriteAll(file, AsText(std::span(piece).first(bytes)), path);
    offset += bytes;
  }
  close(file);
  return written.ok() ? Sync(path) : written;
}

// A marker of the plugin is to be replaced; anything else is somebody's.
absl::Status CheckFree(const std::string& directory, const WalFiles& files) {
  for (const std::string& name : files.Names()) {
    const std::string path = absl::StrCat(directory, "/", name);
    std::error_code error;
    const auto status = std::filesystem::symlink_status(path, error);
    if (!std::filesystem::exists(status) ||
        std::filesystem::is_symlink(status)) {
      continue;
    }
    return absl::AlreadyExistsError(
        absl::StrCat(path,
                     ": exists, and the log has a file of that name. Name "
                     "another folder, or "
                     "move the file away. Nothing was changed"));
  }
  return absl::OkStatus();
}

// All are whole and durable before the first one has its name.
absl::Status WriteFiles(const std::string& directory, const WalFiles& files) {
  ALPHEUS_RETURN_IF_ERROR(CheckFree(directory, files));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (const std::string& name : files.Names()) {
    const std::string path = absl::StrCat(directory, "/", name);
    const std::filesystem::path parent =
        std::filesystem::path(path).parent_path();
    std::filesystem::create_directories(parent, error);
    if (error) {
      return NewFileError(parent.string(), "mkdir", error.value());
    }
    ALPHEUS_RETURN_IF_ERROR(WriteFile(path + kUnfinished, *files.Find(name)));
  }
  for (const std::string& name : files.Names()) {
    const std::string path = absl::StrCat(directory, "/", name);
    if (rename((path + kUnfinished).c_str(), path.c_str()) != 0) {
      return NewFileError(path, "rename", errno);
    }
    ALPHEUS_RETURN_IF_ERROR(
        Sync(std::filesystem::path(path).parent_path().string()));
  }
  return absl::OkStatus();
}

absl::Status TakeCluster(const LogSource& source, WalFiles* files) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<ClusterReader> reader,
                           OpenClusterReader(source));
  const absl::Status taken =
      reader->ForEachDurable([&](const ReaderRecord& record) {
        return record.state == RecordState::kDurable ||
                       record.state == RecordState::kCompleted
                   ? files->Take(record)
                   : absl::OkStatus();
      });
  ReportUnread(source, reader->replicas(), taken);
  ALPHEUS_RETURN_IF_ERROR(taken);
  if (reader->durable_lsn_max()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "log ", source.log, ": the records up to LSN ",
      reader->durable_lsn().value,
      " are durable for certain, but too few replicas can be reached to know "
      "how many more there are. Nothing was written; `alpheus status --cluster "
      "FILE --log NAME` names the nodes"));
}

absl::Status RunExport(const ExportArguments& arguments) {
  const std::string& directory = arguments.directory();
  WalFiles files;
  SalvageTally tally;
  if (arguments.source.is_cluster()) {
    ALPHEUS_RETURN_IF_ERROR(TakeCluster(arguments.source, &files));
  } else {
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<LogReader> reader,
                             OpenDamaged(arguments.first, &tally));
    ALPHEUS_RETURN_IF_ERROR(ForEachLeft(
        reader.get(), &tally,
        [&](const ReaderRecord& record) { return files.Take(record); }));
  }
  ALPHEUS_RETURN_IF_ERROR(WriteFiles(directory, files));
  uint64_t bytes = 0;
  for (const std::string& name : files.Names()) {
    bytes += files.Find(name)->size();
  }
  const size_t count = files.Names().size();
  Report(absl::StrCat(directory, ": ", count, " WAL files with ", bytes,
                      " bytes; ", DescribeGaps(tally)));
  ReportRepair(directory, files.repairer(), tally);
  ALPHEUS_RETURN_IF_ERROR(WriteAll(STDOUT_FILENO, absl::StrCat(count, "\n")));
  return Verdict(arguments.first, directory, tally);
}

}  // namespace

void AddExportWalCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = AddCommand(
      app, "export-wal",
      {.purpose = "Write RocksDB's WAL files as plain files",
       .about = "RocksDB's plugin keeps WAL files in a log. This command "
                "writes them as files NUMBER.log, which RocksDB opens without "
                "the plugin. Use it to stop using the plugin, to salvage, to "
                "change the log's size, or to copy.\n"
                "Never changes the log. DIR may be the database's own folder: "
                "the plugin's markers in it are replaced. The command refuses "
                "to replace any other file. Lost bytes become damaged records. "
                "Prints the number of files.",
       .good = "all bytes were written",
       .failed = "anything else: no such file, a file of that name exists",
       .data_loss = "bytes were, or may have been, lost"});
  AddOption(command, "REGION", &arguments->first,
            "Region of the log; not with --cluster");
  AddOption(command, "DIR", &arguments->second,
            "Folder in which to write the files");
  AddClusterOptions(command, &arguments->source);
  AddTimeoutOption(command, &arguments->source.timeout_ms);
  RequireWhatIsMissing(command, [arguments]() -> std::string {
    const bool is_short =
        arguments->directory().empty() ||
        (arguments->source.is_cluster() && !arguments->second.empty());
    return is_short ? "REGION and DIR, or --cluster and DIR" : "";
  });
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] {
      return Explain(arguments->source, RunExport(*arguments));
    };
  });
}

}  // namespace alpheus::cli
