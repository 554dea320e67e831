// SPDX-License-Identifier: Apache-2.0
// program: the common part of the measuring programs: options, the order of
// scenarios, the output of results.
//
// Invariants:
//   BPR1. A scenario that is not run is in Report::skips with its reason (BRE2
//         of result.h).
//   BPR2. For each scenario that RunScenario measured, Report::disturbances has
//         the share of the cores that others had.
// Thread safety: one thread.
#ifndef ALPHEUS_BENCH_HARNESS_PROGRAM_H_
#define ALPHEUS_BENCH_HARNESS_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/harness/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace alpheus::bench {

struct ProgramOptions {
  bool quick = false;
  bool tiny = false;
  std::vector<std::string> only;  // empty: all scenarios
  std::string folder = "/dev/shm";
  uint64_t rounds = 0;  // 0: as in the preset
  std::string json_path;
  std::string commit = "unknown";
};

// Options of a program. CLI11 is all inline, and takes seconds to compile in
// each source that includes it, so only program.cc does.
//
// Variables for values must outlive the parser.
class Parser {
 public:
  explicit Parser(const std::string& description);
  ~Parser();

  // Declares --quick, --tiny, --only, --json, --commit.
  void DeclarePreset(const std::string& what_quick_does,
                     const std::vector<std::string>& scenarios,
                     ProgramOptions& options);
  // Declares --rounds and --dir.
  void DeclareRounds(const std::string& what_folder_holds,
                     ProgramOptions& options);
  // Declares numbers separated by commas. T: int or uint64_t.
  template <class T>
  void DeclareNumbers(const std::string& name, std::vector<T>& numbers,
                      const std::string& meaning, int least, int most);
  // Declares some of these words, separated by commas.
  void DeclareWords(const std::string& name, std::vector<std::string>& words,
                    const std::string& meaning,
                    const std::vector<std::string>& choice);
  // Declares one of these words; any word, if there are none.
  void DeclareWord(const std::string& name, std::string& word,
                   const std::string& meaning,
                   const std::vector<std::string>& choice);
  // Declares a folder; it must exist.
  void DeclareFolder(const std::string& name, std::string& folder,
                     const std::string& meaning);

  // Parses. Returns the status to return from main at once: help, or a wrong
  // word.
  std::optional<int> Parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

// Returns the preset's settings, with the requested folder and rounds.
template <class Settings>
Settings SettingsOf(const ProgramOptions& options, Settings (*full)(),
                    Settings (*quick)(), Settings (*tiny)()) {
  Settings settings = options.quick ? quick() : options.tiny ? tiny() : full();
  settings.folder = options.folder;
  if (options.rounds != 0) settings.rounds = options.rounds;
  return settings;
}

template <class Scenarios>
std::vector<std::string> NamesOf(const Scenarios& scenarios) {
  std::vector<std::string> names;
  for (const auto& scenario : scenarios) names.emplace_back(scenario.name);
  return names;
}

// Returns an empty report of this machine. Errors: as DescribeMachine.
template <class Settings>
absl::StatusOr<Report> BeginReport(const std::string& benchmark,
                                   const Settings& settings,
                                   const ProgramOptions& options) {
  Report report;
  report.benchmark = benchmark;
  report.preset = settings.preset;
  report.commit = options.commit;
  report.folder = options.folder;
  report.rounds = settings.rounds;
  absl::StatusOr<Machine> machine = DescribeMachine();
  if (!machine.ok()) return machine.status();
  report.machine = *machine;
  return report;
}

// Returns false, and adds a skip to the report, if the scenario is not wanted.
bool IsWanted(const ProgramOptions& options, const std::string& scenario,
              Report* report);

// Runs a scenario if it is wanted, and reports that on stderr. Errors: those of
// `measure`, and as ReadCoreTimes.
absl::Status RunScenario(const ProgramOptions& options,
                         const std::string& scenario,
                         absl::FunctionRef<absl::Status()> measure,
                         Report* report);

// Writes the result. Errors: Unavailable (it can't be written).
absl::Status WriteResult(const ProgramOptions& options,
                         const std::string& json);

// Returns the exit status for main; reports a failure on stderr.
int ExitStatus(const std::string& program, const absl::Status& status);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_PROGRAM_H_
