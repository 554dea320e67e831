// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/scenario.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "bench/local/clock.h"
#include "bench/local/interleave.h"
#include "bench/replicated/alpheus.h"
#include "bench/replicated/bare_fabric.h"
#include "bench/replicated/candidate.h"
#include "bench/replicated/floor.h"
#include "bench/replicated/system_calls.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr const char* kScenario = "latency";

struct Contest {
  uint64_t bytes = 0;
  int backups = 0;
  Waiting waiting = Waiting::kSpin;
  uint64_t warm_up_ops = 0;
  uint64_t ops = 0;
};

// Of one candidate, a sample per round.
struct Samples {
  std::map<std::string, std::vector<double>> by_metric;
  SystemCalls calls;
  uint64_t ops = 0;
};

// Requires: sorted, not empty.
double Quantile(const std::vector<double>& sorted, double share) {
  const double last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<size_t>(share * last)];
}

void Add(std::vector<double> times, Samples* samples) {
  double sum = 0;
  for (const double time : times) sum += time;
  std::sort(times.begin(), times.end());
  auto& by_metric = samples->by_metric;
  by_metric["p50"].push_back(Quantile(times, 0.5));
  by_metric["p99"].push_back(Quantile(times, 0.99));
  by_metric["p99.9"].push_back(Quantile(times, 0.999));
  by_metric["mean"].push_back(sum / static_cast<double>(times.size()));
}

void Add(const SystemCalls& before, const SystemCalls& after,
         SystemCalls* sum) {
  sum->sends += after.sends - before.sends;
  sum->receives += after.receives - before.receives;
  sum->waits += after.waits - before.waits;
  sum->yields += after.yields - before.yields;
}

absl::Status RunTurn(Candidate& candidate, const Contest& contest,
                     Samples* samples) {
  ALPHEUS_RETURN_IF_ERROR(candidate.Begin(contest.bytes, contest.waiting));
  for (uint64_t i = 0; i < contest.warm_up_ops; ++i) {
    ALPHEUS_RETURN_IF_ERROR(candidate.Append());
  }
  std::vector<double> times;
  times.reserve(contest.ops);
  const SystemCalls before = CountSystemCalls();
  int64_t last = NowNanos();
  for (uint64_t i = 0; i < contest.ops; ++i) {
    ALPHEUS_RETURN_IF_ERROR(candidate.Append());
    const int64_t now = NowNanos();
    times.push_back(static_cast<double>(now - last));
    last = now;
  }
  Add(before, CountSystemCalls(), &samples->calls);
  samples->ops += contest.ops;
  Add(std::move(times), samples);
  return candidate.End();
}

void AddTo(Report* report, const std::string& candidate, const Contest& contest,
           const Samples& samples) {
  const auto per_op = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(samples.ops);
  };
  for (const auto& [metric, values] : samples.by_metric) {
    report->measurements.push_back(
        {.scenario = kScenario,
         .candidate = candidate,
         .metric = metric,
         .unit = "ns",
         .parameters = {{"bytes", contest.bytes},
                        {"backups", static_cast<uint64_t>(contest.backups)},
                        {"spin", static_cast<uint64_t>(contest.waiting)}},
         .samples = values,
         .details = {{"sends", per_op(samples.calls.sends)},
                     {"receives", per_op(samples.calls.receives)},
                     {"waits", per_op(samples.calls.waits)},
                     {"yields", per_op(samples.calls.yields)}}});
  }
}

using Candidates = std::vector<std::unique_ptr<Candidate>>;

absl::Status RunContest(const Settings& settings, const Candidates& candidates,
                        const Contest& contest, Report* report) {
  std::vector<Samples> samples(candidates.size());
  ALPHEUS_RETURN_IF_ERROR(Interleave(
      settings.rounds, candidates.size(),
      [&](size_t i) { return RunTurn(*candidates[i], contest, &samples[i]); }));
  for (size_t i = 0; i < candidates.size(); ++i) {
    AddTo(report, candidates[i]->name(), contest, samples[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Candidates> MakeAll(const Work& work) {
  Candidates candidates;
  for (const MakeCandidate& make : {Floor(), BareFabric(), Alpheus()}) {
    ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Candidate> made, make(work));
    candidates.push_back(std::move(made));
  }
  return candidates;
}

absl::Status MeasureWithBackups(const Settings& settings, int backups,
                                Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const Candidates candidates,
                           MakeAll({.folder = settings.folder,
                                    .ring_bytes = settings.ring_bytes,
                                    .backups = backups}));
  for (const uint64_t bytes : settings.sizes) {
    for (const Waiting waiting : {Waiting::kSpin, Waiting::kBlock}) {
      const Contest contest{.bytes = bytes,
                            .backups = backups,
                            .waiting = waiting,
                            .warm_up_ops = settings.warm_up_ops,
                            .ops = waiting == Waiting::kSpin
                                       ? settings.spin_ops
                                       : settings.block_ops};
      ALPHEUS_RETURN_IF_ERROR(
          RunContest(settings, candidates, contest, report));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 7;
  s.ring_bytes = 64 << 20;
  s.sizes = {64, 256, 1024, 4096, 16384};
  s.backups = {1, 2};
  s.warm_up_ops = 2'000;
  s.spin_ops = 20'000;
  s.block_ops = 3'000;
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 5;
  s.ring_bytes = 16 << 20;
  s.warm_up_ops = 500;
  s.spin_ops = 5'000;
  s.block_ops = 500;
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  s.ring_bytes = 2 << 20;
  s.sizes = {64, 16384};
  s.warm_up_ops = 2;
  s.spin_ops = 50;
  s.block_ops = 20;
  return s;
}

absl::Status MeasureLatency(const Settings& settings, Report* report) {
  for (const int backups : settings.backups) {
    ALPHEUS_RETURN_IF_ERROR(MeasureWithBackups(settings, backups, report));
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
