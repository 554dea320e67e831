// SPDX-License-Identifier: Apache-2.0
// The examples of docs/use/api_guide.md, run. Each of its cpp blocks stands
// here verbatim, which .ci/lint.py checks; a test below calls it. One that no
// test calls is an unused function, and does not compile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "alpheus/atomicity.h"
#include "alpheus/candidate.h"
#include "alpheus/cluster_tail.h"
#include "alpheus/integrity.h"
#include "alpheus/log.h"
#include "alpheus/log_reader.h"
#include "alpheus/persistent_region.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tests/support/fixtures/test_cluster.h"

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// ---------------------------------------------------------------------------
// The examples, in the order of the guide.

absl::StatusOr<std::unique_ptr<alpheus::Log>> OpenOrFormat(
    const std::string& path) {
  const absl::StatusOr<alpheus::Uuid> made =
      alpheus::Log::Format({.path = path, .region_bytes = 1 << 20});
  if (!made.ok() && !absl::IsAlreadyExists(made.status())) return made.status();
  return alpheus::Log::Open({.path = path});
}

absl::StatusOr<alpheus::Lsn> Put(alpheus::Log& log, std::string_view key,
                                 std::string_view value) {
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(key)),
                                              std::as_bytes(std::span(value))};
  return log.Append(parts);  // one record; durable when it returns OK
}

absl::StatusOr<alpheus::Lsn> WriteOrder(alpheus::Log& log, uint64_t number,
                                        std::string_view text) {
  auto record = log.Reserve(sizeof(number) + text.size());
  if (!record.ok()) return record.status();
  std::memcpy(record->payload().data(), &number, sizeof(number));
  const absl::Status copied =
      log.Copy(*record, sizeof(number), std::as_bytes(std::span(text)));
  if (!copied.ok()) return copied;  // the record is dropped: ABORTED
  const absl::StatusOr<alpheus::Lsn> lsn = log.Complete(*std::move(record));
  if (!lsn.ok()) return lsn;
  const absl::Status durable = log.Force(*lsn);
  if (!durable.ok()) return durable;
  return lsn;
}

absl::Status RedoAll(
    const alpheus::Log& log,
    const std::function<void(const alpheus::RecoveredRecord&)>& redo) {
  auto records = log.Recovered();
  for (const alpheus::RecoveredRecord& record : records) redo(record);
  return records.status();  // not asking aborts the process
}

absl::StatusOr<std::unique_ptr<alpheus::Log>> OpenAndReport(
    const std::string& path, std::ostream& out) {
  auto log = alpheus::Log::Open({.path = path});
  if (!log.ok()) return log;  // DataLoss: corrupt; nothing was changed
  const alpheus::RecoveryReport& report = (*log)->report();
  out << report.ToString() << "\n";
  if (report.verdict == alpheus::RecoveryVerdict::kTornTail) {
    out << "never proven durable, and cut: LSN " << report.torn_lsn << " on\n";
  }
  return log;
}

absl::Status AppendBatch(alpheus::Log& log,
                         std::span<const std::string> texts) {
  alpheus::Lsn last;
  for (const std::string& text : texts) {
    const auto lsn = log.Append(text, {.frequency = 16});
    if (!lsn.ok()) return lsn.status();
    last = *lsn;
  }
  return texts.empty() ? absl::OkStatus() : log.Force(last);
}

absl::StatusOr<alpheus::Lsn> AppendInGroup(alpheus::Log& log,
                                           std::string_view text) {
  return log.Append(text, {.group = 8});
}

absl::Status AppendAndWait(alpheus::Log& log, std::string_view text) {
  const auto lsn = log.Append(text, {.frequency = 16});
  if (!lsn.ok()) return lsn.status();
  return log.WaitDurable(*lsn, alpheus::Deadline::In(std::chrono::minutes(1)));
}

absl::Status AppendBeside(alpheus::Log& log, std::span<const std::byte> payload,
                          const std::function<void()>& other_work) {
  auto record = log.Reserve(payload.size());
  if (!record.ok()) return record.status();
  std::ranges::copy(payload, record->payload().begin());
  const auto lsn = log.Complete(*std::move(record));
  if (!lsn.ok()) return lsn.status();
  const absl::Status begun = log.BeginForce(*lsn);
  if (!begun.ok()) return begun;
  other_work();
  return log.Force(*lsn);
}

