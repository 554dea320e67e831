// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/interleave.h"
#include "bench/replicated/candidates/own_process.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/service/cluster/service_cluster.h"
#include "bench/service/contestants/embedded.h"
#include "bench/service/contestants/peers.h"
#include "bench/service/contestants/served_log.h"
#include "bench/service/grpc/echo_server.h"
#include "bench/service/load/contestant.h"
#include "bench/service/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {

using replicated::OwnProcess;

namespace {

// All that takes part in a scenario. The nodes of the served log run beside
// each turn of the others, so that all have the same machine.
class Field {
 public:
  static absl::StatusOr<std::unique_ptr<Field>> Make(
      const Settings& settings, const std::string& scenario, Report* report) {
    auto field = std::make_unique<Field>();
    ALPHEUS_ASSIGN_OR_RETURN(
        field->cluster_,
        ServiceCluster::Start(settings.folder, settings.ring_bytes));
    ALPHEUS_ASSIGN_OR_RETURN(OwnProcess echo, OwnProcess::Start({kEchoKind}));
    field->echo_.emplace(std::move(echo));
    const std::string& address = field->echo_->said();
    const pid_t pid = field->echo_->pid();
    field->Add(Echo(address, pid));
    field->Add(EchoByClient(address, pid));
    for (const Learning how : {Learning::kByWaiting, Learning::kByCallback}) {
      ALPHEUS_ASSIGN_OR_RETURN(
          std::unique_ptr<Contestant> embedded,
          Embedded(settings.folder, settings.ring_bytes, how));
      field->Add(std::move(embedded));
    }
    field->Add(ServedLog(*field->cluster_));
    ALPHEUS_RETURN_IF_ERROR(
        field->AddPeer(kEtcdName, Etcd(settings.folder), scenario, report));
    ALPHEUS_RETURN_IF_ERROR(
        field->AddPeer(kRedisName, Redis(settings.folder), scenario, report));
    return field;
  }

  const std::vector<std::unique_ptr<Contestant>>& all() const { return all_; }

 private:
  void Add(std::unique_ptr<Contestant> one) { all_.push_back(std::move(one)); }

  absl::Status AddPeer(const std::string& name,
                       absl::StatusOr<std::unique_ptr<Contestant>> peer,
                       const std::string& scenario, Report* report) {
    if (absl::IsNotFound(peer.status())) {
      report->skips.push_back({.scenario = scenario,
                               .what = name,
                               .why = std::string(peer.status().message())});
      return absl::OkStatus();
    }
    ALPHEUS_RETURN_IF_ERROR(peer.status());
    Add(*std::move(peer));
    return absl::OkStatus();
  }

  std::unique_ptr<ServiceCluster> cluster_;
  std::optional<OwnProcess> echo_;
  std::vector<std::unique_ptr<Contestant>> all_;
};

// Samples of one contestant, one per round.
struct Samples {
  std::map<std::string, std::vector<double>> by_metric;
  std::map<std::string, double> core_us;
  double records = 0;
};

absl::Status RunTurn(Contestant& contestant, const Load& load,
                     Samples* samples) {
  ALPHEUS_ASSIGN_OR_RETURN(Sample sample, contestant.Run(load));
  if (sample.latency_us.empty()) {
    return absl::UnavailableError(
        contestant.name() + ": no record was answered in the time of a turn");
  }
  samples->records += static_cast<double>(sample.latency_us.size());
  for (const auto& [part, micros] : sample.core_us) {
    samples->core_us[part] += micros;
  }
  samples->by_metric["rate"].push_back(sample.rate());
  for (const auto& [metric, value] :
       replicated::Summarize(std::move(sample.latency_us))) {
    samples->by_metric[metric].push_back(value);
  }
  return absl::OkStatus();
}

void AddTo(Report* report, const std::string& scenario, const Load& load,
           const Contestant& contestant, const Samples& samples) {
  std::map<std::string, double> details;
  for (const auto& [part, micros] : samples.core_us) {
    details[part + "_core_us"] = micros / samples.records;
  }
  for (const auto& [metric, values] : samples.by_metric) {
    report->measurements.push_back(
        {.scenario = scenario,
         .candidate = contestant.name(),
         .metric = metric,
         .unit = metric == "rate" ? "records/s" : "us",
         .parameters = {{"bytes", load.bytes},
                        {"in_flight", load.in_flight},
                        {"streams", load.streams}},
         .samples = values,
         .details = details});
  }
}

// Measures one load: all that can take it, by turns.
absl::Status Measure(const Field& field, const std::string& scenario,
                     const Load& load, uint64_t rounds, Report* report) {
  std::vector<Contestant*> able;
  for (const auto& one : field.all()) {
    if (one->WhyNot(load).empty()) able.push_back(one.get());
  }
  std::vector<Samples> samples(able.size());
  ALPHEUS_RETURN_IF_ERROR(Interleave(rounds, able.size(), [&](size_t i) {
    return RunTurn(*able[i], load, &samples[i]);
  }));
  for (size_t i = 0; i < able.size(); ++i) {
    AddTo(report, scenario, load, *able[i], samples[i]);
  }
  return absl::OkStatus();
}

// Says in sight who could take no load of the scenario. `load` is its last one.
void AddUnable(const Field& field, const std::string& scenario,
               const Load& load, Report* report) {
  for (const auto& one : field.all()) {
    const bool is_measured =
        std::ranges::any_of(report->measurements, [&](const Measurement& m) {
          return m.scenario == scenario && m.candidate == one->name();
        });
    if (is_measured) continue;
    report->skips.push_back(
        {.scenario = scenario, .what = one->name(), .why = one->WhyNot(load)});
  }
}

Load LoadOf(const Settings& settings) {
  Load load;
  load.warm_up_ns = settings.warm_up_ms * 1'000'000;
  load.run_ns = settings.run_ms * 1'000'000;
  return load;
}

}  // namespace

absl::Status MeasureLatency(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Field> field,
                           Field::Make(settings, "latency", report));
  Load load = LoadOf(settings);
  for (const uint64_t bytes : settings.latency_sizes) {
    load.bytes = bytes;
    ALPHEUS_RETURN_IF_ERROR(
        Measure(*field, "latency", load, settings.rounds, report));
  }
  AddUnable(*field, "latency", load, report);
  return absl::OkStatus();
}

absl::Status MeasureRate(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Field> field,
                           Field::Make(settings, "rate", report));
  Load load = LoadOf(settings);
  for (const uint64_t bytes : settings.rate_sizes) {
    for (const uint64_t in_flight : settings.in_flight) {
      load.bytes = bytes;
      load.in_flight = in_flight;
      ALPHEUS_RETURN_IF_ERROR(
          Measure(*field, "rate", load, settings.rounds, report));
    }
  }
  AddUnable(*field, "rate", load, report);
  return absl::OkStatus();
}

absl::Status MeasureStreams(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<Field> field,
                           Field::Make(settings, "streams", report));
  Load load = LoadOf(settings);
  for (const uint64_t bytes : settings.stream_sizes) {
    for (const uint64_t streams : settings.streams) {
      load.bytes = bytes;
      load.streams = streams;
      ALPHEUS_RETURN_IF_ERROR(
          Measure(*field, "streams", load, settings.rounds, report));
    }
  }
  AddUnable(*field, "streams", load, report);
  return absl::OkStatus();
}

}  // namespace alpheus::bench::service
