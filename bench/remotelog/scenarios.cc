// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/scenarios.h"

#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/harness/interleave.h"
#include "bench/harness/samples.h"
#include "bench/remotelog/costs.h"
#include "bench/remotelog/rows.h"
#include "bench/remotelog/simulated_transport.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "replication/persist/plan/table_planner.h"

namespace alpheus::bench::remotelog {
namespace {

constexpr double kNanosPerSecond = 1e9;

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(values.size());
}

AppendRun RunOf(const BenchRow& row, uint64_t clients, uint64_t appends) {
  return {.platform = row.platform,
          .steps = row.steps,
          .clients = clients,
          .appends = appends};
}

// Three metrics, a sample for each round; what else there is to say of the row
// is with the first.
void AddTimes(const char* scenario, const BenchRow& row, uint64_t clients,
              const std::vector<AppendTimes>& rounds, Report* report) {
  const auto add = [&](const char* metric, const char* unit, auto value_of) {
    Measurement measurement{.scenario = scenario,
                            .candidate = row.name,
                            .metric = metric,
                            .unit = unit,
                            .parameters = {{"clients", clients}},
                            .samples = {},
                            .details = {}};
    for (const AppendTimes& times : rounds) {
      measurement.samples.push_back(value_of(times));
    }
    report->measurements.push_back(std::move(measurement));
  };
  const auto per_append = [&](double AppendTimes::* time) {
    std::vector<double> values;
    for (const AppendTimes& times : rounds) {
      values.push_back(times.*time / static_cast<double>(times.latency.size()));
    }
    return Median(values);
  };
  add("p50", "ns", [](const AppendTimes& t) { return Median(t.latency); });
  report->measurements.back().details = {
      {"round_trips",
       replication::CostOf(row.steps, replication::RoundTripCosts())
           .round_trips},
      {"responder_message_ns", per_append(&AppendTimes::responder_messages)},
      {"responder_background_ns",
       per_append(&AppendTimes::responder_background)}};
  add("mean", "ns", [](const AppendTimes& t) { return Mean(t.latency); });
  add("rate", "appends/s", [](const AppendTimes& t) {
    return static_cast<double>(t.latency.size()) / t.elapsed * kNanosPerSecond;
  });
}

absl::Status MeasureRows(const char* scenario, uint64_t clients,
                         uint64_t appends, AppendTransport& transport,
                         Report* report) {
  for (const BenchRow& row : BenchRows()) {
    ALPHEUS_ASSIGN_OR_RETURN(const AppendTimes times,
                             transport.Append(RunOf(row, clients, appends)));
    AddTimes(scenario, row, clients, {times}, report);
  }
  return absl::OkStatus();
}

// One measurement, whose details are the rows' means.
absl::Status MeasureCosts(const Costs& costs, const std::string& candidate,
                          const std::string& metric, uint64_t appends,
                          Report* report) {
  Measurement measurement{.scenario = "sensitivity",
                          .candidate = candidate,
                          .metric = metric,
                          .unit = "ns",
                          .parameters = {},
                          .samples = {},
                          .details = {}};
  SimulatedTransport transport(costs);
  double sum = 0;
  for (const BenchRow& row : BenchRows()) {
    ALPHEUS_ASSIGN_OR_RETURN(const AppendTimes times,
                             transport.Append(RunOf(row, 1, appends)));
    measurement.details[row.name] = Mean(times.latency);
    sum += Mean(times.latency);
  }
  measurement.samples = {sum / static_cast<double>(measurement.details.size())};
  report->measurements.push_back(std::move(measurement));
  return absl::OkStatus();
}

// Uniform in [-1, 1].
double Lot(RandomSource& random) {
  constexpr uint64_t kSteps = 1 << 20;
  return 2 * static_cast<double>(random.Below(kSteps + 1)) / kSteps - 1;
}

// `factor` turns a lot into what a constant is multiplied by.
absl::Status MeasureDraws(const char* candidate, uint64_t draws,
                          uint64_t appends, double (*factor)(double lot),
                          Report* report) {
  Random random(/*seed=*/1);
  for (uint64_t draw = 1; draw <= draws; ++draw) {
    Costs costs;
    for (const Constant& constant : Constants()) {
      costs.*constant.value *= factor(Lot(random));
    }
    ALPHEUS_RETURN_IF_ERROR(MeasureCosts(
        costs, candidate, absl::StrCat("draw ", draw), appends, report));
  }
  return absl::OkStatus();
}

}  // namespace

