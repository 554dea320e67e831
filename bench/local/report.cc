// SPDX-License-Identifier: Apache-2.0
#include "bench/local/report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace alpheus::bench {
namespace {

// The floor as it was first measured on the machine that the aims were set on
// (docs/performance.md).
struct ReferenceFloor {
  uint64_t payload_bytes;
  double ns;
};
constexpr std::array<ReferenceFloor, 3> kReferenceFloors = {
    {{64, 193}, {1024, 247}, {4096, 389}}};
constexpr double kSlowerFrom = 1.25;

double PerAppend(uint64_t count, const Measurement& measurement) {
  return static_cast<double>(count) / static_cast<double>(measurement.appends);
}

// Largest deviation of a round from the median, in percent of it.
double SpreadPercent(const Measurement& measurement) {
  const auto [low, high] = std::minmax_element(measurement.append_ns.begin(),
                                               measurement.append_ns.end());
  const double median = measurement.MedianAppendNs();
  return 100 * std::max(*high - median, median - *low) / median;
}

std::string MachineText(const Report& report) {
  return absl::StrFormat(
      "append + force of one record, one thread on core %d\n"
      "%s, %s, %s build\n"
      "%d rounds by turns, batches of %d appends, ring of %d bytes in %s\n",
      report.machine.cpu, report.machine.cpu_model, report.machine.kernel,
      report.machine.build_type, report.options.rounds,
      report.options.batch_ops, report.ring_bytes, report.folder);
}

// Cleaning and rewinding are part of these times.
std::string MainTable(const Report& report) {
  std::string text = absl::StrFormat("%8s %10s %11s %9s %14s %18s\n", "size B",
                                     "floor ns", "alpheus ns", "x floor",
                                     "libpmemlog ns", "alpheus faster by");
  for (const Comparison& c : report.comparisons) {
    const double floor = c.Floor().TotalNs();
    const double alpheus = c.alpheus.TotalNs();
    const double pmemlog = c.pmemlog.TotalNs();
    absl::StrAppendFormat(&text, "%8d %10.1f %11.1f %9.2f %14.1f %17.2fx\n",
                          c.payload_bytes, floor, alpheus, alpheus / floor,
                          pmemlog, pmemlog / alpheus);
  }
  return text;
}

std::string AlpheusTable(const Report& report) {
  std::string text = absl::StrFormat(
      "%8s %10s %9s %11s %9s %9s %9s %8s\n", "size B", "append ns", "x floor",
      "cleanup ns", "fences", "nt lines", "flushed", "+/- %");
  for (const Comparison& c : report.comparisons) {
    const PersistenceCounters& counters = c.alpheus.counters;
    const double append = c.alpheus.MedianAppendNs();
    absl::StrAppendFormat(
        &text, "%8d %10.1f %9.2f %11.1f %9.3f %9.3f %9.3f %8.1f\n",
        c.payload_bytes, append, append / c.Floor().TotalNs(),
        c.alpheus.ReclaimNsPerRecord(), PerAppend(counters.fences, c.alpheus),
        PerAppend(counters.nt_lines, c.alpheus),
        PerAppend(counters.flushed_lines, c.alpheus), SpreadPercent(c.alpheus));
  }
  return text;
}

std::string FloorTable(const Report& report) {
  std::string text = absl::StrFormat("%8s", "size B");
  if (report.comparisons.empty()) return text;
  for (const Measurement& floor : report.comparisons.front().floors) {
    absl::StrAppendFormat(&text, " %14s", absl::StrCat(floor.name, " ns"));
  }
  absl::StrAppendFormat(&text, " %8s\n", "+/- %");
  for (const Comparison& c : report.comparisons) {
    absl::StrAppendFormat(&text, "%8d", c.payload_bytes);
    for (const Measurement& floor : c.floors) {
      absl::StrAppendFormat(&text, " %14.1f", floor.TotalNs());
    }
    absl::StrAppendFormat(&text, " %8.1f\n", SpreadPercent(c.Floor()));
  }
  return text;
}

// Empty if no floor is slower than its reference by more than the tolerance.
std::string SlowMachineNote(const Report& report) {
  for (const Comparison& c : report.comparisons) {
    for (const ReferenceFloor& reference : kReferenceFloors) {
      if (c.payload_bytes != reference.payload_bytes) continue;
      if (c.Floor().TotalNs() <= reference.ns * kSlowerFrom) continue;
      return absl::StrFormat(
          "NOTE: this machine is slower today, compare ratios only: the floor "
          "at %d B is %.0f ns, reference %.0f ns\n",
          c.payload_bytes, c.Floor().TotalNs(), reference.ns);
    }
  }
  return "";
}

nlohmann::json MeasurementJson(const Measurement& m) {
  return {{"name", m.name},
          {"total_ns", m.TotalNs()},
          {"append_ns", m.MedianAppendNs()},
          {"append_ns_by_round", m.append_ns},
          {"fastest_batch_ns_by_round", m.batch_min_ns},
          {"reclaim_ns_per_record", m.ReclaimNsPerRecord()},
          {"reclaims", m.reclaims},
          {"reclaimed_records", m.reclaimed_records},
          {"appends", m.appends}};
}

nlohmann::json ComparisonJson(const Comparison& c) {
  nlohmann::json floors = nlohmann::json::array();
  for (const Measurement& floor : c.floors) {
    floors.push_back(MeasurementJson(floor));
  }
  nlohmann::json alpheus = MeasurementJson(c.alpheus);
  const PersistenceCounters& counters = c.alpheus.counters;
  alpheus["per_append"] = {
      {"fences", PerAppend(counters.fences, c.alpheus)},
      {"nt_lines", PerAppend(counters.nt_lines, c.alpheus)},
      {"flushed_lines", PerAppend(counters.flushed_lines, c.alpheus)},
      {"msyncs", PerAppend(counters.msyncs, c.alpheus)}};
  return {
      {"payload_bytes", c.payload_bytes},
      {"batches_per_round", c.batches},
      {"floor", c.Floor().name},
      {"floors", floors},
      {"alpheus", alpheus},
      {"libpmemlog", MeasurementJson(c.pmemlog)},
      {"alpheus_over_floor", c.alpheus.TotalNs() / c.Floor().TotalNs()},
      {"libpmemlog_over_alpheus", c.pmemlog.TotalNs() / c.alpheus.TotalNs()}};
}

}  // namespace

std::string ToText(const Report& report) {
  return absl::StrCat(
      MachineText(report), "\n", MainTable(report),
      "\nAlpheus: of that append alone and, per record, the cleaning of full "
      "rings;\ncounts per append\n",
      AlpheusTable(report), "\nfloor: the cheapest of\n", FloorTable(report),
      SlowMachineNote(report));
}

std::string ToJson(const Report& report) {
  nlohmann::json comparisons = nlohmann::json::array();
  for (const Comparison& c : report.comparisons) {
    comparisons.push_back(ComparisonJson(c));
  }
  const nlohmann::json json = {
      {"benchmark", "local"},
      {"machine",
       {{"cpu_model", report.machine.cpu_model},
        {"kernel", report.machine.kernel},
        {"build_type", report.machine.build_type},
        {"core", report.machine.cpu},
        {"slower_than_reference", !SlowMachineNote(report).empty()}}},
      {"rounds", report.options.rounds},
      {"batch_ops", report.options.batch_ops},
      {"ring_bytes", report.ring_bytes},
      {"folder", report.folder},
      {"comparisons", comparisons}};
  return json.dump(2);
}

}  // namespace alpheus::bench
