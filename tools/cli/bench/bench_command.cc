// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "log/base/status_macros.h"
#include "tools/cli/bench/append_bench.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/io/arguments.h"
#include "tools/cli/io/json_output.h"
#include "tools/cli/io/parser.h"
#include "tools/cli/io/scratch_file.h"
#include "tools/cli/io/standard_streams.h"

namespace alpheus::cli {
namespace {

constexpr double kSecondsMin = 0.05;
constexpr double kSecondsMax = 3600;

struct BenchArguments {
  std::string path;
  std::string payload_size = "64";
  std::string region_size = "64MiB";
  int threads = 1;
  uint32_t frequency = 1;
  double seconds = 3;
  bool json = false;
};

double TimesFloor(const AppendBenchResult& result) {
  return result.floor_records_per_second / result.records_per_second;
}

// Returns the time that a thread waits for one record, cleaning included.
double NanosPerRecord(double records_per_second, int threads) {
  return 1e9 * threads / records_per_second;
}

const char* MediumText(RegionMedium medium) {
  return medium == RegionMedium::kFile
             ? "file, made persistent by msync"
             : "persistent memory, flushed by CPU instructions";
}

std::string ToText(const AppendBenchOptions& options,
                   const AppendBenchResult& r) {
  const double megabytes =
      r.records_per_second * static_cast<double>(options.payload_bytes) / 1e6;
  std::string text = absl::StrFormat(
      "%s: %s\nrecord of %d bytes, threads %d, force frequency %d\n\n",
      options.folder, MediumText(r.medium), options.payload_bytes,
      options.threads, options.frequency);
  absl::StrAppendFormat(&text, "throughput  %12.0f records/s, %.1f MB/s\n",
                        r.records_per_second, megabytes);
  absl::StrAppendFormat(&text, "floor       %12.0f records/s, by %s\n",
                        r.floor_records_per_second, r.floor_way);
  absl::StrAppendFormat(
      &text, "per record  %12.0f ns, %.2f times the floor's %.0f ns\n",
      NanosPerRecord(r.records_per_second, options.threads), TimesFloor(r),
      NanosPerRecord(r.floor_records_per_second, options.threads));
  absl::StrAppendFormat(
      &text,
      "latency     p50 %d ns, p99 %d ns, p99.9 %d ns, longest %d ns\n          "
      "  %d appends; reading the clock takes %.0f ns of each\n",
      r.latency_ns.Quantile(0.5), r.latency_ns.Quantile(0.99),
      r.latency_ns.Quantile(0.999), r.latency_ns.largest(),
      r.latency_ns.count(), r.clock_ns);
  absl::StrAppendFormat(&text,
                        "exposure    p50 %d, p99 %d, highest %d records not "
                        "durable after an append\ncleaning    %d times; "
                        "counted in the throughput, not in the latency\n",
                        r.exposure.Quantile(0.5), r.exposure.Quantile(0.99),
                        r.exposure.largest(), r.cleanings);
  return text;
}

Json ToJson(const LatencyHistogram& histogram) {
  return {
      {"count", histogram.count()},      {"smallest", histogram.smallest()},
      {"mean", histogram.Mean()},        {"p50", histogram.Quantile(0.5)},
      {"p99", histogram.Quantile(0.99)}, {"p99.9", histogram.Quantile(0.999)},
      {"largest", histogram.largest()}};
}

std::string ToJson(const AppendBenchOptions& options,
                   const AppendBenchResult& r) {
  const Json json = {{"folder", options.folder},
                     {"medium", RegionMediumName(r.medium)},
                     {"payload_bytes", options.payload_bytes},
                     {"region_bytes", options.region_bytes},
                     {"threads", options.threads},
                     {"frequency", options.frequency},
                     {"records_per_second", r.records_per_second},
                     {"floor_records_per_second", r.floor_records_per_second},
                     {"floor_way", r.floor_way},
                     {"times_floor", TimesFloor(r)},
                     {"latency_ns", ToJson(r.latency_ns)},
                     {"clock_ns", r.clock_ns},
                     {"exposure_records", ToJson(r.exposure)},
                     {"cleanings", r.cleanings}};
  return ToLine(json);
}

absl::Status RunBench(const BenchArguments& arguments) {
  // Range would accept "nan".
  if (!(arguments.seconds >= kSecondsMin && arguments.seconds <= kSecondsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--seconds ", arguments.seconds, ": must be from ",
                     kSecondsMin, " to ", kSecondsMax));
  }
  AppendBenchOptions options;
  ALPHEUS_ASSIGN_OR_RETURN(options.folder, FolderBeside(arguments.path));
  ALPHEUS_ASSIGN_OR_RETURN(options.payload_bytes,
                           ParseSize(arguments.payload_size));
  ALPHEUS_ASSIGN_OR_RETURN(options.region_bytes,
                           ParseSize(arguments.region_size));
  options.threads = arguments.threads;
  options.frequency = arguments.frequency;
  options.duration_ns = static_cast<int64_t>(arguments.seconds * 1e9);
  ALPHEUS_ASSIGN_OR_RETURN(const AppendBenchResult result,
                           RunAppendBench(options, Clock::Real()));
  return WriteAll(STDOUT_FILENO, arguments.json ? ToJson(options, result)
                                                : ToText(options, result));
}

void AddCounts(CLI::App* command, BenchArguments* arguments) {
  AddOption(command, "--threads", &arguments->threads,
            "Number of appending threads")
      .Decimal()
      .Range(1, kThreadsMax)
      .ShowDefault();
  AddOption(command, "--frequency", &arguments->frequency,
            "Force only LSNs divisible by this number")
      .Decimal()
      .Range(uint32_t{1}, kFrequencyMax)
      .ShowDefault();
}

}  // namespace

void AddBenchCommand(CLI::App* app, Command* chosen) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      AddCommand(app, "bench",
                 {.purpose = "Measure appends on this machine",
                  .about = "Measures beside them the least time that the "
                           "medium needs for the same bytes. Uses a temporary "
                           "region, which it removes. Touches no existing log.",
                  .failed = "anything else: no such folder, no space left"});
  AddOption(command, "path", &arguments->path,
            "Folder on the file system to be measured, or a file there")
      .Required();
  AddOption(command, "--bytes", &arguments->payload_size,
            "Payload of each record, as in 100 or 4KiB")
      .ShowDefault();
  AddOption(command, "--size", &arguments->region_size, "Size of the region")
      .ShowDefault();
  AddCounts(command, arguments.get());
  AddOption(command, "--seconds", &arguments->seconds,
            "Approximate duration of the whole run, 0.05 to 3600 s")
      .ShowDefault();
  AddFlag(command, "--json", &arguments->json,
          "Print one JSON object instead of text");
  OnChosen(command, [arguments, chosen] {
    *chosen = [arguments] { return RunBench(*arguments); };
  });
}

}  // namespace alpheus::cli
