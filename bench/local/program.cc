// SPDX-License-Identifier: Apache-2.0
#include "bench/local/program.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "bench/local/clock.h"
#include "bench/local/core_use.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

void DeclarePreset(CLI::App& app, const std::string& what_quick_does,
                   const std::vector<std::string>& scenarios,
                   ProgramOptions& options) {
  auto* quick = app.add_flag("--quick", options.quick, what_quick_does);
  app.add_flag("--tiny", options.tiny,
               "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  app.add_option("--only", options.only, "These scenarios only")
      ->delimiter(',')
      ->check(CLI::IsMember(scenarios));
  app.add_option("--json", options.json_path, "Where the result goes")
      ->required();
  app.add_option("--commit", options.commit, "What was built, for the result");
}

void DeclareRounds(CLI::App& app, const std::string& what_folder_holds,
                   ProgramOptions& options) {
  app.add_option("--rounds", options.rounds, "Samples of each measurement")
      ->check(CLI::Range(1, 1000));
  app.add_option(
         "--dir", options.folder,
         absl::StrCat("Folder for ", what_folder_holds, ", on tmpfs or DAX"))
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
}

bool IsWanted(const ProgramOptions& options, const std::string& scenario,
              Report* report) {
  if (options.only.empty() || std::ranges::count(options.only, scenario) > 0) {
    return true;
  }
  report->skips.push_back(
      {.scenario = scenario, .what = "all of it", .why = "not asked for"});
  return false;
}

absl::Status RunScenario(const ProgramOptions& options,
                         const std::string& scenario,
                         absl::FunctionRef<absl::Status()> measure,
                         Report* report) {
  if (!IsWanted(options, scenario, report)) return absl::OkStatus();
  std::fprintf(stderr, "bench_%s: %s ...", report->benchmark.c_str(),
               scenario.c_str());
  const size_t measured = report->measurements.size();
  const int64_t start = NowNanos();
  ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes before, ReadCoreTimes());
  ALPHEUS_RETURN_IF_ERROR(measure());
  if (report->measurements.size() == measured) {
    std::fprintf(stderr, " skipped: %s\n", report->skips.back().why.c_str());
    return absl::OkStatus();
  }
  ALPHEUS_ASSIGN_OR_RETURN(const CoreTimes after, ReadCoreTimes());
  report->disturbances.push_back(
      {.scenario = scenario,
       .seconds = static_cast<double>(NowNanos() - start) / 1e9,
       .share_of_others = ShareOfOthers(before, after)});
  std::fprintf(stderr, " %.1f s\n", report->disturbances.back().seconds);
  return absl::OkStatus();
}

absl::Status WriteResult(const ProgramOptions& options,
                         const std::string& json) {
  std::ofstream file(options.json_path);
  file << json << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(options.json_path, ": can't be written"));
}

int ExitStatus(const std::string& program, const absl::Status& status) {
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "%s: %s\n", program.c_str(), status.ToString().c_str());
  return EXIT_FAILURE;
}

}  // namespace alpheus::bench
