// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alpheus/log.h"
#include "bench/harness/checksum_pass.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/backup_process.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/candidates/copy_server.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"
#include "log/format/layout.h"
#include "log/pmem/region.h"

namespace alpheus::bench::replicated {
namespace {

constexpr uint64_t kRecordPayloadBytes = 1024;
constexpr uint32_t kFillBatch = 64;
// Three nodes: the first never ran, the second was primary, the third its
// backup. So a log is opened at the first node with nothing of its own.
constexpr uint64_t kStranger = 1;
constexpr uint64_t kPrimary = 2;
constexpr uint64_t kBackup = 3;
// A member that does not answer is not waited for: in this scenario a copy is
// lost.
constexpr uint32_t kGatherMs = 1;

LogOptions OptionsAt(const std::string& folder, uint64_t node) {
  LogOptions options;
  options.path = ClusterFolder::ReplicaOf(folder, node);
  options.replication.cluster_file = ClusterFolder::ClusterFile(folder);
  options.replication.node = node;
  options.replication.log_name = BenchLogName(0);
  options.replication.gather_ms = kGatherMs;
  options.replication.open_timeout_ms = 60'000;
  options.replication.ack_timeout_ms = 60'000;
  return options;
}

absl::Status CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(
      from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("copying ", from, " to ", to, " failed: ", error.message()));
}

// A log that was not closed, as images of its replicas; each turn works on a
// copy of them.
class Fetched {
 public:
  static absl::StatusOr<std::unique_ptr<Fetched>> Make(const Settings& settings,
                                                       uint64_t log_mib) {
    const uint64_t ring_bytes = log_mib << 20;
    ALPHEUS_ASSIGN_OR_RETURN(ClusterFolder folder,
                             ClusterFolder::Make({.parent = settings.folder,
                                                  .ring_bytes = ring_bytes,
                                                  .nodes = 3,
                                                  .write_quorum = 2}));
    auto made = std::make_unique<Fetched>(settings, log_mib, std::move(folder));
    ALPHEUS_RETURN_IF_ERROR(made->KeepImage(kStranger));
    ALPHEUS_RETURN_IF_ERROR(made->Write());
    return made;
  }

  Fetched(const Settings& settings, uint64_t log_mib, ClusterFolder folder)
      : settings_(settings), log_mib_(log_mib), folder_(std::move(folder)) {}

  // Opened by the old primary, whose copy is whole; its backup is there.
  absl::Status OpenOwn() { return Open("own copy", kPrimary); }
  // Opened by the node that has nothing of it, when the primary's is lost.
  absl::Status OpenLost() { return Open("copy lost", kStranger); }

