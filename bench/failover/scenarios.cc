// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/scenarios.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "alpheus/candidate.h"
#include "bench/failover/alpheus/three_nodes.h"
#include "bench/failover/floor.h"
#include "bench/failover/peers/etcd.h"
#include "bench/failover/peers/redis.h"
#include "bench/harness/interleave.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::failover {
namespace {

// One contestant with one size of the log.
struct Turn {
  Contestant* contestant = nullptr;
  uint64_t log_mib = 0;
  uint64_t rounds = 0;
  std::map<std::string, std::vector<double>> samples;  // by part
  double begun_again = 0;                              // turns

  uint64_t done() const {
    const auto totals = samples.find("total");
    return totals == samples.end() ? 0 : totals->second.size();
  }
};

absl::Status RunTurn(Fault fault, Turn& turn) {
  if (turn.done() == turn.rounds) return absl::OkStatus();
  absl::StatusOr<Parts> parts = turn.contestant->Run(fault, turn.log_mib);
  for (int tries = 1;
       !parts.ok() && tries < turn.contestant->TriesMax(parts.status());
       ++tries) {
    ++turn.begun_again;
    parts = turn.contestant->Run(fault, turn.log_mib);
  }
  ALPHEUS_RETURN_IF_ERROR(parts.status());
  for (const auto& [part, value] : *parts) {
    turn.samples[part].push_back(value);
  }
  return absl::OkStatus();
}

void AddTo(Report* report, const std::string& scenario, const Turn& turn) {
  for (const auto& [part, values] : turn.samples) {
    report->measurements.push_back(
        {.scenario = scenario,
         .candidate = turn.contestant->name(),
         .metric = part,
         .unit = part == kFailedOpenings ? "openings" : "ms",
         .parameters = {{"log_mib", turn.log_mib}},
         .samples = values,
         .details = {{"begun_again", turn.begun_again}}});
  }
}

// Peers that are there. Others become skips.
absl::StatusOr<std::vector<std::unique_ptr<Contestant>>> Peers(
    Fault fault, const std::string& scenario, const std::string& folder,
    Report* report) {
  const uint32_t silence_ms = CandidateOptions().silence_ms;
  std::vector<
      std::pair<std::string, absl::StatusOr<std::unique_ptr<Contestant>>>>
      made;
  made.emplace_back(kEtcdName, Etcd(folder));
  made.emplace_back(kEtcdFastName, Etcd(folder, silence_ms));
  made.emplace_back(kRedisName, Redis(folder, silence_ms));
  std::vector<std::unique_ptr<Contestant>> peers;
  for (auto& [name, peer] : made) {
    if (!peer.ok() && !absl::IsNotFound(peer.status())) return peer.status();
    const std::string why = peer.ok() ? (*peer)->WhyNot(fault)
                                      : std::string(peer.status().message());
    if (why.empty()) {
      peers.push_back(*std::move(peer));
    } else {
      report->skips.push_back({.scenario = scenario, .what = name, .why = why});
    }
  }
  return peers;
}

}  // namespace

absl::Status MeasureFault(Fault fault, const std::string& scenario,
                          const Settings& settings, Report* report) {
  const std::unique_ptr<Contestant> log = Alpheus(settings.folder);
  const std::unique_ptr<Contestant> floor = Floor();
  ALPHEUS_ASSIGN_OR_RETURN(const std::vector<std::unique_ptr<Contestant>> peers,
                           Peers(fault, scenario, settings.folder, report));
  std::vector<Turn> turns;
  const auto add = [&](Contestant& one, uint64_t mib, uint64_t rounds) {
    turns.push_back({.contestant = &one,
                     .log_mib = mib,
                     .rounds = std::min(rounds, settings.rounds),
                     .samples = {},
                     .begun_again = 0});
  };
  add(*floor, settings.log_mib, settings.rounds);
  add(*log, settings.log_mib, settings.rounds);
  for (const auto& peer : peers) {
    add(*peer, settings.log_mib, settings.peer_rounds);
  }
  for (const uint64_t mib : settings.other_mib) {
    add(*log, mib, settings.other_rounds);
  }
  ALPHEUS_RETURN_IF_ERROR(
      Interleave(settings.rounds, turns.size(),
                 [&](size_t i) { return RunTurn(fault, turns[i]); }));
  for (const Turn& turn : turns) AddTo(report, scenario, turn);
  return absl::OkStatus();
}

}  // namespace alpheus::bench::failover
