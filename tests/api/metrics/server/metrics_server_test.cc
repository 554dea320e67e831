// SPDX-License-Identifier: Apache-2.0
#include "api/metrics/server/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "api/metrics/model/family.h"
#include "api/metrics/server/exposition.h"
#include "log/base/duration_histogram.h"

namespace alpheus::metrics {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<Family> Nothing() { return {}; }

std::string TextOf(const Family& family) {
  return prometheus::TextSerializer().Serialize({Expose(family)});
}

// MSV1.
TEST(MetricsServerTest, OtherMachinesReachItOnlyIfTheOperatorSaysSo) {
  const absl::Status refused = MetricsServer::Check({.listen = "0.0.0.0:7421"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("--metrics-public"));
  EXPECT_TRUE(
      MetricsServer::Check({.listen = "0.0.0.0:7421", .is_public = true}).ok());
  EXPECT_TRUE(MetricsServer::Check({.listen = "127.0.0.1:7421"}).ok());
  EXPECT_TRUE(MetricsServer::Check({.listen = "[::1]:7421"}).ok());
  EXPECT_EQ(
      MetricsServer::Start({.listen = "0.0.0.0:0"}, Nothing).status().code(),
      absl::StatusCode::kInvalidArgument);
}

TEST(MetricsServerTest, AddressMustBeOne) {
  for (const char* listen : {"", "7421", "127.0.0.1", "127.0.0.1:port"}) {
    EXPECT_EQ(MetricsServer::Check({.listen = listen}).code(),
              absl::StatusCode::kInvalidArgument)
        << listen;
  }
}

TEST(MetricsServerTest, PortIsForOneServer) {
  const auto server = MetricsServer::Start({.listen = "127.0.0.1:0"}, Nothing);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  EXPECT_THAT(address, StartsWith("127.0.0.1:"));
  EXPECT_THAT(address, Not(EndsWith(":0")));
  const auto other = MetricsServer::Start({.listen = address}, Nothing);
  EXPECT_EQ(other.status().code(), absl::StatusCode::kUnavailable)
      << other.status();
  EXPECT_THAT(std::string(other.status().message()), HasSubstr(address));
}

TEST(ExpositionTest, NumbersAreShownWithTheirLabels) {
  EXPECT_EQ(TextOf({{"alpheus_a_total", Kind::kCounter, "Things"},
                    {{{{"log", "main"}, {"node", "2"}}, 41}}}),
            "# HELP alpheus_a_total Things\n# TYPE alpheus_a_total counter\n"
            "alpheus_a_total{log=\"main\",node=\"2\"} 41\n");
  EXPECT_EQ(TextOf({{"alpheus_b", Kind::kGauge, "A thing"}, {{{}, 0.5}}}),
            "# HELP alpheus_b A thing\n# TYPE alpheus_b gauge\n"
            "alpheus_b 0.5\n");
}

// A bucket has all that is not longer, and the sum is in seconds.
TEST(ExpositionTest, BucketsHaveAllUpToThem) {
  DurationHistogram durations;
  durations.Count(4'000);
  durations.Count(2'000'000'000);
  durations.Count(int64_t{60} * 1'000'000'000);
  const std::string text =
      TextOf({{"alpheus_c_seconds", Kind::kHistogram, "Times"},
              {{{{"log", "main"}}, 0, durations.Read()}}});
  const std::string bucket = "alpheus_c_seconds_bucket{log=\"main\",le=";
  for (const std::string& line :
       {bucket + "\"5e-06\"} 1\n", bucket + "\"1\"} 1\n",
        bucket + "\"2.5\"} 2\n", bucket + "\"10\"} 2\n",
        bucket + "\"+Inf\"} 3\n",
        std::string("alpheus_c_seconds_count{log=\"main\"} 3\n"),
        std::string("alpheus_c_seconds_sum{log=\"main\"} 62.000004")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

}  // namespace
}  // namespace alpheus::metrics
