// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/run/sim_case.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace alpheus::sim {
namespace {

constexpr std::array<std::string_view, 13> kCanaries = {
    "none",        "early-durable", "lost-fences",    "shared-ballot",
    "no-budget",   "small-core",    "deaf-tail",      "trusted-client",
    "old-quorum",  "bad-repair",    "wrong-platform", "idle-sync",
    "early-switch"};
// More faults than any plan has.
constexpr uint32_t kNumberMax = 10'000;

absl::string_view Abseil(std::string_view text) {
  return {text.data(), text.size()};
}

bool ParseRange(absl::string_view text, std::set<uint32_t>& numbers) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '-');
  uint32_t first = 0;
  uint32_t last = 0;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
      !absl::SimpleAtoi(ends.back(), &last) || first > last ||
      last > kNumberMax) {
    return false;
  }
  for (uint32_t number = first; number <= last; ++number) {
    numbers.insert(number);
  }
  return true;
}

std::string FaultsText(const std::set<FaultKind>& faults) {
  if (faults.empty()) return "none";
  return absl::StrJoin(faults, ",", [](std::string* text, FaultKind kind) {
    absl::StrAppend(text, Abseil(FaultName(kind)));
  });
}

std::string BackgroundActorsText(const BackgroundActors& background_actors) {
  std::vector<const char*> names;
  if (background_actors.tail) names.push_back("tail");
  if (background_actors.unauthenticated) names.push_back("unauthenticated");
  if (background_actors.changes) names.push_back("operator");
  if (background_actors.scrub) names.push_back("scrub");
  if (background_actors.claim) names.push_back("claim");
  if (background_actors.elect) {
    names.push_back(background_actors.drain ? "drain" : "elect");
  }
  if (background_actors.online) names.push_back("online");
  if (background_actors.deletes) names.push_back("deletes");
  return names.empty() ? "none" : absl::StrJoin(names, ",");
}

}  // namespace

std::string NumbersText(const std::set<uint32_t>& numbers) {
  std::string text;
  for (auto first = numbers.begin(); first != numbers.end();) {
    uint32_t last = *first;
    auto next = std::next(first);
    for (; next != numbers.end() && *next == last + 1; ++next) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", *first);
    if (last != *first) absl::StrAppend(&text, "-", last);
    first = next;
  }
  return text;
}

std::optional<std::set<uint32_t>> ParseNumbers(std::string_view text) {
  std::set<uint32_t> numbers;
  if (text.empty()) return numbers;
  if (text.find_first_not_of("0123456789,-") != std::string_view::npos) {
    return std::nullopt;
  }
  for (const absl::string_view range : absl::StrSplit(Abseil(text), ',')) {
    if (!ParseRange(range, numbers)) return std::nullopt;
  }
  return numbers;
}

std::string_view CanaryName(Canary canary) {
  return kCanaries[static_cast<size_t>(canary)];
}

std::optional<Canary> CanaryOfName(std::string_view name) {
  const auto found = std::ranges::find(kCanaries, name);
  if (found == kCanaries.end()) return std::nullopt;
  return static_cast<Canary>(found - kCanaries.begin());
}

