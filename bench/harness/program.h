// SPDX-License-Identifier: Apache-2.0
// program: what the programs that measure have in common: their options, how
// scenarios run one after another, where the result goes.
//
// Invariants:
//   BPR1. A scenario that is not run stands in Report::skips with its reason
//         (BRE2 of result.h).
//   BPR2. Of one that RunScenario measured Report::disturbances says what
//         others had of the cores.
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
  uint64_t rounds = 0;  // 0: as the preset has it
  std::string json_path;
  std::string commit = "unknown";
};

// The options of a program. CLI11 is all inline, and takes seconds to compile
// wherever it is included, so program.cc alone includes it.
//
// The place of a value must outlive the parser.
class Parser {
 public:
  explicit Parser(const std::string& description);
  ~Parser();

  // --quick, --tiny, --only, --json, --commit.
  void DeclarePreset(const std::string& what_quick_does,
                     const std::vector<std::string>& scenarios,
                     ProgramOptions& options);
  // --rounds and --dir.
  void DeclareRounds(const std::string& what_folder_holds,
                     ProgramOptions& options);
  // Numbers with commas between them. T: int or uint64_t.
  template <class T>
  void DeclareNumbers(const std::string& name, std::vector<T>& numbers,
                      const std::string& meaning, int least, int most);
  // Some of these words, with commas between them.
  void DeclareWords(const std::string& name, std::vector<std::string>& words,
                    const std::string& meaning,
                    const std::vector<std::string>& choice);
  // One of these words; any, if there are none.
  void DeclareWord(const std::string& name, std::string& word,
                   const std::string& meaning,
                   const std::vector<std::string>& choice);
  // The file must exist.
  void DeclareFolder(const std::string& name, std::string& folder,
                     const std::string& meaning);

  // The status to return from main at once: help, or a wrong word.
  std::optional<int> Parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

// The preset's settings, with folder and rounds as asked for.
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

// A report of this machine with nothing measured yet. Errors: as
// DescribeMachine.
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

// False, and a skip in the report: it is not to be run.
bool IsWanted(const ProgramOptions& options, const std::string& scenario,
              Report* report);

// Runs it if it is wanted, and says so on stderr. Errors: those of `measure`,
// and as ReadCoreTimes.
absl::Status RunScenario(const ProgramOptions& options,
                         const std::string& scenario,
                         absl::FunctionRef<absl::Status()> measure,
                         Report* report);

// Errors: Unavailable (it can't be written).
absl::Status WriteResult(const ProgramOptions& options,
                         const std::string& json);

// What main returns; a failure is told on stderr.
int ExitStatus(const std::string& program, const absl::Status& status);

}  // namespace alpheus::bench

#endif  // ALPHEUS_BENCH_HARNESS_PROGRAM_H_
