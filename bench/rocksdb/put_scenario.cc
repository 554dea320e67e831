// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/rocksdb/store/wal_record.h"
#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/rocksdb/database.h"
#include "bench/rocksdb/fill.h"
#include "bench/rocksdb/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

// Samples of one contestant, one per round.
struct Samples {
  std::map<std::string, std::vector<double>> by_metric;
  uint64_t puts = 0;
};

void AddTimes(FillTimes times, Samples* samples) {
  const auto puts = static_cast<double>(times.put_ns.size());
  samples->puts += times.put_ns.size();
  samples->by_metric["throughput"].push_back(
      puts * 1e9 / static_cast<double>(times.elapsed_ns));
  for (const auto& [metric, value] :
       replicated::Summarize(std::move(times.put_ns))) {
    samples->by_metric[metric].push_back(value);
  }
}

absl::Status RunTurn(Contestant& contestant, const Fill& fill,
                     const std::string& folder, Samples* samples) {
  ALPHEUS_ASSIGN_OR_RETURN(const Place place, contestant.Begin());
  ALPHEUS_ASSIGN_OR_RETURN(Database database, Database::Open(place, folder));
  ALPHEUS_ASSIGN_OR_RETURN(FillTimes times, RunFill(database, fill));
  AddTimes(std::move(times), samples);
  ALPHEUS_RETURN_IF_ERROR(database.Close());
  ALPHEUS_RETURN_IF_ERROR(Database::Destroy(place, folder));
  return contestant.End();
}

// The log alone, appending what the plugin writes for a put.
absl::Status RunAppends(const Settings& settings, const Fill& fill,
                        Samples* samples) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::unique_ptr<replicated::Candidate> candidate,
      replicated::Alpheus()({.folder = settings.folder,
                             .ring_bytes = settings.region_bytes,
                             .backups = 1}));
  ALPHEUS_RETURN_IF_ERROR(candidate->Begin(
      alpheus::wal::kWalHeaderBytes + WalBytesPerPut(fill.value_bytes),
      replicated::Waiting::kSpin));
  for (uint64_t i = 0; i < fill.warm_up_puts; ++i) {
    ALPHEUS_RETURN_IF_ERROR(candidate->Append());
  }
  FillTimes times;
  const int64_t start = NowNanos();
  int64_t last = start;
  for (uint64_t i = 0; i < fill.puts && last - start < fill.duration_ns_max;
       ++i) {
    ALPHEUS_RETURN_IF_ERROR(candidate->Append());
    const int64_t now = NowNanos();
    times.put_ns.push_back(static_cast<double>(now - last));
    last = now;
  }
  times.elapsed_ns = last - start;
  AddTimes(std::move(times), samples);
  return candidate->End();
}

void AddTo(Report* report, const std::string& candidate, const Fill& fill,
           const Samples& samples) {
  for (const auto& [metric, values] : samples.by_metric) {
    report->measurements.push_back(
        {.scenario = "put",
         .candidate = candidate,
         .metric = metric,
         .unit = metric == "throughput" ? "puts/s" : "ns",
         .parameters = {{"bytes", fill.value_bytes},
                        {"random", fill.is_random ? 1 : 0},
                        {"sync", fill.with_sync ? 1 : 0},
                        {"threads", static_cast<uint64_t>(fill.threads)}},
         .samples = values,
         .details = {{"puts", static_cast<double>(samples.puts)}}});
  }
}

absl::Status MeasureFill(const Settings& settings, Contest& contest,
                         const Fill& fill, Report* report) {
  const auto& contestants = contest.contestants;
  const bool has_append =
      fill.with_sync && fill.threads == 1 && IsWanted(settings, kAppendName);
  std::vector<Samples> samples(contestants.size() + (has_append ? 1 : 0));
  ALPHEUS_RETURN_IF_ERROR(
      Interleave(settings.rounds, samples.size(), [&](size_t i) {
        return i == contestants.size()
                   ? RunAppends(settings, fill, &samples[i])
                   : RunTurn(*contestants[i], fill, contest.database_folder(),
                             &samples[i]);
      }));
  for (size_t i = 0; i < samples.size(); ++i) {
    AddTo(report,
          i == contestants.size() ? kAppendName : contestants[i]->name(), fill,
          samples[i]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasurePut(const Settings& settings, Contest& contest,
                        Report* report) {
  Fill fill{.warm_up_puts = settings.warm_up_puts,
            .puts = settings.puts,
            .duration_ns_max = settings.turn_ns_max};
  for (const uint64_t bytes : settings.value_bytes) {
    for (const int threads : settings.threads) {
      for (const bool with_sync : {true, false}) {
        for (const bool is_random : {false, true}) {
          fill.value_bytes = bytes;
          fill.threads = threads;
          fill.with_sync = with_sync;
          fill.is_random = is_random;
          ALPHEUS_RETURN_IF_ERROR(MeasureFill(settings, contest, fill, report));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::wal
