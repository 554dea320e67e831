// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/sim_arguments.h"

#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "log/base/status_macros.h"
#include "tools/cli/io/parser.h"
#include "tools/sim/run/sim_case.h"
#include "tools/sim/world/history.h"
#include "tools/sim/world/platforms.h"

namespace alpheus::sim {
namespace {

constexpr int kNodesMax = 9;
constexpr int kClientsMax = 64;
constexpr size_t kPayloadMax = 1024;
constexpr int kJobsMax = 256;
constexpr uint64_t kSeedsByDefault = 100;

std::vector<std::string> FaultNames() {
  std::vector<std::string> names = {"none"};
  for (size_t i = 0; i < kFaultKinds; ++i) {
    names.emplace_back(FaultName(static_cast<FaultKind>(i)));
  }
  return names;
}

std::string FaultOfNumbers(const std::string& text) {
  if (ParseNumbers(text)) return "";
  return "'" + text + "' must be numbers of faults, as in 0-3,7";
}

absl::StatusOr<std::optional<std::set<FaultKind>>> FaultsOf(
    const std::vector<std::string>& names) {
  std::set<FaultKind> kinds;
  if (names.empty()) return std::optional<std::set<FaultKind>>();
  for (const std::string& name : names) {
    if (name == "none" && names.size() > 1) {
      return absl::InvalidArgumentError("--faults: none excludes all others");
    }
    if (name != "none") kinds.insert(*FaultOfName(name));
  }
  return std::optional(std::move(kinds));
}

absl::StatusOr<std::optional<BackgroundActors>> BackgroundActorsOf(
    const std::vector<std::string>& names) {
  if (names.empty()) return std::optional<BackgroundActors>();
  BackgroundActors background_actors;
  for (const std::string& name : names) {
    if (name == "none" && names.size() > 1) {
      return absl::InvalidArgumentError("--actors: none excludes all others");
    }
    if (name == "tail") background_actors.tail = true;
    if (name == "unauthenticated" || name == "stranger")
      background_actors.unauthenticated = true;
    if (name == "operator") background_actors.changes = true;
    if (name == "scrub") background_actors.scrub = true;
    if (name == "claim" || name == "hold") background_actors.claim = true;
    if (name == "elect") background_actors.elect = true;
    if (name == "deletes") background_actors.deletes = true;
    if (name == "drain") {
      background_actors.elect = background_actors.drain = true;
    }
    if (name == "online") {
      background_actors.changes = background_actors.online = true;
    }
  }
  return std::optional(background_actors);
}

void AddSeeds(CLI::App* command, SimArguments* arguments) {
  const cli::Option seed = cli::AddOption(command, "--seed", &arguments->seed,
                                          "One seed; it decides the run")
                               .Decimal();
  const cli::Option seeds =
      cli::AddOption(command, "--seeds", &arguments->seeds,
                     "Seeds A to B, as in 1-1000; default 1-100")
          .Excludes(seed);
  cli::AddOption(command, "--minutes", &arguments->minutes,
                 "Run seeds for so long, at least one; without --seeds they "
                 "begin with a random one")
      .Positive()
      .Excludes(seed);
  cli::AddOption(command, "--without", &arguments->without,
                 "Faults of the plan that are left out, as in 0-3,7")
      .Check(FaultOfNumbers)
      .Needs(seed);
  cli::AddFlag(command, "--trace", &arguments->trace,
               "One line per event, with its time in nanoseconds; "
               "docs/verify/simulation.md says how to read them")
      .Needs(seed)
      .Excludes(seeds);
}

void AddSizes(CLI::App* command, SimArguments* arguments) {
  const cli::Option nodes =
      cli::AddOption(command, "--nodes", &arguments->nodes,
                     "Replicas, N; default 1 to 5, drawn by the seed")
          .Decimal()
          .Range(1, kNodesMax);
  cli::AddOption(
      command, "--write-quorum", &arguments->write_quorum,
      "Replicas that must have a record, W; default 1 to N, drawn by the seed")
      .Decimal()
      .Range(1, kNodesMax)
      .Needs(nodes);
  cli::AddOption(command, "--clients", &arguments->clients,
                 "Clients of a primary; default 1 to 4, drawn by the seed")
      .Decimal()
      .Range(1, kClientsMax);
  cli::AddOption(command, "--payload", &arguments->payload,
                 "Most bytes of a record; default drawn by the seed")
      .Decimal()
      .Range(kPayloadBytesMin, kPayloadMax);
  cli::AddOption(
      command, "--workload", &arguments->workload,
      "Calls of the clients: any call in any order, as a database writes its "
      "log, as RocksDB's plugin does, or requests of clients of the service "
      "(on request only); default drawn by the seed")
      .OneOf({"mixed", "wal", "rocksdb", "service"});
}

void AddFaults(CLI::App* command, SimArguments* arguments) {
  cli::AddOption(command, "--faults", &arguments->faults,
                 "Classes of faults, or none; default some, drawn by the seed")
      .SplitAt(',')
      .OneOf(FaultNames());
  cli::AddOption(command, "--membership", &arguments->membership,
                 "Members by a file, or by a service that elects the primary; "
                 "default drawn by the seed")
      .OneOf({"static", "service"});
  cli::AddOption(
      command, "--actors", &arguments->background_actors,
      "Background actors: a client that follows the log (tail), a client "
      "without the key, an operator that changes the members, scrubs of the "
      "replicas, their release to a process that opens the log (claim), "
      "processes that stand for primary (elect; on request only), the same, "
      "which an operator drains where nothing fails (drain; on request only), "
      "an operator that asks the primary to change the members (online; on "
      "request only, with a mixed workload), an operator that deletes the log "
      "(deletes; on request only); or none; "
      "default drawn by the seed")
      .SplitAt(',')
      .OneOf({"tail", "unauthenticated", "operator", "scrub", "claim", "elect",
              "drain", "online", "deletes", "none", "stranger",
              "hold"});  // the last two are older names
  cli::AddFlag(command, "--beyond-budget", &arguments->beyond_budget,
               "Storage faults strike beyond what a log must survive: it "
               "may stay closed, but not be shorter");
  cli::AddOption(command, "--platform", &arguments->platform,
                 "Platform of all machines, as alpheusd's --platform; default "
                 "drawn by the seed, for each machine");
  cli::AddFlag(command, "--no-breaks", &arguments->no_breaks,
               "No connection breaks at random");
  cli::AddFlag(command, "--no-yields", &arguments->no_yields,
               "No thread is switched in the middle of a call");
  cli::AddOption(command, "--canary", &arguments->canary,
                 "Break something on purpose: the run must fail")
      .OneOf({"none", "early-durable", "lost-fences", "shared-ballot",
              "no-budget", "small-core", "deaf-tail", "trusted-client",
              "old-quorum", "bad-repair", "wrong-platform", "idle-sync",
              "early-switch"})
      .ShowDefault();
}

}  // namespace

void AddSimOptions(CLI::App* command, SimArguments* arguments) {
  AddSeeds(command, arguments);
  AddSizes(command, arguments);
  AddFaults(command, arguments);
  cli::AddOption(command, "--jobs", &arguments->jobs,
                 "Seeds that run at a time; default one per core")
      .Decimal()
      .Range(1, kJobsMax);
  cli::AddFlag(command, "--shrink,!--no-shrink", &arguments->shrink,
               "Look for the shortest schedule that fails; default");
  cli::AddFlag(
      command, "--keep-going", &arguments->keep_going,
      "Run all seeds, even if some fail; only the first failure is shrunk");
  cli::AddFlag(command, "--json", &arguments->json,
               "Print JSON: one object per failing seed as soon as it fails, "
               "one with the shortest schedule, and one at the end");
  cli::AddOption(command, "--commit", &arguments->commit,
                 "Name of the simulated commit; reported when a seed fails");
}

absl::StatusOr<SeedRange> SeedsOf(const SimArguments& arguments,
                                  uint64_t drawn) {
  if (arguments.seed) return SeedRange{*arguments.seed, *arguments.seed};
  if (arguments.seeds.empty()) {
    if (arguments.minutes == 0) return SeedRange{1, kSeedsByDefault};
    return SeedRange{drawn, std::numeric_limits<uint64_t>::max()};
  }
  const std::vector<std::string> ends = absl::StrSplit(arguments.seeds, '-');
  SeedRange range;
  if (ends.size() != 2 ||
      arguments.seeds.find_first_not_of("0123456789-") != std::string::npos ||
      !absl::SimpleAtoi(ends[0], &range.first) ||
      !absl::SimpleAtoi(ends[1], &range.last) || range.first > range.last) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seeds '", arguments.seeds,
                     "': must be two numbers, the first not above the second, "
                     "as in 1-1000"));
  }
  return range;
}