absl::Status AppendAndAnswer(alpheus::Log& log, std::string_view text,
                             std::function<void(const absl::Status&)> answer) {
  const auto lsn = log.Append(text, {.frequency = 16});
  if (!lsn.ok()) return lsn.status();
  return log.OnDurable(*lsn, std::move(answer));
}

absl::StatusOr<std::unique_ptr<alpheus::Log>> OpenForBursts(
    const std::string& path) {
  alpheus::LogOptions options;
  options.path = path;
  options.exposure_records_max = 1024;  // a crash takes so many at most
  options.idle_force_us = 1000;         // forces what is older than 1 to 2 ms
  return alpheus::Log::Open(options);
}

void ReportPosition(const alpheus::Log& log, std::ostream& out) {
  out << "head " << log.head_lsn() << ", durable " << log.durable_lsn()
      << ", next " << log.next_lsn() << ", exposed " << log.Exposed() << " of "
      << log.ExposedMax() << "\n";
}

int AppendFromThreads(alpheus::Log& log, int threads) {
  std::atomic<int> failures{0};
  {
    std::vector<std::jthread> writers;
    for (int i = 0; i < threads; ++i) {
      writers.emplace_back([&log, &failures, i] {
        if (!log.Append("from thread " + std::to_string(i)).ok()) ++failures;
      });
    }
  }  // joins them
  return failures;
}

absl::StatusOr<alpheus::Lsn> FillByTwo(alpheus::Log& log, std::string_view left,
                                       std::string_view right) {
  auto record = log.Reserve(left.size() + right.size());
  if (!record.ok()) return record.status();
  const std::span<std::byte> payload = record->payload();  // asked once
  {
    const std::jthread other([&] {
      std::memcpy(payload.data() + left.size(), right.data(), right.size());
    });
    std::memcpy(payload.data(), left.data(), left.size());
  }  // both are done before Complete
  return log.Complete(*std::move(record));
}

absl::StatusOr<std::jthread> CompleteElsewhere(alpheus::Log& log) {
  auto reserved = log.Reserve(64);
  if (!reserved.ok()) return reserved.status();
  reserved->Detach();  // else a Force of this thread is refused
  return std::jthread([&log, record = *std::move(reserved)]() mutable {
    std::ranges::fill(record.payload(), std::byte{7});
    // On an error the log has failed, and whoever forces is told.
    (void)log.Complete(std::move(record));
  });
}

absl::Status RedoAndClean(
    alpheus::Log& log,
    const std::function<absl::Status(const alpheus::RecoveredRecord&)>& redo) {
  const absl::Status redone = log.ForEachRecovered(redo);
  const alpheus::RecoveryReport& report = log.report();
  if (!redone.ok() || report.end_lsn < report.head_lsn) return redone;
  // Here the program makes persistent what redo did; then:
  return log.CleanupThrough(report.end_lsn);
}

absl::StatusOr<alpheus::Lsn> AppendMakingRoom(
    alpheus::Log& log, std::string_view text,
    const std::function<alpheus::Lsn()>& checkpoint) {
  const auto lsn = log.Append(text);
  if (!absl::IsResourceExhausted(lsn.status())) return lsn;
  // Up to here the program holds everything persistent elsewhere.
  const absl::Status cleaned = log.CleanupThrough(checkpoint());
  if (!cleaned.ok()) return cleaned;
  return log.Append(text);
}

enum class Outcome { kDurable, kRefused, kUnknown };

// The outcome of an Append without a policy, or of a Force with frequency 1.
Outcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return Outcome::kDurable;
  if (absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
      absl::IsFailedPrecondition(status) || absl::IsResourceExhausted(status)) {
    return Outcome::kRefused;  // nothing was written
  }
  return Outcome::kUnknown;  // the record may be recovered or not
}

absl::StatusOr<std::unique_ptr<alpheus::Log>> OpenAsPrimary(
    const std::string& cluster_file, uint64_t node, const std::string& path,
    const std::function<bool(int tries)>& wait_and_ask) {
  alpheus::LogOptions options;
  options.replication.cluster_file = cluster_file;
  options.replication.node = node;
  options.path = path;  // the replica of that node, or empty
  for (int tries = 1;; ++tries) {
    auto log = alpheus::Log::Open(options);
    if (!absl::IsUnavailable(log.status()) || !wait_and_ask(tries)) return log;
  }
}