std::string CommandLine(uint64_t seed, const Fixed& fixed) {
  std::string text = absl::StrCat("alpheus-sim --seed ", seed);
  const auto add = [&](const char* option, const auto& value) {
    if (value) absl::StrAppend(&text, " ", option, " ", *value);
  };
  add("--nodes", fixed.nodes);
  add("--write-quorum", fixed.write_quorum);
  add("--clients", fixed.clients);
  add("--payload", fixed.payload_bytes_max);
  if (fixed.workload) {
    absl::StrAppend(&text, " --workload ",
                    Abseil(WorkloadName(*fixed.workload)));
  }
  if (fixed.faults) {
    absl::StrAppend(&text, " --faults ", FaultsText(*fixed.faults));
  }
  if (fixed.has_membership_service) {
    absl::StrAppend(&text, " --membership ",
                    *fixed.has_membership_service ? "service" : "static");
  }
  if (fixed.background_actors) {
    absl::StrAppend(&text, " --actors ",
                    BackgroundActorsText(*fixed.background_actors));
  }
  if (fixed.beyond_budget) absl::StrAppend(&text, " --beyond-budget");
  if (fixed.platform) {
    absl::StrAppend(&text, " --platform ",
                    replication::PlatformToString(*fixed.platform));
  }
  if (!fixed.left_out.empty()) {
    absl::StrAppend(&text, " --without ", NumbersText(fixed.left_out));
  }
  if (fixed.without_breaks) absl::StrAppend(&text, " --no-breaks");
  if (fixed.without_yields) absl::StrAppend(&text, " --no-yields");
  if (fixed.canary != Canary::kNone) {
    absl::StrAppend(&text, " --canary ", Abseil(CanaryName(fixed.canary)));
  }
  return text;
}

std::vector<Fault> FaultsLeft(const RunOptions& options) {
  std::vector<Fault> faults = DrawFaults(options);
  std::erase_if(faults, [&](const Fault& fault) {
    return options.left_out.contains(fault.number);
  });
  return faults;
}

ShrinkCase CaseOf(const RunOptions& options) {
  ShrinkCase found;
  for (const Fault& fault : FaultsLeft(options)) {
    found.faults.insert(fault.number);
  }
  found.clients = options.clients;
  found.payload_bytes_max = options.payload_bytes_max;
  found.breaks = options.break_probability != 0;
  found.yields = options.yield_odds != 0 || options.switch_odds != 0;
  return found;
}

Fixed WithCase(uint64_t seed, const Fixed& fixed, const ShrinkCase& wanted) {
  const RunOptions drawn = DrawOptions(seed, fixed);
  Fixed changed = fixed;
  for (const Fault& fault : DrawFaults(drawn)) {
    if (!wanted.faults.contains(fault.number)) {
      changed.left_out.insert(fault.number);
    }
  }
  // Values as drawn need no option.
  if (wanted.clients != drawn.clients) changed.clients = wanted.clients;
  if (wanted.payload_bytes_max != drawn.payload_bytes_max) {
    changed.payload_bytes_max = wanted.payload_bytes_max;
  }
  changed.without_breaks |= !wanted.breaks && drawn.break_probability != 0;
  changed.without_yields |= !wanted.yields && CaseOf(drawn).yields;
  return changed;
}

bool IsSameViolation(const Violation& a, const std::optional<Violation>& b) {
  if (!b || a.invariant != b->invariant) return false;
  // All failed checks have one name.
  return a.invariant != kCheckFailed || a.what == b->what;
}

absl::StatusOr<ShortestRun> FindShortest(uint64_t seed, const Fixed& fixed,
                                         const Violation& violation,
                                         SeedRunner& runner, const Clock& clock,
                                         int64_t nanos_max) {
  const int64_t until = clock.NowNanos() + nanos_max;
  ShortestRun shortest{.fixed = fixed, .violation = violation};
  absl::Status status;
  const auto fails = [&](const ShrinkCase& smaller) {
    if (!status.ok() || clock.NowNanos() > until) return false;
    const Fixed wanted = WithCase(seed, fixed, smaller);
    const absl::StatusOr<SeedOutcome> outcome =
        runner.Run(DrawOptions(seed, wanted));
    status = outcome.status();
    if (!outcome.ok() ||
        !IsSameViolation(violation, outcome->result.violation)) {
      return false;
    }
    shortest.fixed = wanted;
    shortest.violation = *outcome->result.violation;
    return true;
  };
  const Shrunk shrunk = Shrink(CaseOf(DrawOptions(seed, fixed)),
                               {.payload_bytes_min = kPayloadBytesMin}, fails);
  if (!status.ok()) return status;
  shortest.tries = shrunk.tries;
  return shortest;
}

}  // namespace alpheus::sim