absl::StatusOr<Fixed> FixedOf(const SimArguments& arguments) {
  if (arguments.write_quorum && *arguments.write_quorum > *arguments.nodes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--write-quorum ", *arguments.write_quorum,
                     ": there are only ", *arguments.nodes, " replicas"));
  }
  Fixed fixed;
  fixed.nodes = arguments.nodes;
  fixed.write_quorum = arguments.write_quorum;
  fixed.clients = arguments.clients;
  fixed.payload_bytes_max = arguments.payload;
  fixed.workload = WorkloadOfName(arguments.workload);
  ALPHEUS_ASSIGN_OR_RETURN(fixed.faults, FaultsOf(arguments.faults));
  if (!arguments.membership.empty()) {
    fixed.has_membership_service = arguments.membership == "service";
  }
  ALPHEUS_ASSIGN_OR_RETURN(fixed.background_actors,
                           BackgroundActorsOf(arguments.background_actors));
  if (arguments.platform) {
    ALPHEUS_ASSIGN_OR_RETURN(fixed.platform,
                             SimulatedPlatform(*arguments.platform));
  }
  fixed.left_out = *ParseNumbers(arguments.without);
  fixed.beyond_budget = arguments.beyond_budget;
  fixed.without_breaks = arguments.no_breaks;
  fixed.without_yields = arguments.no_yields;
  fixed.canary = *CanaryOfName(arguments.canary);
  return fixed;
}

}  // namespace alpheus::sim