absl::StatusOr<bool> OpenAgain(
    std::unique_ptr<alpheus::Log>& log, std::string_view unknown,
    const std::function<absl::StatusOr<std::unique_ptr<alpheus::Log>>()>&
        open) {
  log.reset();  // the failed one: it keeps the lock of its own replica
  absl::StatusOr<std::unique_ptr<alpheus::Log>> opened = open();
  if (!opened.ok()) return opened.status();
  log = *std::move(opened);
  bool survived = false;
  const absl::Status read =
      log->ForEachRecovered([&](const alpheus::RecoveredRecord& record) {
        survived =
            survived || std::ranges::equal(record.payload,
                                           std::as_bytes(std::span(unknown)));
        return absl::OkStatus();
      });
  if (!read.ok()) return read;
  return survived;
}

absl::StatusOr<std::string> AnswerFrom(
    alpheus::Log& log, const std::function<std::string(alpheus::Lsn)>& read) {
  const absl::Status confirmed =
      log.ConfirmEpoch(alpheus::Deadline::In(std::chrono::seconds(1)));
  if (!confirmed.ok()) return confirmed;  // another one may know more
  return read(log.durable_lsn());
}

absl::Status ServeWhilePrimary(
    alpheus::Candidate& candidate,
    const std::function<absl::Status(alpheus::Log&)>& append_one) {
  for (;;) {
    absl::StatusOr<std::shared_ptr<alpheus::Log>> log = candidate.WaitForLog();
    if (!log.ok()) return log.status();  // it withdrew
    absl::Status appended;
    while (appended.ok() && !candidate.must_give_back()) {
      appended = append_one(**log);
    }
    // A log that has failed says so once more. The candidate stands again.
    candidate.GiveBack(*std::move(log)).IgnoreError();
  }
}

absl::Status AnnounceDurable(const std::string& path, std::ostream& out) {
  const auto reader = alpheus::LogReader::Open(path);
  if (!reader.ok()) return reader.status();
  return (*reader)->ForEach([&out](const alpheus::ReaderRecord& record) {
    if (record.state == alpheus::RecordState::kDurable) {
      out << "LSN " << record.lsn << ": " << record.payload.size() << " bytes;";
    }
    return absl::OkStatus();
  });
}

absl::Status CheckEverything(const std::string& path) {
  const auto reader = alpheus::LogReader::Open(path);
  if (!reader.ok()) return reader.status();
  const alpheus::VerifyReport report = (*reader)->Verify();
  return report.status;  // OK, or DataLoss with LSN, offset and remedy
}

absl::Status ShowNews(
    alpheus::LogTail& tail,
    const std::function<void(const alpheus::TailRecord&)>& show) {
  for (;;) {
    const auto record = tail.Next();
    if (!record.ok()) return record.status();  // OutOfRange: it was cleaned
    if (!*record) return absl::OkStatus();     // all up to tail.durable_lsn()
    show(**record);
  }
}

absl::StatusOr<std::vector<std::string>> ReadFromAnyHost(
    const std::string& cluster_file, alpheus::Lsn from, size_t count) {
  const auto tail =
      alpheus::ClusterTail::Open({.cluster_file = cluster_file, .from = from});
  if (!tail.ok()) return tail.status();
  std::vector<std::string> texts;
  while (texts.size() < count) {
    const auto record = (*tail)->Next(alpheus::Deadline());  // waits
    if (!record.ok()) return record.status();
    const auto* text = reinterpret_cast<const char*>((*record)->payload.data());
    texts.emplace_back(text, (*record)->payload.size());
  }
  return texts;  // to go on: (*tail)->next_lsn()
}

constexpr uint64_t kNames = 1;  // identity: names the place

absl::Status SaveNames(alpheus::PersistentRegion& region,
                       std::string_view names) {
  return alpheus::ReliableWrite(region, 0, kNames,
                                std::as_bytes(std::span(names)));
}

absl::StatusOr<std::vector<std::byte>> LoadNames(
    const alpheus::PersistentRegion& region) {
  return alpheus::ReliableRead(region, 0, kNames);
}

constexpr alpheus::AtomicPlace kRuns{
    .offset = 8192, .bytes_max = sizeof(uint64_t), .identity = 2};

