// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <utility>

#include "bench/harness/clock.h"
#include "bench/harness/interleave.h"
#include "bench/harness/samples.h"
#include "bench/harness/workers.h"
#include "bench/ordered_store/contest.h"
#include "bench/ordered_store/scenarios.h"
#include "bench/ordered_store/zipfian.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::ordered_store {
namespace {

// The clock costs some of what a change costs. Odd, so that with one thread
// those that are timed stand at every place of a group and between all forces,
// whose numbers are powers of two.
constexpr uint64_t kOneTimedIn = 17;

// Samples of one worker.
class Sampler {
 public:
  Sampler(StoreCandidate& candidate, int worker)
      : candidate_(candidate), log_(*candidate.log()), worker_(worker) {}

  absl::Status Run(uint64_t ops) {
    for (uint64_t i = 0; i < ops; ++i) {
      const bool is_timed = i % kOneTimedIn == 0;
      const int64_t start = is_timed ? NowNanos() : 0;
      const auto on_written = [&](uint64_t place) {
        if (!is_timed) return;
        const uint64_t durable = log_.durable();
        exposed_.push_back(
            static_cast<double>(place - std::min(place, durable)));
      };
      ALPHEUS_ASSIGN_OR_RETURN(const uint64_t place,
                               candidate_.Update(worker_, on_written));
      if (is_timed) waiting_.emplace_back(place, start);
      if (!waiting_.empty()) NoteDurable();
    }
    return absl::OkStatus();
  }

  // Changes that are not durable at the end were not committed: they are left
  // out.
  const std::vector<double>& latencies() const { return latencies_; }
  const std::vector<double>& exposed() const { return exposed_; }

 private:
  void NoteDurable() {
    const uint64_t durable = log_.durable();
    if (waiting_.front().first > durable) return;
    const int64_t now = NowNanos();
    while (!waiting_.empty() && waiting_.front().first <= durable) {
      latencies_.push_back(static_cast<double>(now - waiting_.front().second));
      waiting_.pop_front();
    }
  }

  StoreCandidate& candidate_;
  CommitLog& log_;
  const int worker_;
  std::deque<std::pair<uint64_t, int64_t>> waiting_;  // place, start
  std::vector<double> latencies_;
  std::vector<double> exposed_;
};

struct Contestant {
  StoreCandidate* candidate = nullptr;
  int threads = 0;
  std::vector<double> p50 = {};
  std::vector<double> p99 = {};
  std::vector<double> exposed = {};
  std::vector<double> exposed_max = {};
};

double Quantile(std::vector<double>& values, double share) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(
                           share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

absl::Status Turn(const Settings& settings, const std::vector<int>& cores,
                  Contestant* contestant) {
  std::vector<Sampler> samplers;
  for (int worker = 0; worker < contestant->threads; ++worker) {
    samplers.emplace_back(*contestant->candidate, worker);
  }
  const auto work = [&](int worker) {
    return samplers[worker].Run(settings.commit_ops);
  };
  ALPHEUS_RETURN_IF_ERROR(
      RunTogether(contestant->threads, cores, work).status());
  // Nothing of it is left to the next one, which may be another policy.
  ALPHEUS_RETURN_IF_ERROR(contestant->candidate->CommitAll());
  std::vector<double> latencies;
  std::vector<double> exposed;
  for (const Sampler& sampler : samplers) {
    latencies.insert(latencies.end(), sampler.latencies().begin(),
                     sampler.latencies().end());
    exposed.insert(exposed.end(), sampler.exposed().begin(),
                   sampler.exposed().end());
  }
  if (latencies.empty()) {
    return absl::FailedPreconditionError(
        "too few changes: none of those that were timed became durable");
  }
  contestant->p50.push_back(Quantile(latencies, 0.5));
  contestant->p99.push_back(Quantile(latencies, 0.99));
  contestant->exposed.push_back(Median(exposed));
  contestant->exposed_max.push_back(*std::ranges::max_element(exposed));
  return absl::OkStatus();
}

void AddToReport(Contestant& contestant, Report* report) {
  const auto bound = static_cast<double>(
      contestant.candidate->log()->ExposureBound(contestant.threads));
  const std::pair<const char*, std::vector<double>*> latencies[] = {
      {"p50", &contestant.p50}, {"p99", &contestant.p99}};
  const std::pair<const char*, std::vector<double>*> exposures[] = {
      {"exposed", &contestant.exposed},
      {"exposed max", &contestant.exposed_max}};
  const auto add = [&](const char* metric, const char* unit,
                       std::vector<double>& samples) {
    report->measurements.push_back(
        {.scenario = std::string(kCommit),
         .candidate = contestant.candidate->name(),
         .metric = metric,
         .unit = unit,
         .parameters = {{"bytes", sizeof(Change)},
                        {"threads", static_cast<uint64_t>(contestant.threads)}},
         .samples = std::move(samples),
         .details = {{"bound", bound}}});
  };
  for (const auto& [metric, samples] : latencies) add(metric, "ns", *samples);
  for (const auto& [metric, samples] : exposures) {
    add(metric, "changes", *samples);
  }
}

}  // namespace

absl::Status MeasureCommits(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Contest> contest,
                           Contest::Make(settings, kYcsbSkew));
  ALPHEUS_RETURN_IF_ERROR(WarmUp(contest->candidates(), settings.threads.back(),
                                 settings.commit_ops));
  for (StoreCandidate* const candidate : contest->logged()) {
    ALPHEUS_RETURN_IF_ERROR(candidate->CommitAll());
  }
  std::vector<Contestant> contestants;
  for (const int threads : settings.threads) {
    for (StoreCandidate* const candidate : contest->logged()) {
      contestants.push_back({.candidate = candidate, .threads = threads});
    }
  }
  const auto turn = [&](size_t i) {
    return Turn(settings, report->machine.cores, &contestants[i]);
  };
  ALPHEUS_RETURN_IF_ERROR(
      Interleave(settings.rounds, contestants.size(), turn));
  for (Contestant& contestant : contestants) AddToReport(contestant, report);
  return absl::OkStatus();
}

}  // namespace alpheus::bench::ordered_store
