// SPDX-License-Identifier: Apache-2.0
#include "bench/harness/result.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/harness/samples.h"

namespace alpheus::bench {
namespace {

using Json = nlohmann::ordered_json;

// Of the JSON; to be raised when a reader of the old shape would err.
constexpr int kSchemaVersion = 1;

Json ToJson(const Machine& machine) {
  return {{"cpu_model", machine.cpu_model},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes},
          {"kernel", machine.kernel},
          {"compiler", machine.compiler},
          {"build_type", machine.build_type},
          {"load_average", machine.load_average}};
}

Json ToJson(const Measurement& m) {
  const auto [low, high] =
      std::minmax_element(m.samples.begin(), m.samples.end());
  return {{"scenario", m.scenario},
          {"candidate", m.candidate},
          {"metric", m.metric},
          {"unit", m.unit},
          {"parameters", m.parameters},
          {"median", Median(m.samples)},
          {"min", *low},
          {"max", *high},
          {"samples", m.samples},
          {"details", m.details}};
}

Json ToJson(const Distribution& d) {
  return {{"scenario", d.scenario},
          {"candidate", d.candidate},
          {"metric", d.metric},
          {"parameters", d.parameters},
          {"counts", d.counts}};
}

Json ToJson(const Disturbance& d) {
  return {{"scenario", d.scenario},
          {"seconds", d.seconds},
          {"share_of_others", d.share_of_others}};
}

Json ToJson(const Skip& skip) {
  return {{"scenario", skip.scenario}, {"what", skip.what}, {"why", skip.why}};
}

template <class T>
Json ToJson(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(ToJson(value));
  return array;
}

// Whether it has all that FromJson reads, of the right kind.
bool IsMeasurement(const Json& m) {
  const auto is_text = [&m](const char* key) {
    return m.contains(key) && m[key].is_string();
  };
  const auto has_numbers = [&m](const char* key) {
    if (!m.contains(key) || !m[key].is_structured()) return false;
    return std::all_of(m[key].begin(), m[key].end(),
                       [](const Json& value) { return value.is_number(); });
  };
  return m.is_object() && is_text("scenario") && is_text("candidate") &&
         is_text("metric") && is_text("unit") && has_numbers("parameters") &&
         has_numbers("samples") && has_numbers("details") &&
         m["parameters"].is_object() && m["samples"].is_array() &&
         m["details"].is_object();
}

// Requires: IsMeasurement.
Measurement FromJson(const Json& m) {
  return {.scenario = m["scenario"],
          .candidate = m["candidate"],
          .metric = m["metric"],
          .unit = m["unit"],
          .parameters = m["parameters"].get<Parameters>(),
          .samples = m["samples"].get<std::vector<double>>(),
          .details = m["details"].get<std::map<std::string, double>>()};
}

}  // namespace

absl::StatusOr<std::vector<Measurement>> MeasurementsOf(
    const std::string& json_text) {
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("measurements") ||
      !json["measurements"].is_array()) {
    return absl::DataLossError("result: no JSON object with measurements");
  }
  std::vector<Measurement> measurements;
  for (const Json& m : json["measurements"]) {
    if (!IsMeasurement(m)) {
      return absl::DataLossError("result: a measurement lacks something: " +
                                 m.dump());
    }
    measurements.push_back(FromJson(m));
  }
  return measurements;
}

std::string ToJson(const Report& report) {
  const Json json = {{"benchmark", report.benchmark},
                     {"schema_version", kSchemaVersion},
                     {"preset", report.preset},
                     {"commit", report.commit},
                     {"folder", report.folder},
                     {"rounds", report.rounds},
                     {"machine", ToJson(report.machine)},
                     {"measurements", ToJson(report.measurements)},
                     {"distributions", ToJson(report.distributions)},
                     {"disturbances", ToJson(report.disturbances)},
                     {"skips", ToJson(report.skips)}};
  return json.dump(1);
}

}  // namespace alpheus::bench
