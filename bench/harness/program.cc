// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/program.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "bench/harness/clock.h"
#include "bench/harness/core_use.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {

Parser::Parser(const std::string& description)
    : app_(std::make_unique<CLI::App>(description)) {}

Parser::~Parser() = default;

void Parser::DeclarePreset(const std::string& what_quick_does,
                           const std::vector<std::string>& scenarios,
                           ProgramOptions& options) {
  auto* quick = app_->add_flag("--quick", options.quick, what_quick_does);
  app_->add_flag("--tiny", options.tiny,
                 "Hardly anything, to see that it runs; figures mean nothing")
      ->excludes(quick);
  DeclareWords("--only", options.only, "These scenarios only", scenarios);
  app_->add_option("--json", options.json_path, "Where the result goes")
      ->required();
  app_->add_option("--commit", options.commit,
                   "Commit that was built, for the result");
}

void Parser::DeclareRounds(const std::string& what_folder_holds,
                           ProgramOptions& options) {
  app_->add_option("--rounds", options.rounds, "Samples of each measurement")
      ->check(CLI::Range(1, 1000));
  DeclareFolder(
      "--dir", options.folder,
      absl::StrCat("Folder for ", what_folder_holds, ", on tmpfs or DAX"));
}

template <class T>
void Parser::DeclareNumbers(const std::string& name, std::vector<T>& numbers,
                            const std::string& meaning, int least, int most) {
  app_->add_option(name, numbers, meaning)
      ->delimiter(',')
      ->check(CLI::Range(least, most));
}

template void Parser::DeclareNumbers(const std::string&, std::vector<int>&,
                                     const std::string&, int, int);
template void Parser::DeclareNumbers(const std::string&, std::vector<uint64_t>&,
                                     const std::string&, int, int);

void Parser::DeclareWords(const std::string& name,
                          std::vector<std::string>& words,
                          const std::string& meaning,
                          const std::vector<std::string>& choice) {
  app_->add_option(name, words, meaning)
      ->delimiter(',')
      ->check(CLI::IsMember(choice));
}

void Parser::DeclareWord(const std::string& name, std::string& word,
                         const std::string& meaning,
                         const std::vector<std::string>& choice) {
  auto* option = app_->add_option(name, word, meaning);
  if (!choice.empty()) option->check(CLI::IsMember(choice));
}

void Parser::DeclareFolder(const std::string& name, std::string& folder,
                           const std::string& meaning) {
  app_->add_option(name, folder, meaning)
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
}

std::optional<int> Parser::Parse(int argc, char** argv) {
  CLI11_PARSE(*app_, argc, argv);
  return std::nullopt;
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
