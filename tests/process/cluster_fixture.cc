// SPDX-License-Identifier: Apache-2.0
#include "tests/process/cluster_fixture.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "log/base/clock.h"
#include "tools/nemesis/oracles/log_output.h"

namespace alpheus::testing {

using ::alpheus::demo::Cluster;
using ::alpheus::demo::ClusterOptions;
using ::alpheus::demo::ClusterWriter;
using ::alpheus::demo::Program;
using ::alpheus::demo::ProgramResult;
using ::nlohmann::json;

namespace {

ProgramResult RunAny(const Program& program, const std::string& input) {
  absl::StatusOr<ProgramResult> result =
      demo::RunProgram(program, input, kPatienceNanos);
  if (result.ok()) return *std::move(result);
  ADD_FAILURE() << result.status();
  return {};
}

}  // namespace

std::string CountLines(int count, int first) {
  std::string lines;
  for (int i = first; i < first + count; ++i) absl::StrAppend(&lines, i, "\n");
  return lines;
}

ClusterOptions ClusterTest::ThreeNodes(const std::string& directory) {
  ClusterOptions options;
  options.alpheus = ALPHEUS_BINARY;
  options.alpheusd = ALPHEUSD_BINARY;
  options.directory = directory;
  return options;
}

void ClusterTest::StartCluster(const ClusterOptions& options) {
  auto cluster = Cluster::Create(options);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  cluster_ = *std::move(cluster);
  const absl::Status started = cluster_->StartAll();
  ASSERT_TRUE(started.ok()) << started;
}

void ClusterTest::TearDown() {
  if (!cluster_) return;
  const absl::Status health = cluster_->CheckHealth();
  EXPECT_TRUE(health.ok()) << health;
  if (HasFailure()) GTEST_LOG_(INFO) << cluster_->Story();
}

ProgramResult ClusterTest::Run(const std::string& command,
                               const std::vector<std::string>& arguments,
                               const std::string& input) {
  return RunAny(cluster_->Alpheus(command, arguments), input);
}

std::string ClusterTest::RunWell(const std::string& command,
                                 const std::vector<std::string>& arguments,
                                 const std::string& input) {
  const ProgramResult result = Run(command, arguments, input);
  EXPECT_EQ(result.end.exit_status, kGood)
      << command << " " << absl::StrJoin(arguments, " ") << ": "
      << result.end.ToString() << ": " << result.error;
  return result.output;
}

ProgramResult ClusterTest::RunOnReplica(
    const std::string& command, int node,
    const std::vector<std::string>& arguments) {
  Program program;
  program.argv = {cluster_->alpheus(), command, "--file",
                  cluster_->region(node, "main")};
  program.argv.insert(program.argv.end(), arguments.begin(), arguments.end());
  return RunAny(program, "");
}

void ClusterTest::Format(const std::string& log, const std::string& size) {
  RunWell("format", {"--log", log, "--size", size});
}

void ClusterTest::Append(int node, const std::string& lines,
                         const std::string& log) {
  RunWell("append", {"--node", absl::StrCat(node), "--log", log, "--ack"},
          lines);
}

std::string ClusterTest::Cat(const std::string& log) {
  return RunWell("cat", {"--log", log});
}

std::string ClusterTest::CatReplica(int node) {
  const ProgramResult result = RunOnReplica("cat", node, {});
  EXPECT_EQ(result.end.exit_status, kGood) << result.error;
  return result.output;
}

std::vector<json> ClusterTest::Status(const std::string& log) {
  // Its exit status tells whether W are in sync.
  const ProgramResult result = Run("status", {"--log", log, "--json"});
  const json said = json::parse(result.output, nullptr, false);
  EXPECT_TRUE(said.is_object()) << result.output << result.error;
  if (!said.is_object()) return {};
  std::vector<json> replicas(said["replicas"].begin(), said["replicas"].end());
  EXPECT_EQ(static_cast<int>(replicas.size()), cluster_->node_count())
      << result.error;
  return replicas;
}

bool ClusterTest::IsServed(int node, const std::string& log) {
  const std::vector<json> replicas = Status(log);
  const auto index = static_cast<size_t>(node) - 1;
  return index < replicas.size() && replicas[index].value("served", false);
}

std::unique_ptr<ClusterWriter> ClusterTest::StartWriter(
    demo::ClusterWriterPlan plan) {
  plan.first_number = history_.DrawFirstNumber();
  plan.limits = {.ring_bytes_max = 256 << 10, .unacknowledged_max = 200};
  auto writer = ClusterWriter::Start(cluster_.get(), &feed_, plan);
  EXPECT_TRUE(writer.ok()) << writer.status();
  return writer.ok() ? *std::move(writer) : nullptr;
}

void ClusterTest::MustReach(ClusterWriter* writer, uint64_t ack_count) {
  const auto reached = writer->RunUntil(ack_count, kPatienceNanos);
  ASSERT_TRUE(reached.ok()) << reached.status();
  ASSERT_TRUE(*reached) << writer->ToString() << " acknowledged "
                        << writer->ack_count() << " of " << ack_count
                        << " records; it said: " << writer->said();
}

void ClusterTest::MustHaveAllInSync(ClusterWriter* writer) {
  constexpr int64_t kListenNanos = 20'000'000;
  const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
  // Enough is left to be fed for after.
  writer->Pause(true);
  do {
    const auto heard = writer->RunUntil(UINT64_MAX, kListenNanos);
    ASSERT_TRUE(heard.ok()) << heard.status();
    ASSERT_FALSE(writer->has_ended_output()) << writer->said();
    ASSERT_LT(Clock::Real().NowNanos(), end)
        << writer->ToString() << " lacks replicas; it said: " << writer->said();
  } while (!writer->has_all_in_sync());
  writer->Pause(false);
}

void ClusterTest::CheckLog(const std::vector<const ClusterWriter*>& writers) {
  std::vector<demo::WriterFacts> facts;
  for (const ClusterWriter* writer : writers) facts.push_back(writer->Facts());
  auto records = demo::ParseRecords(RunWell("cat", {"--framing", "len32"}),
                                    RunWell("cat", {"--json"}));
  ASSERT_TRUE(records.ok()) << records.status();
  const absl::Status looked =
      history_.Check(facts, *std::move(records), /*is_final=*/true);
  EXPECT_TRUE(looked.ok()) << looked;
}

}  // namespace alpheus::testing
