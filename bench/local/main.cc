// SPDX-License-Identifier: Apache-2.0
// bench_local: append + force of one thread, beside the raw persist of the
// same bytes and beside libpmemlog, by turns in one run (docs/performance.md).
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/local/machine.h"
#include "bench/local/measure.h"
#include "bench/local/report.h"
#include "log/base/status_macros.h"

namespace alpheus::bench {
namespace {

struct Options {
  MeasureOptions measure;
  Workload workload{
      .folder = "/dev/shm", .ring_bytes = 64 << 20, .payload_bytes = 0};
  std::vector<uint64_t> sizes = {64, 256, 1024, 4096};
  std::string json_path;
};

void Declare(CLI::App& app, Options& options) {
  app.add_option("--rounds", options.measure.rounds,
                 "Rounds; each gives each candidate a lap of its ring")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--ops", options.measure.batch_ops,
                 "Appends that are timed together")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--dir", options.workload.folder,
                 "Folder for the region files, on tmpfs or DAX")
      ->check(CLI::ExistingDirectory)
      ->capture_default_str();
  app.add_option("--ring-bytes", options.workload.ring_bytes,
                 "Room for records that each candidate has; a multiple of 4096")
      ->check(CLI::Range(uint64_t{2} << 20, uint64_t{1} << 40))
      ->capture_default_str();
  app.add_option("--sizes", options.sizes, "Record sizes in bytes")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--json", options.json_path, "Write all rounds as JSON");
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(path, ": can't be written"));
}

absl::Status Run(const Options& options) {
  Report report;
  report.options = options.measure;
  report.ring_bytes = options.workload.ring_bytes;
  report.folder = options.workload.folder;
  ALPHEUS_ASSIGN_OR_RETURN(report.machine, PinAndDescribe());
  for (const uint64_t size : options.sizes) {
    Workload workload = options.workload;
    workload.payload_bytes = size;
    ALPHEUS_ASSIGN_OR_RETURN(Comparison comparison,
                             Compare(workload, options.measure));
    report.comparisons.push_back(std::move(comparison));
  }
  std::fputs(ToText(report).c_str(), stdout);
  if (options.json_path.empty()) return absl::OkStatus();
  return WriteFile(options.json_path, ToJson(report));
}

}  // namespace
}  // namespace alpheus::bench

int main(int argc, char** argv) {
  CLI::App app("Latency of append + force on this machine");
  alpheus::bench::Options options;
  alpheus::bench::Declare(app, options);
  CLI11_PARSE(app, argc, argv);
  absl::Status status = alpheus::bench::RestartWithPmemForced(argv);
  if (status.ok()) status = alpheus::bench::Run(options);
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "bench_local: %s\n", status.ToString().c_str());
  return EXIT_FAILURE;
}
