// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

// Local and remote: this process's copy and one backup's. Remote only: two
// backups. Beside both, remote only with one, which is one copy less.
struct Place {
  const char* name;
  int backups;
  bool is_remote_only;
};
constexpr Place kPlaces[] = {{"local+remote", 1, false},
                             {"remote-only", 2, true},
                             {"remote-only, one copy", 1, true}};

}  // namespace

absl::Status MeasurePlaces(const Settings& settings, Report* report) {
  for (const uint64_t bytes : settings.place_sizes) {
    Candidates candidates;
    for (const Place& place : kPlaces) {
      const Work work{.folder = settings.folder,
                      .ring_bytes = settings.ring_bytes,
                      .backups = place.backups};
      ALPHEUS_ASSIGN_OR_RETURN(
          std::unique_ptr<Candidate> made,
          Alpheus({.name = place.name, .is_remote_only = place.is_remote_only})(
              work));
      candidates.push_back(std::move(made));
    }
    for (const Waiting waiting : {Waiting::kSpin, Waiting::kBlock}) {
      const Contest contest{.scenario = "places",
                            .parameters = {},
                            .bytes = bytes,
                            .waiting = waiting,
                            .warm_up_ops = settings.warm_up_ops / 4,
                            .ops = settings.block_ops};
      ALPHEUS_RETURN_IF_ERROR(
          RunContest(settings.rounds, candidates, contest, report));
    }
  }
  return absl::OkStatus();
}

}  // namespace alpheus::bench::replicated