  // The ring over a socket into a region, and one pass over it.
  absl::Status CopyAndPass() {
    ALPHEUS_ASSIGN_OR_RETURN(
        const BackupProcess server,
        BackupProcess::Start(kCopyKind, Image(kBackup), log_mib_ << 20));
    // Into the same file as ours, so that as many pages are there already.
    const std::string file =
        ClusterFolder::ReplicaOf(folder_.path(), kStranger);
    ALPHEUS_RETURN_IF_ERROR(CopyFile(Image(kStranger), file));
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const Region region, Region::OpenForWriting(file));
    ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                             Layout::ForRegion(region.bytes().size()));
    const std::span<std::byte> ring =
        region.bytes().subspan(layout.ring_offset, layout.ring_capacity);
    ALPHEUS_RETURN_IF_ERROR(FetchCopy(server.address(), ring));
    const int64_t fetched = NowNanos();
    const PassResult pass = ChecksumPass(ring);
    const int64_t end = NowNanos();
    Sample("floor", "copy", fetched - start);
    Sample("floor", "pass", end - fetched);
    Sample("floor", "total", end - start);
    return CheckCount("one pass", pass.records);
  }

  void AddTo(Report* report) const {
    for (const auto& [key, values] : samples_) {
      report->measurements.push_back(
          {.scenario = "recovery",
           .candidate = key.first,
           .metric = key.second,
           .unit = "ms",
           .parameters = {{"log_mib", log_mib_},
                          {"bytes", kRecordPayloadBytes}},
           .samples = values,
           .details = {{"records", static_cast<double>(records_)}}});
    }
  }

 private:
  std::string Image(uint64_t node) const {
    return absl::StrCat(folder_.path(), "/image", node);
  }
  absl::Status KeepImage(uint64_t node) const {
    return CopyFile(ClusterFolder::ReplicaOf(folder_.path(), node),
                    Image(node));
  }
  absl::StatusOr<BackupProcess> StartBackup() const {
    return BackupProcess::Start(kAlpheusBlockKind, folder_.path(), kBackup);
  }

  absl::Status Write() {
    ALPHEUS_ASSIGN_OR_RETURN(const BackupProcess backup, StartBackup());
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                             Log::Open(OptionsAt(folder_.path(), kPrimary)));
    const std::string payload(kRecordPayloadBytes, 'Z');
    for (;;) {
      const absl::StatusOr<Lsn> lsn =
          log->Append(payload, {.frequency = kFillBatch});
      if (absl::IsResourceExhausted(lsn.status())) break;
      ALPHEUS_RETURN_IF_ERROR(lsn.status());
      ++records_;
    }
    ALPHEUS_RETURN_IF_ERROR(log->Force(Lsn(log->next_lsn().value - 1)));
    // All of it is durable: as after a crash now.
    ALPHEUS_RETURN_IF_ERROR(KeepImage(kPrimary));
    return KeepImage(kBackup);
  }

  absl::Status Open(const std::string& candidate, uint64_t node) {
    for (const uint64_t one : {kStranger, kPrimary, kBackup}) {
      ALPHEUS_RETURN_IF_ERROR(
          CopyFile(Image(one), ClusterFolder::ReplicaOf(folder_.path(), one)));
    }
    ALPHEUS_ASSIGN_OR_RETURN(const BackupProcess backup, StartBackup());
    const int64_t start = NowNanos();
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Log> log,
                             Log::Open(OptionsAt(folder_.path(), node)));
    const int64_t opened = NowNanos();
    uint64_t count = 0;
    ALPHEUS_RETURN_IF_ERROR(
        log->ForEachRecovered([&count](const RecoveredRecord&) {
          ++count;
          return absl::OkStatus();
        }));
    const int64_t end = NowNanos();
    Sample(candidate, "open", opened - start);
    Sample(candidate, "iterate", end - opened);
    Sample(candidate, "total", end - start);
    ALPHEUS_RETURN_IF_ERROR(CheckCount(candidate, count));
    return log->Close();
  }

  void Sample(const std::string& candidate, const std::string& metric,
              int64_t nanos) {
    samples_[{candidate, metric}].push_back(static_cast<double>(nanos) / 1e6);
  }

  absl::Status CheckCount(const std::string& who, uint64_t found) const {
    if (found == records_) return absl::OkStatus();
    return absl::DataLossError(
        absl::StrCat(who, " found ", found, " records instead of ", records_));
  }

  const Settings settings_;
  const uint64_t log_mib_;
  const ClusterFolder folder_;
  uint64_t records_ = 0;
  // One sample per round, by candidate and metric.
  std::map<std::pair<std::string, std::string>, std::vector<double>> samples_;
};

}  // namespace

absl::Status MeasureRecovery(const Settings& settings, Report* report) {
  using Turn = absl::Status (Fetched::*)();
  const std::vector<Turn> turns = {&Fetched::CopyAndPass, &Fetched::OpenOwn,
                                   &Fetched::OpenLost};
  for (const uint64_t log_mib : settings.recovery_mib) {
    ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Fetched> fetched,
                             Fetched::Make(settings, log_mib));
    ALPHEUS_RETURN_IF_ERROR(
        Interleave(settings.rounds, turns.size(),
                   [&](size_t i) { return ((*fetched).*turns[i])(); }));
    fetched->AddTo(report);
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
