// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/io/standing_options.h"

#include <algorithm>

namespace alpheus::cli {
namespace {

constexpr uint32_t kSilenceMsMin = 3;  // three heartbeats
constexpr uint32_t kSilenceMsMax = 600'000;

}  // namespace

void AddStandingOptions(CLI::App* command, StandingArguments* arguments) {
  const auto add = [&](const char* name, uint32_t* value, const char* what) {
    return AddOption(command, name, value, what)
        .Needs(FindOption(command, "--stand"))
        .Decimal()
        .ShowDefault();
  };
  add("--priority", &arguments->priority,
      "Of processes whose replicas are equally fresh the one with the highest "
      "priority becomes primary");
  add("--silence-ms", &arguments->silence_ms,
      "How long nothing is heard of the primary before it is suspected; the "
      "same for all that stand for a log, and three heartbeats at least")
      .Range(kSilenceMsMin, kSilenceMsMax);
  add("--silence-ms-max", &arguments->silence_ms_max,
      "Most of that time: each wrong suspicion doubles it for a while; at "
      "least "
      "--silence-ms")
      .Range(kSilenceMsMin, kSilenceMsMax);
  add("--heartbeat-ms", &arguments->heartbeat_ms,
      "How often this process is heard while it is primary and appends nothing")
      .Range(uint32_t{1}, kSilenceMsMax / 3);
}

void SetStanding(const StandingArguments& arguments,
                 CandidateOptions* options) {
  options->priority = arguments.priority;
  options->silence_ms = arguments.silence_ms;
  options->silence_ms_max =
      std::max(arguments.silence_ms_max, arguments.silence_ms);
  options->heartbeat_ms = arguments.heartbeat_ms;
}

}  // namespace alpheus::cli