absl::StatusOr<uint64_t> CountRun(alpheus::PersistentRegion& region) {
  uint64_t runs = 0;
  const auto before = alpheus::AtomicRead(region, kRuns);
  if (before.ok()) {
    std::memcpy(&runs, before->data(), sizeof(runs));
  } else if (!absl::IsNotFound(before.status())) {
    return before.status();  // NotFound: never written
  }
  ++runs;
  const absl::Status written =
      alpheus::AtomicWrite(region, kRuns, std::as_bytes(std::span(&runs, 1)));
  if (!written.ok()) return written;
  return runs;
}

// ---------------------------------------------------------------------------
// Tests of the examples.

std::string Text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> Recovered(const alpheus::Log& log) {
  std::vector<std::string> texts;
  EXPECT_TRUE(RedoAll(log, [&](const alpheus::RecoveredRecord& record) {
                texts.push_back(Text(record.payload));
              }).ok());
  return texts;
}

class GuideTest : public ::testing::Test {
 protected:
  GuideTest() { Open(); }

  void Open() {
    log_.reset();
    auto log = OpenOrFormat(path_);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }
  // A log in anonymous memory, which only the caller forces.
  static std::unique_ptr<alpheus::Log> Scratch(uint64_t bytes = 1 << 20) {
    auto log =
        alpheus::Log::Open({.anonymous_bytes = bytes, .idle_force_us = 0});
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  // A copy of the live region, as a killed process would leave it, with one
  // byte of it changed.
  std::string Crashed(size_t changed_offset) const {
    const std::string path = directory_.File("crashed");
    std::vector<std::byte> bytes = alpheus::testing::ReadFile(path_);
    bytes[changed_offset] ^= std::byte{1};
    alpheus::testing::WriteFile(path, bytes);
    return path;
  }

  alpheus::testing::TempDirectory directory_;
  const std::string path_ = directory_.File("log");
  std::unique_ptr<alpheus::Log> log_;
};

// docs/formats/log.md: where the ring starts, and a payload in its record.
constexpr size_t kFirstPayload = 106496 + 48;

TEST_F(GuideTest, FormatOpenAppendAndRecover) {
  EXPECT_THAT(Recovered(*log_), IsEmpty());
  ASSERT_TRUE(Put(*log_, "key", "value").ok());
  ASSERT_TRUE(log_->Close().ok());
  Open();
  EXPECT_THAT(Recovered(*log_), ElementsAre("keyvalue"));
}

TEST_F(GuideTest, StepByStep) {
  const auto lsn = WriteOrder(*log_, 7, "seven");
  ASSERT_TRUE(lsn.ok()) << lsn.status();
  EXPECT_EQ(log_->durable_lsn(), *lsn);
  Open();
  EXPECT_THAT(Recovered(*log_),
              ElementsAre(std::string("\7\0\0\0\0\0\0\0seven", 13)));
}

TEST_F(GuideTest, TornTailIsToldAndCut) {
  // Without idle forcing: nothing may force the record that is to be torn.
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  log_ = *alpheus::Log::Open({.path = path_, .idle_force_us = 0});
  ASSERT_TRUE(log_->Append("first").ok());
  auto torn = log_->Reserve(4);
  ASSERT_TRUE(torn.ok());
  ASSERT_TRUE(log_->Complete(*std::move(torn)).ok());
  std::ostringstream out;
  const auto log = OpenAndReport(Crashed(kFirstPayload + 64), out);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(out.str(), StartsWith("recovered LSN 1 to 1"));
  EXPECT_THAT(out.str(),
              HasSubstr("never proven durable, and cut: LSN 2 on\n"));
  EXPECT_THAT(Recovered(**log), ElementsAre("first"));
}

TEST_F(GuideTest, DamageToWhatWasAcknowledgedIsAnError) {
  ASSERT_TRUE(log_->Append("first").ok());
  ASSERT_TRUE(log_->Append("second").ok());
  std::ostringstream out;
  EXPECT_TRUE(
      absl::IsDataLoss(OpenAndReport(Crashed(kFirstPayload), out).status()));
  EXPECT_THAT(out.str(), IsEmpty());
}

TEST_F(GuideTest, FrequencyForcesSome) {
  const auto log = Scratch();
  const std::vector<std::string> texts(20, "text");
  ASSERT_TRUE(AppendBatch(*log, texts).ok());
  EXPECT_EQ(log->durable_lsn(), alpheus::Lsn(20));
  EXPECT_TRUE(AppendBatch(*log, {}).ok());
}

TEST_F(GuideTest, GroupCommitForcesTheGroup) {
  const auto log = Scratch();
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(AppendInGroup(*log, "text").ok());
  EXPECT_EQ(log->durable_lsn(), alpheus::Lsn(0));
  ASSERT_TRUE(AppendInGroup(*log, "text").ok());
  EXPECT_EQ(log->durable_lsn(), alpheus::Lsn(8));
}

TEST_F(GuideTest, IdleForcingEndsTheWait) {
  ASSERT_TRUE(log_->Close().ok());
  log_.reset();
  const auto log = OpenForBursts(path_);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ((*log)->ExposedMax(), 1024u);
  EXPECT_TRUE(AppendAndWait(**log, "text").ok());
  EXPECT_EQ((*log)->durable_lsn(), alpheus::Lsn(1));
}

TEST_F(GuideTest, OtherWorkIsDoneBeforeTheWait) {
  bool is_done = false;
  ASSERT_TRUE(AppendBeside(*log_, std::as_bytes(std::span("text", 4)), [&] {
                is_done = true;
              }).ok());
  EXPECT_TRUE(is_done);
  EXPECT_EQ(log_->durable_lsn(), alpheus::Lsn(1));
}

TEST_F(GuideTest, AnswerComesWhenDurable) {
  const auto log = Scratch();
  std::vector<absl::Status> answers;
  ASSERT_TRUE(AppendAndAnswer(*log, "text", [&](const absl::Status& status) {
                answers.push_back(status);
              }).ok());
  EXPECT_THAT(answers, IsEmpty());
  ASSERT_TRUE(log->Force(alpheus::Lsn(1)).ok());
  EXPECT_THAT(answers, ElementsAre(absl::OkStatus()));
}

TEST_F(GuideTest, PositionTellsWhatACrashMayTake) {
  const auto log = Scratch();
  ASSERT_TRUE(log->Append("durable").ok());
  ASSERT_TRUE(log->Append("not yet", {.frequency = 16}).ok());
  std::ostringstream out;
  ReportPosition(*log, out);
  EXPECT_EQ(out.str(), "head 1, durable 1, next 3, exposed 1 of 4096\n");
}

TEST_F(GuideTest, ManyThreadsAppend) {
  EXPECT_EQ(AppendFromThreads(*log_, 4), 0);
  EXPECT_EQ(log_->durable_lsn(), alpheus::Lsn(4));
}

TEST_F(GuideTest, TwoThreadsFillOneRecord) {
  const auto lsn = FillByTwo(*log_, "left ", "right");
  ASSERT_TRUE(lsn.ok()) << lsn.status();
  ASSERT_TRUE(log_->Force(*lsn).ok());
  Open();
  EXPECT_THAT(Recovered(*log_), ElementsAre("left right"));
}

TEST_F(GuideTest, AnotherThreadCompletes) {
  auto worker = CompleteElsewhere(*log_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_TRUE(log_->Force(alpheus::Lsn(1)).ok());
  worker->join();
  Open();
  EXPECT_THAT(Recovered(*log_), ElementsAre(std::string(64, '\7')));
}

TEST_F(GuideTest, RedoneRecordsAreCleaned) {
  std::vector<std::string> redone;
  const auto redo = [&](const alpheus::RecoveredRecord& record) {
    redone.push_back(Text(record.payload));
    return absl::OkStatus();
  };
  EXPECT_TRUE(RedoAndClean(*log_, redo).ok());  // nothing to do
  ASSERT_TRUE(log_->Append("a").ok());
  ASSERT_TRUE(log_->Append("b").ok());
  Open();
  ASSERT_TRUE(RedoAndClean(*log_, redo).ok());
  EXPECT_THAT(redone, ElementsAre("a", "b"));
  EXPECT_EQ(log_->head_lsn(), log_->next_lsn());
  Open();
  EXPECT_THAT(Recovered(*log_), IsEmpty());
}

TEST_F(GuideTest, FullRingIsEmptiedAndWrittenOn) {
  const auto log = Scratch(108 << 10);
  const std::string text(1000, 'x');
  int checkpoints = 0;
  const auto checkpoint = [&] {
    ++checkpoints;
    return log->durable_lsn();
  };
  for (int i = 0; i < 10; ++i) {
    const auto lsn = AppendMakingRoom(*log, text, checkpoint);
    ASSERT_TRUE(lsn.ok()) << lsn.status();
  }
  EXPECT_GT(checkpoints, 0);
  EXPECT_EQ(log->durable_lsn(), alpheus::Lsn(10));
}

TEST_F(GuideTest, OutcomeFollowsFromTheCode) {
  const auto log = Scratch(108 << 10);
  EXPECT_EQ(OutcomeOf(log->Append("text").status()), Outcome::kDurable);
  EXPECT_EQ(OutcomeOf(log->Append(std::string(4096, 'x')).status()),
            Outcome::kRefused);
  EXPECT_EQ(OutcomeOf(log->Force(alpheus::Lsn(2))), Outcome::kRefused);
  auto open = log->Reserve(1);
  ASSERT_TRUE(open.ok());
  EXPECT_EQ(OutcomeOf(log->Append("behind an own one").status()),
            Outcome::kRefused);
  EXPECT_EQ(log->next_lsn(), alpheus::Lsn(3));
  open->Detach();
  EXPECT_EQ(
      OutcomeOf(log->Append("late", {.deadline = alpheus::Deadline::AtNanos(1)})
                    .status()),
      Outcome::kUnknown);
  open->Abort();
}

// An append that a full ring refuses gives no LSN and leaves no record.
TEST_F(GuideTest, FullRingRefusesAndWritesNothing) {
  std::vector<std::string> appended;
  absl::Status status;
  for (int i = 0; status.ok(); ++i) {
    const std::string text = std::to_string(i) + std::string(10'000, 'x');
    status = log_->Append(text).status();
    if (status.ok()) appended.push_back(text);
  }
  ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(OutcomeOf(status), Outcome::kRefused);
  EXPECT_EQ(log_->next_lsn(), alpheus::Lsn(appended.size() + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(log_->Reserve(10'000).status()));
  EXPECT_EQ(log_->next_lsn(), alpheus::Lsn(appended.size() + 1));
  ASSERT_TRUE(log_->Close().ok());
  Open();
  EXPECT_TRUE(Recovered(*log_) == appended);
}

TEST_F(GuideTest, ReaderShowsWhatIsDurable) {
  for (const char* text : {"a", "bb", "ccc"}) {
    ASSERT_TRUE(log_->Append(text).ok());
  }
  std::ostringstream live;
  ASSERT_TRUE(AnnounceDurable(path_, live).ok());
  EXPECT_THAT(live.str(), StartsWith("LSN 1: 1 bytes;LSN 2: 2 bytes;"));
  ASSERT_TRUE(log_->Close().ok());
  std::ostringstream closed;
  ASSERT_TRUE(AnnounceDurable(path_, closed).ok());
  EXPECT_EQ(closed.str(), "LSN 1: 1 bytes;LSN 2: 2 bytes;LSN 3: 3 bytes;");
}

TEST_F(GuideTest, VerifyReadsEverything) {
  ASSERT_TRUE(log_->Append("text").ok());
  ASSERT_TRUE(log_->Close().ok());
  EXPECT_TRUE(CheckEverything(path_).ok());
  EXPECT_TRUE(absl::IsDataLoss(CheckEverything(Crashed(kFirstPayload))));
}

TEST_F(GuideTest, TailShowsWhatIsNew) {
  const auto tail = log_->Tail(alpheus::Lsn(0));
  ASSERT_TRUE(tail.ok()) << tail.status();
  std::vector<uint64_t> shown;
  const auto show = [&](const alpheus::TailRecord& record) {
    shown.push_back(record.lsn.value);
  };
  ASSERT_TRUE(log_->Append("one").ok());
  ASSERT_TRUE(ShowNews(**tail, show).ok());
  ASSERT_TRUE(log_->Append("two").ok());
  ASSERT_TRUE(ShowNews(**tail, show).ok());
  EXPECT_THAT(shown, ElementsAre(1, 2));
  ASSERT_TRUE(log_->Append("three").ok());
  ASSERT_TRUE(log_->CleanupAll().ok());
  EXPECT_TRUE(absl::IsOutOfRange(ShowNews(**tail, show)));
}

TEST(GuideClusterTest, LogOfAClusterIsFollowed) {
  const alpheus::testing::TestCluster cluster(3);
  alpheus::FormatOptions format;
  format.region_bytes = 1 << 20;
  format.cluster_file = cluster.file();
  ASSERT_TRUE(alpheus::Log::Format(format).ok());
  alpheus::LogOptions options;
  options.replication.cluster_file = cluster.file();
  options.replication.node = 1;
  const auto log = alpheus::Log::Open(options);
  ASSERT_TRUE(log.ok()) << log.status();
  for (const char* text : {"one", "two", "three"}) {
    ASSERT_TRUE((*log)->Append(text).ok());
  }
  const auto texts = ReadFromAnyHost(cluster.file(), alpheus::Lsn(2), 2);
  ASSERT_TRUE(texts.ok()) << texts.status();
  EXPECT_THAT(*texts, ElementsAre("two", "three"));
}

TEST(GuideClusterTest, FailedPrimaryOpensAgain) {
  alpheus::testing::TestCluster cluster(3);
  alpheus::FormatOptions format;
  format.region_bytes = 1 << 20;
  format.cluster_file = cluster.file();
  ASSERT_TRUE(alpheus::Log::Format(format).ok());
  const auto open = [&](uint64_t node, const std::string& path) {
    return OpenAsPrimary(cluster.file(), node, path,
                         [](int tries) { return tries < 10; });
  };
  EXPECT_TRUE(absl::IsInvalidArgument(open(9, "").status()));  // no member
  auto first = open(1, cluster.ReplicaPath(1));
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE((*first)->Append("one").ok());
  const auto last_lsn = [](alpheus::Lsn durable) {
    return std::to_string(durable.value);
  };
  EXPECT_EQ(*AnswerFrom(**first, last_lsn), "1");
  const auto second = open(2, "");
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_TRUE((*second)->Append("two").ok());
  EXPECT_TRUE(absl::IsAborted(AnswerFrom(**first, last_lsn).status()));
  EXPECT_EQ(*AnswerFrom(**second, last_lsn), "2");
  const absl::Status failure = (*first)->Append("three").status();
  EXPECT_TRUE(absl::IsAborted(failure)) << failure;
  EXPECT_EQ(OutcomeOf(failure), Outcome::kUnknown);
  const absl::StatusOr<bool> survived =
      OpenAgain(*first, "three", [&] { return open(1, ""); });
  ASSERT_TRUE(survived.ok()) << survived.status();
  EXPECT_FALSE(*survived);
  EXPECT_THAT(Recovered(**first), ElementsAre("one", "two"));
  EXPECT_TRUE((*first)->Append("three").ok());
}

TEST_F(GuideTest, CandidateServesWhileItIsPrimary) {
  alpheus::testing::TestCluster cluster(3);
  alpheus::FormatOptions format;
  format.region_bytes = 1 << 20;
  format.cluster_file = cluster.file();
  ASSERT_TRUE(alpheus::Log::Format(format).ok());
  alpheus::CandidateOptions options;
  options.log.replication.cluster_file = cluster.file();
  options.log.replication.node = 1;
  auto candidate = alpheus::Candidate::Stand(options);
  ASSERT_TRUE(candidate.ok()) << candidate.status();
  int appended = 0;
  const absl::Status served =
      ServeWhilePrimary(**candidate, [&](alpheus::Log& log) {
        if (++appended == 3) (*candidate)->Withdraw();
        return log.Append("a record").status();
      });
  EXPECT_TRUE(absl::IsCancelled(served)) << served;
  EXPECT_EQ(appended, 3);
}

TEST_F(GuideTest, SealedBytesComeBackWholeOrNotAtAll) {
  auto region = alpheus::PersistentRegion::Anonymous(64 << 10);
  ASSERT_TRUE(region.ok());
  EXPECT_TRUE(absl::IsDataLoss(LoadNames(*region).status()));
  ASSERT_TRUE(SaveNames(*region, "Arethusa").ok());
  const auto names = LoadNames(*region);
  ASSERT_TRUE(names.ok());
  EXPECT_EQ(Text(*names), "Arethusa");
}

TEST_F(GuideTest, AtomicCellCounts) {
  const std::string path = directory_.File("region");
  ASSERT_TRUE(alpheus::PersistentRegion::Create(path, 64 << 10).ok());
  for (uint64_t run = 1; run <= 3; ++run) {
    auto region = alpheus::PersistentRegion::Open(path);
    ASSERT_TRUE(region.ok());
    const auto counted = CountRun(*region);
    ASSERT_TRUE(counted.ok()) << counted.status();
    EXPECT_EQ(*counted, run);
  }
}

}  // namespace
