// SPDX-License-Identifier: Apache-2.0
// alpheus-demo: proves that a killed node, or with --local a killed writer of a
// single region, loses nothing that it acknowledged. See cluster_demo.h and
// local_demo.h.
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "absl/strings/str_format.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/parser.h"
#include "tools/demo/cluster_demo.h"
#include "tools/demo/local_demo.h"
#include "tools/nemesis/processes/work_directory.h"

namespace alpheus::demo {
namespace {

struct Arguments {
  bool local = false;
  std::optional<uint64_t> seed;
  LocalDemoOptions options;  // most of them are of both
};

bool IsNonEmptyFile(const std::string& path) {
  std::error_code error;
  return std::filesystem::file_size(path, error) > 0 && !error;
}

std::string DefaultFile() {
  const std::string log = "/var/log/dpkg.log";
  return IsNonEmptyFile(log) ? log : "/var/lib/dpkg/status";
}

void AddOptions(CLI::App* app, Arguments* arguments) {
  LocalDemoOptions* options = &arguments->options;
  cli::AddOption(app, "FILE", &options->file,
                 "File whose lines are fed; default /var/log/dpkg.log, or "
                 "/var/lib/dpkg/status");
  cli::AddOption(app, "--threads", &options->threads, "Appending threads")
      .Decimal()
      .Range(uint64_t{1}, uint64_t{256})
      .ShowDefault();
  cli::AddOption(app, "--seed", &arguments->seed,
                 "Repeats the random draws of a run (not its scheduling)")
      .Decimal();
  cli::AddOption(app, "--dir", &options->directory,
                 "Where to make the regions; default: the temporary "
                 "directory, with several rounds /dev/shm");
  cli::AddOption(app, "--size", &options->size,
                 "Size of a region; default 64MiB, with several rounds 4MiB");
  const cli::Option local =
      cli::AddFlag(app, "--local", &arguments->local,
                   "One region without a cluster: the writer is killed, and "
                   "the log recovers from that region alone");
  cli::AddOption(app, "--rounds", &options->rounds, "Number of kills (--local)")
      .Decimal()
      .Range(uint64_t{1}, uint64_t{1} << 32)
      .ShowDefault()
      .Needs(local);
  cli::AddFlag(app, "--quiet", &options->quiet, "One line only (--local)")
      .Needs(local);
}

absl::Status RunOnCluster(const LocalDemoOptions& options) {
  ClusterDemoOptions cluster;
  cluster.file = options.file;
  cluster.threads = options.threads;
  cluster.seed = options.seed;
  cluster.directory = options.directory;
  if (!options.size.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(cluster.region_bytes,
                             cli::ParseSize(options.size));
  }
  return RunClusterDemo(cluster);
}

int Main(int argc, char** argv) {
  cli::Parser parser(
      "Run three nodes on this machine, and a program on each that stands for "
      "primary. The one that is elected writes the lines of a file. It is "
      "killed with SIGKILL in mid-stream, together with its node; another one "
      "is elected, recovers the log and continues. Then an operator drains and "
      "elects. At the end every acknowledged line must be on every replica of "
      "the last epoch. Exit status 0 only if that holds.",
      "alpheus-demo");
  Arguments arguments;
  AddOptions(parser.app(), &arguments);
  if (const auto end = parser.Parse(argc, argv)) {
    return static_cast<int>(*end);
  }
  LocalDemoOptions& options = arguments.options;
  options.seed =
      arguments.seed ? *arguments.seed : EntropyRandom().Next() % 1'000'000'000;
  if (options.file.empty()) options.file = DefaultFile();
  if (options.directory.empty()) {
    options.directory = DefaultParent(/*in_memory=*/!options.is_one_round());
  }
  const absl::Status status =
      arguments.local ? RunLocalDemo(options) : RunOnCluster(options);
  if (status.ok()) return 0;
  std::fflush(stdout);
  absl::FPrintF(stderr, "alpheus-demo: %s\n", std::string(status.message()));
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

}  // namespace
}  // namespace alpheus::demo

int main(int argc, char** argv) { return alpheus::demo::Main(argc, argv); }
