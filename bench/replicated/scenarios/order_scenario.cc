// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/harness/result.h"
#include "bench/replicated/candidates/alpheus.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/replicated/scenarios/contest.h"
#include "bench/replicated/scenarios/scenarios.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr int kOrderBackups = 1;  // as in the paper's figure 6

// libpmem then takes clflushopt, which throws lines out of the cache: what the
// paper's order is about.
bool HasClwb() {
  const char* const no_clwb = std::getenv("PMEM_NO_CLWB");
  return no_clwb == nullptr || *no_clwb != '1';
}

absl::Status MeasureHere(const Settings& settings, Report* report) {
  const std::vector<Contestant> contestants = {
      {"remote first", Alpheus({.name = "remote first",
                                .flush_order = FlushOrder::kRemoteFirst,
                                .is_by_steps = true})},
      {"local first", Alpheus({.name = "local first",
                               .flush_order = FlushOrder::kLocalFirst,
                               .is_by_steps = true})},
      {"parallel", Alpheus({.name = "parallel",
                            .flush_order = FlushOrder::kParallel,
                            .is_by_steps = true})}};
  const Work work{.folder = settings.folder,
                  .ring_bytes = settings.ring_bytes,
                  .backups = kOrderBackups};
  for (const uint64_t bytes : settings.order_sizes) {
    const Contest contest{
        .scenario = "order",
        .parameters = {{"backups", kOrderBackups}, {"clwb", HasClwb() ? 1 : 0}},
        .bytes = bytes,
        .waiting = Waiting::kSpin,
        .warm_up_ops = settings.warm_up_ops,
        .ops = settings.spin_ops};
    ALPHEUS_RETURN_IF_ERROR(
        MeasureOne(settings.rounds, contestants, work, contest, report));
  }
  return absl::OkStatus();
}

// libpmem looks at its environment once, at its start: the same in a process
// that knows of no clwb.
absl::Status MeasureWithoutClwb(const Settings& settings, Report* report) {
  ALPHEUS_ASSIGN_OR_RETURN(const ScratchFolder folder,
                           ScratchFolder::Make(settings.folder));
  const std::string json_path = absl::StrCat(folder.path(), "/order.json");
  std::error_code error;
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> arguments = {
      "PMEM_NO_CLWB=1", program,
      "--only",         "order",
      "--json",         json_path,
      "--dir",          settings.folder,
      "--rounds",       absl::StrCat(settings.rounds)};
  if (settings.preset != "full") {
    arguments.push_back(absl::StrCat("--", settings.preset));
  }
  ALPHEUS_ASSIGN_OR_RETURN(
      PeerProcess again,
      PeerProcess::Start("/usr/bin/env", std::move(arguments),
                         absl::StrCat(folder.path(), "/log")));
  ALPHEUS_RETURN_IF_ERROR(again.Wait());
  std::ifstream file(json_path);
  std::ostringstream text;
  text << file.rdbuf();
  ALPHEUS_ASSIGN_OR_RETURN(std::vector<Measurement> measurements,
                           MeasurementsOf(text.str()));
  for (Measurement& one : measurements) {
    report->measurements.push_back(std::move(one));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureOrder(const Settings& settings, Report* report) {
  ALPHEUS_RETURN_IF_ERROR(MeasureHere(settings, report));
  if (!HasClwb()) return absl::OkStatus();
  return MeasureWithoutClwb(settings, report);
}

}  // namespace alpheus::bench::replicated
