// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/scenarios/contest.h"

#include <algorithm>
#include <utility>

#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/replicated/candidates/system_calls.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

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
  candidate.StartMeasuring();
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
  std::map<std::string, double> metrics = Summarize(std::move(times));
  candidate.AddMetrics(&metrics);
  for (const auto& [metric, value] : metrics) {
    samples->by_metric[metric].push_back(value);
  }
  return candidate.End();
}

std::map<std::string, double> CallsPerOp(const Samples& samples) {
  const auto per_op = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(samples.ops);
  };
  return {{"sends", per_op(samples.calls.sends)},
          {"receives", per_op(samples.calls.receives)},
          {"waits", per_op(samples.calls.waits)},
          {"yields", per_op(samples.calls.yields)}};
}

void AddTo(Report* report, const Candidate& candidate, const Contest& contest,
           const Samples& samples) {
  Parameters parameters = contest.parameters;
  parameters["bytes"] = contest.bytes;
  parameters["spin"] = static_cast<uint64_t>(contest.waiting);
  for (const auto& [metric, values] : samples.by_metric) {
    report->measurements.push_back({.scenario = contest.scenario,
                                    .candidate = candidate.name(),
                                    .metric = metric,
                                    .unit = "ns",
                                    .parameters = parameters,
                                    .samples = values,
                                    .details = {}});
    if (candidate.is_counted()) {
      report->measurements.back().details = CallsPerOp(samples);
    }
  }
}

}  // namespace

std::map<std::string, double> Summarize(std::vector<double> times) {
  double sum = 0;
  for (const double time : times) sum += time;
  std::sort(times.begin(), times.end());
  return {{"p50", Quantile(times, 0.5)},
          {"p99", Quantile(times, 0.99)},
          {"p99.9", Quantile(times, 0.999)},
          {"mean", sum / static_cast<double>(times.size())}};
}

absl::StatusOr<Candidates> MakeCandidates(
    const std::vector<Contestant>& contestants, const Work& work,
    const std::string& scenario, Report* report) {
  Candidates candidates;
  for (const Contestant& one : contestants) {
    absl::StatusOr<std::unique_ptr<Candidate>> made = one.make(work);
    if (absl::IsNotFound(made.status())) {
      report->skips.push_back({.scenario = scenario,
                               .what = one.name,
                               .why = std::string(made.status().message())});
      continue;
    }
    ALPHEUS_RETURN_IF_ERROR(made.status());
    candidates.push_back(*std::move(made));
  }
  return candidates;
}

absl::Status RunContest(uint64_t rounds, const Candidates& candidates,
                        const Contest& contest, Report* report) {
  std::vector<Samples> samples(candidates.size());
  ALPHEUS_RETURN_IF_ERROR(Interleave(rounds, candidates.size(), [&](size_t i) {
    return RunTurn(*candidates[i], contest, &samples[i]);
  }));
  for (size_t i = 0; i < candidates.size(); ++i) {
    AddTo(report, *candidates[i], contest, samples[i]);
  }
  return absl::OkStatus();
}

absl::Status MeasureOne(uint64_t rounds,
                        const std::vector<Contestant>& contestants,
                        const Work& work, const Contest& contest,
                        Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const Candidates candidates,
      MakeCandidates(contestants, work, contest.scenario, report));
  return RunContest(rounds, candidates, contest, report);
}

}  // namespace alpheus::bench::replicated
