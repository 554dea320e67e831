// SPDX-License-Identifier: Apache-2.0
// Does the kill test notice a log that lies? A script stands in for `alpheus`:
// it passes everything on to the real one, but for one lie.
#include "tools/nemesis/rounds/kill_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::demo {
namespace {

using ::testing::HasSubstr;

class KillRoundTest : public ::testing::Test {
 protected:
  // A program that runs `lie` (shell; "$1" is the command) before it passes on.
  std::string WriteLiar(const std::string& lie) {
    const std::string path = directory_.File("liar");
    std::ofstream(path) << "#!/bin/sh\n"
                        << lie << "\nexec " << ALPHEUS_BINARY << " \"$@\"\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  absl::StatusOr<RoundReport> RunRound(const std::string& binary) {
    KillRoundOptions options;
    options.binary = binary;
    options.directory = directory_.path();
    options.region_bytes = 1 << 20;
    options.ack_count_max = 20;
    KilledRegion region(options, &feed_, &random_);
    const absl::Status formatted = region.Format();
    if (!formatted.ok()) return formatted;
    return region.RunRound(FlushPath::kAsIs);
  }

  void ExpectLieFound(const std::string& lie, const std::string& message) {
    const auto report = RunRound(WriteLiar(lie));
    EXPECT_TRUE(absl::IsDataLoss(report.status())) << report.status();
    EXPECT_THAT(std::string(report.status().message()), HasSubstr(message));
  }

  const alpheus::testing::TempDirectory directory_;
  const Feed feed_ = Feed::FromText("alpha\nbravo\ngamma\n");
  Random random_{7};
};

TEST_F(KillRoundTest, HonestLogPasses) {
  const auto report = RunRound(ALPHEUS_BINARY);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->acknowledged_count, 0u);
  EXPECT_GE(report->judgement.recovered_count, report->acknowledged_count);
}

// Acknowledges what it never stores.
TEST_F(KillRoundTest, EarlyAcknowledgementIsFound) {
  ExpectLieFound(
      "case \"$*\" in append*--ack) i=0\n"
      "while [ $i -lt 40 ]; do echo $((i+1)) $i $((i%4)); i=$((i+1)); done\n"
      "exec cat >/dev/null;; esac",
      "RO1");
}

// Gives back the first records only.
TEST_F(KillRoundTest, ShorterLogIsFound) {
  ExpectLieFound("case \"$*\" in cat*) " ALPHEUS_BINARY
                 " \"$@\" >\"$0.out\"; case \"$*\" in\n"
                 "*--json) head -n 1 \"$0.out\";;\n"
                 // The first record is five letters behind number and tab.
                 "*) head -c 11 \"$0.out\";; esac; exit 0;; esac",
                 "RO1");
}

// Recovers something else than it showed before.
TEST_F(KillRoundTest, OpeningThatChangesTheLogIsFound) {
  ExpectLieFound(
      "case \"$*\" in append*--ack) ;;\n"
      "append*) echo more | " ALPHEUS_BINARY " \"$@\"; exit;; esac",
      "opening the log changed");
}

TEST_F(KillRoundTest, WriterThatDiesByItselfIsFound) {
  ExpectLieFound("case \"$*\" in append*--ack) exit 1;; esac",
                 "ended before it was killed");
}

TEST_F(KillRoundTest, RefusedRecoveryIsFound) {
  ExpectLieFound("case \"$1\" in verify) echo damaged >&2; exit 3;; esac",
                 "exit status 3");
}

}  // namespace
}  // namespace alpheus::demo