Settings FullSettings() {
  return {.preset = "full",
          .appends = 10'000,
          .clients = {2, 4, 8},
          .varied_appends = 17,
          .draws = 200,
          .wide_draws = 500,
          .rounds = 5,
          .fabric_appends = 1'000,
          .warm_up = 100};
}

Settings QuickSettings() {
  return {.preset = "quick",
          .appends = 1'000,
          .clients = {2, 4, 8},
          .varied_appends = 17,
          .draws = 50,
          .wide_draws = 100,
          .rounds = 5,
          .fabric_appends = 300,
          .warm_up = 30};
}

Settings TinySettings() {
  return {.preset = "tiny",
          .appends = 16,
          .clients = {2},
          .varied_appends = 2,
          .draws = 2,
          .wide_draws = 2,
          .rounds = 2,
          .fabric_appends = 3,
          .warm_up = 1};
}

absl::Status MeasureAppend(const Settings& settings, AppendTransport& transport,
                           Report* report) {
  return MeasureRows("append", 1, settings.appends, transport, report);
}

absl::Status MeasureClients(const Settings& settings,
                            AppendTransport& transport, Report* report) {
  for (const uint64_t clients : settings.clients) {
    ALPHEUS_RETURN_IF_ERROR(MeasureRows(
        "clients", clients, settings.appends / clients, transport, report));
  }
  return absl::OkStatus();
}

absl::Status MeasureFabric(const Settings& settings, AppendTransport& transport,
                           Report* report) {
  const std::vector<BenchRow> rows = BenchRows();
  std::vector<std::vector<AppendTimes>> times(rows.size());
  std::vector<absl::Status> refusals(rows.size());
  const auto turn = [&](size_t i) -> absl::Status {
    auto appended =
        transport.Append(RunOf(rows[i], 1, settings.fabric_appends));
    if (absl::IsUnimplemented(appended.status())) {
      refusals[i] = appended.status();
      return absl::OkStatus();
    }
    ALPHEUS_RETURN_IF_ERROR(appended.status());
    times[i].push_back(*std::move(appended));
    return absl::OkStatus();
  };
  ALPHEUS_RETURN_IF_ERROR(Interleave(settings.rounds, rows.size(), turn));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (refusals[i].ok()) {
      AddTimes("fabric", rows[i], 1, times[i], report);
    } else {
      report->skips.push_back({.scenario = "fabric",
                               .what = rows[i].name,
                               .why = std::string(refusals[i].message())});
    }
  }
  return absl::OkStatus();
}

absl::Status MeasureSensitivity(const Settings& settings, Report* report) {
  for (const Constant& constant : Constants()) {
    for (const double factor : kVariations) {
      Costs costs;
      costs.*constant.value *= factor;
      ALPHEUS_RETURN_IF_ERROR(MeasureCosts(costs, constant.name,
                                           absl::StrCat("times ", factor),
                                           settings.varied_appends, report));
    }
  }
  ALPHEUS_RETURN_IF_ERROR(MeasureDraws(
      "all", settings.draws, settings.varied_appends,
      [](double lot) { return 1 + kVariation * lot; }, report));
  return MeasureDraws(
      "wide", settings.wide_draws, settings.varied_appends,
      [](double lot) { return std::pow(kWideFactor, lot); }, report);
}

}  // namespace alpheus::bench::remotelog
