// SPDX-License-Identifier: Apache-2.0
// The names of the metrics are as Prometheus' conventions say, and the document
// has exactly them.
#include "api/metrics/model/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "log/base/bytes.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::metrics {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr char kDocument[] = ALPHEUS_METRICS_DOCUMENT;
constexpr char kAlerts[] = ALPHEUS_ALERTS;

std::string TextOf(const char* path) {
  const auto bytes = testing::ReadFile(path);
  return std::string(AsText(bytes));
}

bool IsOfName(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0 ||
         std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The cells of the rows of the document's tables that are of our metrics.
struct Row {
  std::string name;
  std::string alert;
};
std::vector<Row> RowsOfTheDocument() {
  std::vector<Row> rows;
  for (const absl::string_view line : absl::StrSplit(TextOf(kDocument), '\n')) {
    const std::vector<std::string> cells = absl::StrSplit(line, " | ");
    if (cells.size() < 3 || !absl::StartsWith(line, "| `alpheus_")) continue;
    const std::vector<std::string> name = absl::StrSplit(cells.front(), '`');
    rows.push_back({name.at(1), cells.back()});
  }
  return rows;
}

TEST(CatalogueTest, NamesFollowTheConventions) {
  std::set<std::string_view> names;
  for (const Metric& metric : kCatalogue) {
    const std::string name(metric.name);
    EXPECT_TRUE(names.insert(metric.name).second) << name << " is there twice";
    EXPECT_TRUE(absl::StartsWith(name, "alpheus_")) << name;
    EXPECT_TRUE(std::ranges::all_of(name, IsOfName)) << name;
    EXPECT_EQ(metric.kind == Kind::kCounter, absl::EndsWith(name, "_total"))
        << name;
    for (const absl::string_view word : absl::StrSplit(name, '_')) {
      EXPECT_THAT((std::set<absl::string_view>{"ms", "us", "ns", "milliseconds",
                                               "kib", "mib", "kilobytes"}),
                  Not(Contains(word)))
          << name << " has no base unit";
    }
    if (metric.kind == Kind::kHistogram) {
      EXPECT_TRUE(absl::EndsWith(name, "_seconds")) << name;
    }
  }
}

// prometheus-cpp shows the help as it is.
TEST(CatalogueTest, HelpIsOneLineThatNeedsNoEscape) {
  for (const Metric& metric : kCatalogue) {
    EXPECT_THAT(metric.help, Not(IsEmpty())) << metric.name;
    EXPECT_EQ(metric.help.find_first_of("\\\n"), std::string_view::npos)
        << metric.name;
  }
}

TEST(CatalogueTest, DocumentHasEveryMetric) {
  std::set<std::string> documented;
  for (const Row& row : RowsOfTheDocument()) {
    EXPECT_TRUE(documented.insert(row.name).second)
        << row.name << " is there twice";
  }
  std::set<std::string> names;
  for (const Metric& metric : kCatalogue) names.emplace(metric.name);
  EXPECT_EQ(documented, names);
}

// Each metric has an alert of the file, or a reason why not; and each alert is
// of a metric.
TEST(CatalogueTest, DocumentHasEveryAlert) {
  std::set<std::string> named;
  for (const Row& row : RowsOfTheDocument()) {
    if (absl::StartsWith(row.alert, "none: ")) continue;
    EXPECT_TRUE(absl::StartsWith(row.alert, "`Alpheus")) << row.name;
    for (const absl::string_view word : absl::StrSplit(row.alert, '`')) {
      if (absl::StartsWith(word, "Alpheus")) named.emplace(word);
    }
  }
  std::set<std::string> alerts;
  for (const absl::string_view line : absl::StrSplit(TextOf(kAlerts), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, "- alert: ");
    if (parts.size() == 2) alerts.insert(parts.back());
  }
  EXPECT_EQ(named, alerts);
}

}  // namespace
}  // namespace alpheus::metrics
