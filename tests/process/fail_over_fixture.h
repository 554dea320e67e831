// SPDX-License-Identifier: Apache-2.0
// fail_over_fixture: three nodes, and a program at each that stands for
// primary.
#ifndef ALPHEUS_TESTS_PROCESS_FAIL_OVER_FIXTURE_H_
#define ALPHEUS_TESTS_PROCESS_FAIL_OVER_FIXTURE_H_

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "log/base/clock.h"
#include "tests/process/cluster_fixture.h"
#include "tests/support/fixtures/patience.h"

namespace alpheus::testing {

// For options that have it in seconds.
inline std::string PatienceSeconds() {
  return absl::StrCat(std::chrono::seconds(kPatience).count());
}

// `alpheus append --stand --ack`, fed without end.
class StandingProgram {
 public:
  StandingProgram(const demo::Cluster& cluster, int node,
                  std::vector<std::string> options)
      : node_(node) {
    std::vector<std::string> arguments = {
        "--node", absl::StrCat(node), "--file", cluster.region(node, "main"),
        "--stand", "--ack",
        // A busy machine must not decide.
        "--open-timeout-ms", "60000", "--ack-timeout-ms", "60000"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    demo::Program program = cluster.Alpheus("append", arguments);
    program.dies_with_starter = true;
    auto started = demo::ChildProcess::Start(program);
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) process_.emplace(*std::move(started));
  }

  int node() const { return node_; }
  demo::ChildProcess& process() { return *process_; }
  bool runs() const { return process_.has_value(); }

  // Feeds it two records more than it has answered for, and reads what it says.
  void Step() {
    if (!process_.has_value()) return;
    demo::ReadSome(process_->output().get(), &output_);
    demo::ReadSome(process_->error().get(), &said_);
    for (size_t end = output_.find('\n'); end != std::string::npos;
         end = output_.find('\n')) {
      NoteAck(output_.substr(0, end));
      output_.erase(0, end + 1);
    }
    NoteLost();
    if (is_fed_ && fed_ < settled_ + 2) Feed();
  }
  void Feed() {
    const std::string line =
        absl::StrCat(node_, "-", ::getpid(), "-", id_, "-", fed_, "\n");
    const ssize_t written =
        ::write(process_->input().get(), line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) ++fed_;
  }
  void StopFeeding() { is_fed_ = false; }
  void Kill() {
    process_->Kill();
    process_->Wait();
    Step();
    process_.reset();
  }

  // By LSN, what was acknowledged.
  const std::map<uint64_t, std::string>& acks() const { return acks_; }
  const std::string& said() const { return said_; }

 private:
  void NoteAck(const std::string& line) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    uint64_t lsn = 0;
    uint64_t index = 0;
    if (words.size() != 3 || !absl::SimpleAtoi(words[0], &lsn) ||
        !absl::SimpleAtoi(words[1], &index)) {
      return;
    }
    acks_[lsn] = absl::StrCat(node_, "-", ::getpid(), "-", id_, "-", index);
    settled_ = std::max(settled_, index + 1);
  }
  // Records that it had taken when it lost the log are not acknowledged.
  void NoteLost() {
    const std::string took = "; it took ";
    const size_t at = said_.rfind(took);
    uint64_t taken = 0;
    if (at == std::string::npos) return;
    const std::string rest = said_.substr(at + took.size());
    if (absl::SimpleAtoi(rest.substr(0, rest.find(' ')), &taken)) {
      settled_ = std::max(settled_, taken);
    }
  }

  static int NextId() {
    static int next = 0;
    return next++;
  }

  const int node_;
  const int id_ = NextId();
  std::optional<demo::ChildProcess> process_;
  std::string output_;
  std::string said_;
  uint64_t fed_ = 0;
  uint64_t settled_ = 0;  // records that are acknowledged or lost
  bool is_fed_ = true;
  std::map<uint64_t, std::string> acks_;
};

class ProgramFailOverTest : public ClusterTest {
 protected:
  void Begin(const std::vector<std::string>& options = {"--silence-ms",
                                                        "5000"}) {
    StartCluster();
    StandAll(options);
  }
  // Requires: the cluster runs.
  void StandAll(const std::vector<std::string>& options) {
    Format("main", "4MiB");
    for (int node = 1; node <= 3; ++node) Stand(node, options);
  }
  StandingProgram& Stand(int node, const std::vector<std::string>& options) {
    programs_.push_back(
        std::make_unique<StandingProgram>(*cluster_, node, options));
    return *programs_.back();
  }
  // Takes what they say, and waits a little for more: a test that spins takes
  // the processor from those that it waits for.
  void StepAll() {
    constexpr int kWaitMillis = 10;
    std::vector<pollfd> outputs;
    for (const auto& program : programs_) {
      program->Step();
      if (!program->runs()) continue;
      outputs.push_back({program->process().output().get(), POLLIN, 0});
      outputs.push_back({program->process().error().get(), POLLIN, 0});
    }
    cluster_->Listen();
    (void)::poll(outputs.data(), outputs.size(), kWaitMillis);
  }
  bool Eventually(const std::function<bool()>& is_so) {
    const int64_t end = Clock::Real().NowNanos() + kPatienceNanos;
    while (!is_so()) {
      StepAll();
      if (Clock::Real().NowNanos() > end) return false;
    }
    return true;
  }
  // Waits until a program other than `but` acknowledges so many records more.
  StandingProgram* Next(const StandingProgram* but, uint64_t count = 20) {
    std::map<const StandingProgram*, size_t> before;
    for (const auto& program : programs_) {
      before[program.get()] = program->acks().size();
    }
    StandingProgram* next = nullptr;
    EXPECT_TRUE(Eventually([&] {
      for (const auto& program : programs_) {
        if (program.get() == but || !program->runs()) continue;
        if (program->acks().size() >= before[program.get()] + count) {
          next = program.get();
        }
      }
      return next != nullptr;
    })) << Said();
    return next;
  }
  std::string Said() const {
    std::string all;
    for (const auto& program : programs_) {
      absl::StrAppend(&all, "program of node ", program->node(), ":\n",
                      program->said());
    }
    return all;
  }
  // Each acknowledged record is in the log, at its LSN, once.
  void CheckAll() {
    for (const auto& program : programs_) {
      program->StopFeeding();
      program->Step();
      if (program->runs()) program->Kill();
    }
    ASSERT_TRUE(cluster_->AwaitServed("main").ok());
    Append(3, "");
    std::map<uint64_t, std::string> log;
    std::istringstream heads(RunWell("cat", {"--log", "main", "--json"}));
    std::istringstream lines(RunWell("cat", {"--log", "main"}));
    std::string line;
    for (std::string head; std::getline(heads, head);) {
      ASSERT_TRUE(std::getline(lines, line));
      const auto said = nlohmann::json::parse(head);
      log[said.at("lsn").get<uint64_t>()] = line;
    }
    for (const auto& program : programs_) {
      for (const auto& [lsn, text] : program->acks()) {
        ASSERT_TRUE(log.contains(lsn)) << lsn << ": " << text << "\n" << Said();
        EXPECT_EQ(log[lsn], text) << lsn;
      }
    }
  }

  std::vector<std::unique_ptr<StandingProgram>> programs_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_PROCESS_FAIL_OVER_FIXTURE_H_
