// SPDX-License-Identifier: Apache-2.0
// `alpheus plan` as its users run it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/tools/cli/cli_fixture.h"

namespace alpheus::testing {
namespace {

using ::alpheus::demo::ProgramResult;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CliPlanTest, BadUsageIsRefused) {
  const std::vector<Arguments> bad = {
      {},
      {"--domain", "adr"},
      {"--domain"},
      {"--domain", "DMP"},
      {"--ddio", "yes"},
      {"--rqwrb", "cache"},
      {"--domain", "dmp", "--transport", "pigeon"},
      {"--transport", "iwarp"},
      {"--all", "--cheapest"},
      {"--all", "--verify"},
      {"--cheapest", "--verify"},
      {"--all", "--domain", "dmp"},
      {"--all", "--transport", "tcp"},
      {"--all", "--no-atomic-write"},
      {"--all", "--format", "xml"},
      {"--verify", "--format", "csv"},
      {"--verify", "--rqwrb", "pm"},
      {"--cheapest", "--flush-cost", "0"},
      {"--cheapest", "--exchange-cost", "-1"},
      {"--domain", "dmp", "--flush-cost", "2"},
      {"extra"}};
  for (Arguments arguments : bad) {
    arguments.insert(arguments.begin(), "plan");
    const ProgramResult result = RunAlpheus(arguments);
    EXPECT_EQ(result.end.exit_status, kUsage)
        << ::testing::PrintToString(arguments) << result.error;
    EXPECT_EQ(result.output, "");
    EXPECT_NE(result.error, "");
  }
}

TEST(CliPlanTest, RefusalsSayWhatToDo) {
  EXPECT_THAT(RunAlpheus({"plan"}).error,
              AllOf(HasSubstr("no platform is given"), HasSubstr("--domain")));
  EXPECT_THAT(RunAlpheus({"plan", "--ddio", "maybe"}).error,
              AllOf(HasSubstr("--ddio"), HasSubstr("maybe"), HasSubstr("on")));
  EXPECT_THAT(RunAlpheus({"plan", "--all", "--cheapest"}).error,
              HasSubstr("give one"));
}

// The golden file was made from the paper's print, cell by cell, and not from
// the tables in the code.
TEST(CliPlanTest, AllRowsAreThoseOfThePaper) {
  std::ifstream file(ALPHEUS_GOLDEN_METHODS, std::ios::binary);
  const std::string golden((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
  EXPECT_EQ(SplitLines(golden).size(), 73u);
  EXPECT_EQ(RunWell({"plan", "--all", "--format", "csv"}), golden);
}

TEST(CliPlanTest, TableAsTextHasEachSequenceOnce) {
  const std::string text = RunWell({"plan", "--all"});
  size_t sequences = 0;
  size_t rows = 0;
  for (const std::string& line : SplitLines(text)) {
    sequences += line.starts_with("rq:") ? 1 : 0;
    rows += line.starts_with("  ") ? 1 : 0;
  }
  EXPECT_EQ(sequences, 22u);
  EXPECT_EQ(rows, 72u);
}

TEST(CliPlanTest, APlatformHasSixPlans) {
  const std::string text =
      RunWell({"plan", "--domain", "mhp", "--ddio", "on", "--rqwrb", "dram"});
  EXPECT_THAT(
      text,
      AllOf(StartsWith("platform mhp,ddio,dram,infiniband"),
            HasSubstr("singleton update by WRITE: 1 round trip, 0 steps"),
            HasSubstr("Table 2, MHP, DDIO + DRAM-RQWRB, Write\n"),
            HasSubstr("    rq:comp(flush)"),
            HasSubstr("compound update by "
                      "SEND"),
            HasSubstr("rsp:copy(a,b)"), HasSubstr("immediate may be lost")));
}

TEST(CliPlanTest, WhatIsNotSaidOfAPlatformIsTheWeakest) {
  EXPECT_EQ(RunWell({"plan", "--domain", "dmp"}),
            RunWell({"plan", "--domain", "dmp", "--ddio", "on", "--rqwrb",
                     "dram", "--transport", "roce"}));
}

TEST(CliPlanTest, APlatformAsCsvIsItsRows) {
  const auto lines = SplitLines(
      RunWell({"plan", "--domain", "wsp", "--rqwrb", "pm", "--format", "csv"}));
  EXPECT_THAT(
      lines,
      ElementsAre("domain,ddio,rqwrb,update,operation,steps",
                  "wsp,on,pm,singleton,write,rq:write(a);rq:comp(write(a))",
                  "wsp,on,pm,singleton,writeimm,"
                  "rq:writeimm(a);rq:comp(writeimm(a))",
                  "wsp,on,pm,singleton,send,rq:send(a);rq:comp(send(a))",
                  "wsp,on,pm,compound,write,"
                  "rq:write(a);rq:write(b);rq:comp(write(b))",
                  "wsp,on,pm,compound,writeimm,"
                  "rq:writeimm(a);rq:writeimm(b);rq:comp(writeimm(b))",
                  "wsp,on,pm,compound,send,"
                  "\"rq:send(a,b);rq:comp(send(a,b))\""));
}

TEST(CliPlanTest, TransportsAndAdaptersChangeThePlan) {
  EXPECT_THAT(
      RunWell({"plan", "--domain", "wsp", "--transport", "iwarp"}),
      AllOf(HasSubstr("the row is MHP's"), Not(HasSubstr("comp(write"))));
  EXPECT_THAT(RunWell({"plan", "--ddio", "off", "--transport", "tcp"}),
              AllOf(HasSubstr("that of DDIO on"), Not(HasSubstr("rq:flush"))));
  EXPECT_THAT(RunWell({"plan", "--ddio", "off"}), HasSubstr("writeatomic"));
  EXPECT_THAT(RunWell({"plan", "--ddio", "off", "--no-atomic-write"}),
              AllOf(Not(HasSubstr("writeatomic")), HasSubstr("2 round trips")));
  EXPECT_THAT(RunWell({"plan", "--ddio", "off", "--no-native-flush"}),
              HasSubstr("FLUSH is a READ"));
}

TEST(CliPlanTest, CheapestHasTwoPlansForEachPlatform) {
  const auto lines =
      SplitLines(RunWell({"plan", "--cheapest", "--format", "csv"}));
  ASSERT_EQ(lines.size(), 25u);
  EXPECT_EQ(lines[0],
            "domain,ddio,rqwrb,update,operation,steps,round_trips,"
            "responder_steps");
  EXPECT_EQ(lines[1],
            "dmp,on,dram,singleton,writeimm,rq:writeimm(a);rsp:receive(&a);"
            "rsp:flush(&a);rsp:send(ack);rq:receive(ack),1,3");
  EXPECT_EQ(lines[2],
            "dmp,on,dram,compound,send,\"rq:send(a,b);rsp:receive(a,b);"
            "rsp:copy+flush(a,b);rsp:send(ack);rq:receive(ack)\",1,3");
  EXPECT_EQ(lines[6],
            "dmp,off,dram,compound,write,rq:write(a);rq:flush;"
            "rq:writeatomic(b);rq:flush;rq:comp(flush),1,0");
  const std::string text = RunWell({"plan", "--cheapest"});
  EXPECT_EQ(SplitLines(text).size(), 48u);
  EXPECT_THAT(text, HasSubstr("wsp,off,pm,singleton,write: 1 round trip, "
                              "0 steps of the responder's program\n"
                              "  rq:write(a);rq:comp(write(a))\n"));
}

TEST(CliPlanTest, CheapestTakesPlatformAdapterAndCostsIntoAccount) {
  const auto lines_of = [](Arguments arguments) {
    arguments.insert(arguments.begin(),
                     {"plan", "--cheapest", "--format", "csv"});
    return SplitLines(RunWell(arguments));
  };
  EXPECT_EQ(lines_of({"--domain", "mhp"}).size(), 9u);
  const Arguments one = {"--domain", "dmp", "--ddio", "off", "--rqwrb", "dram"};
  EXPECT_THAT(lines_of(one)[2], StartsWith("dmp,off,dram,compound,write,"));
  Arguments other = one;
  other.emplace_back("--no-atomic-write");
  EXPECT_THAT(lines_of(other)[2], StartsWith("dmp,off,dram,compound,send,"));
  other = one;
  other.insert(other.end(), {"--flush-cost", "3", "--exchange-cost", "2"});
  EXPECT_THAT(lines_of(other)[1], StartsWith("dmp,off,dram,singleton,send,"));
}

TEST(CliPlanTest, VerifyRunsTheTableThroughTheModel) {
  const std::string text = RunWell({"plan", "--verify"});
  EXPECT_THAT(text, AllOf(HasSubstr("rows sufficient: 72 of 72\n"),
                          HasSubstr("weakenings caught: 460 of 460\n"),
                          HasSubstr("wsp: OK 4, LOSS 20, ORDER 0\n"),
                          HasSubstr("planned for it: OK 72, LOSS 0, ORDER 0"),
                          HasSubstr("relaxed ordering, the tables' rows: "
                                    "OK 64, LOSS 0, ORDER 8\n"),
                          HasSubstr("11 other platforms: OK 486, LOSS 290, "
                                    "ORDER 16\n"),
                          HasSubstr("images after a power cut\n")));
  EXPECT_EQ(text, RunWell({"plan", "--verify"}));
}

}  // namespace
}  // namespace alpheus::testing
