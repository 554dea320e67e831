// SPDX-License-Identifier: Apache-2.0
// Ends a process that writes to RocksDB on a replicated log, or makes it stand
// still, at random moments; another one takes over and goes on.
//
// usage: rocksdb_failover_rounds ROUNDS SEED
//
// Three nodes are real processes of alpheusd; the file system is shared. In a
// round the process that writes is either killed, and the next one opens the
// same directory; or stopped, and the next one takes the database over into a
// directory of its own, in the middle of which, or later, the stopped one goes
// on: it must be told that it was fenced and end. failover_writer.h says which
// puts the next process has to find. All that a stopped process was told to be
// durable, also when it went on, must be among them.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"
#include "tests/api/rocksdb/failover/failover_writer.h"
#include "tests/support/fixtures/temp_directory.h"
#include "tools/nemesis/processes/cluster.h"

namespace alpheus::wal {
namespace {

using testing::FailoverWriter;
using testing::ProcessNotes;

constexpr int kNodes = 3;
constexpr uint64_t kPutsMax = 3'000;

// When a stopped process goes on.
enum class GoesOn { kWhileTheNextOpens, kWhenItHasOpened, kWhenItHasWritten };

struct Process {
  pid_t pid = -1;
  size_t index = 0;
  std::string database;
};

struct Totals {
  uint64_t killed = 0;
  uint64_t stopped = 0;
  uint64_t puts = 0;
};

// Waits for its end. Errors: DataLoss (another one than expected).
absl::Status MustExit(const Process& process, int expected) {
  int status = 0;
  if (waitpid(process.pid, &status, 0) == process.pid && WIFEXITED(status) &&
      WEXITSTATUS(status) == expected) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("process ", process.index,
                                          " ended with wait status ", status,
                                          ", not by itself with ", expected));
}

class Rounds {
 public:
  Rounds(demo::Cluster& cluster, const std::string& directory,
         std::span<ProcessNotes> notes, uint64_t seed)
      : cluster_(cluster),
        directory_(directory),
        notes_(notes),
        random_(seed) {}

  absl::Status Start() {
    running_.database = directory_ + "/db0";
    running_ = Fork(0, running_.database, /*write=*/true);
    return absl::OkStatus();
  }

  absl::Status RunRound() {
    ALPHEUS_RETURN_IF_ERROR(WriteForAWhile());
    if (random_.Below(2) == 0) return KillAndContinue();
    return StopAndTakeOver();
  }

  // The last one only looks.
  absl::Status End() {
    ALPHEUS_RETURN_IF_ERROR(WriteForAWhile());
    ALPHEUS_RETURN_IF_ERROR(Kill());
    const Process last =
        Fork(running_.index + 1, running_.database, /*write=*/false);
    return MustExit(last, testing::kFoundAllRight);
  }

  const Totals& totals() const { return totals_; }

 private:
  Process Fork(size_t index, const std::string& database, bool write) {
    WalOptions wal;
    wal.stall_ms = 600'000;
    wal.log.replication.cluster_file = cluster_.file();
    wal.log.replication.node = 1 + index % kNodes;
    wal.log.replication.open_timeout_ms = 120'000;
    wal.log.replication.ack_timeout_ms = 60'000;
    if (random_.Below(2) == 0) {
      // Its own node's replica; else none.
      wal.log.path =
          cluster_.region(static_cast<int>(wal.log.replication.node), "main");
    }
    if (database != running_.database) wal.take_over = database;
    const pid_t starter = getpid();
    const pid_t pid = fork();
    if (pid != 0) return {pid, index, database};
    // None outlives the rounds, stopped ones neither.
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != starter) _exit(testing::kWentWrong);
    _exit(Run(wal, database, index, write));
  }

  // In the child.
  int Run(const WalOptions& wal, const std::string& database, size_t index,
          bool write) {
    FailoverWriter writer(wal, database, notes_.first(index + 1));
    if (!writer.Open()) return testing::kCouldNotOpen;
    if (!writer.Verify()) return testing::kFoundWrong;
    return write ? writer.WriteUntilFenced() : testing::kFoundAllRight;
  }

  // Returns when the process has put so many; 0: when it has verified.
  // Errors: DataLoss (it ended).
  absl::Status AwaitPuts(const Process& process, uint64_t puts) {
    const ProcessNotes& notes = notes_[process.index];
    while (!notes.has_verified.load() || notes.puts.load() < puts) {
      int status = 0;
      if (waitpid(process.pid, &status, WNOHANG) == process.pid) {
        return absl::DataLossError(absl::StrCat(
            "process ", process.index, " ended with wait status ", status));
      }
      cluster_.Listen();
      std::this_thread::yield();
    }
    return absl::OkStatus();
  }

  absl::Status WriteForAWhile() {
    return AwaitPuts(running_, 1 + random_.Below(kPutsMax));
  }

  absl::Status Kill() {
    ++totals_.killed;
    totals_.puts += notes_[running_.index].puts.load();
    kill(running_.pid, SIGKILL);
    int status = 0;
    if (waitpid(running_.pid, &status, 0) == running_.pid &&
        WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("process ", running_.index,
                                            " ended before it was killed"));
  }

  absl::Status KillAndContinue() {
    ALPHEUS_RETURN_IF_ERROR(Kill());
    running_ = Fork(running_.index + 1, running_.database, /*write=*/true);
    return AwaitPuts(running_, 0);
  }

  absl::Status StopAndTakeOver() {
    ++totals_.stopped;
    const Process stopped = running_;
    kill(stopped.pid, SIGSTOP);
    int status = 0;
    if (waitpid(stopped.pid, &status, WUNTRACED) != stopped.pid ||
        !WIFSTOPPED(status)) {
      return absl::DataLossError(absl::StrCat(
          "process ", stopped.index, " ended with wait status ", status));
    }
    const auto goes_on = static_cast<GoesOn>(random_.Below(3));
    Process next =
        Fork(stopped.index + 1,
             absl::StrCat(directory_, "/db", stopped.index + 1), true);
    if (goes_on == GoesOn::kWhileTheNextOpens) {
      for (uint64_t i = random_.Below(50'000); i > 0; --i) {
        std::this_thread::yield();
      }
      kill(stopped.pid, SIGCONT);
    }
    ALPHEUS_RETURN_IF_ERROR(AwaitPuts(next, 0));
    if (goes_on == GoesOn::kWhenItHasWritten) {
      ALPHEUS_RETURN_IF_ERROR(AwaitPuts(next, 1 + random_.Below(kPutsMax)));
    }
    if (goes_on != GoesOn::kWhileTheNextOpens) kill(stopped.pid, SIGCONT);
    ALPHEUS_RETURN_IF_ERROR(MustExit(stopped, testing::kWasFenced));
    totals_.puts += notes_[stopped.index].puts.load();
    ALPHEUS_RETURN_IF_ERROR(CheckTold(stopped, next));
    // All that the next one needs is in its own directory.
    std::filesystem::remove_all(stopped.database);
    running_ = next;
    return AwaitPuts(next, notes_[next.index].puts.load() + 1);
  }

  // Checks that the next process found all that the stopped one was told to be
  // durable.
  absl::Status CheckTold(const Process& stopped, const Process& next) {
    for (int thread = 0; thread < testing::kFailoverThreads; ++thread) {
      const uint64_t told = notes_[stopped.index].threads[thread].synced.load();
      const uint64_t first = notes_[next.index].threads[thread].first.load();
      if (told < first) continue;
      return absl::DataLossError(absl::StrCat(
          "process ", stopped.index, " was told that put ", told, " of thread ",
          thread, " is durable, the next one found none from ", first, " on"));
    }
    return absl::OkStatus();
  }

  demo::Cluster& cluster_;
  const std::string directory_;
  const std::span<ProcessNotes> notes_;
  Random random_;
  Process running_;
  Totals totals_;
};

absl::StatusOr<std::unique_ptr<demo::Cluster>> MakeCluster(
    const std::string& directory) {
  demo::ClusterOptions options;
  options.alpheus = ALPHEUS_BINARY;
  options.alpheusd = ALPHEUSD_BINARY;
  options.directory = directory;
  options.node_count = kNodes;
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<demo::Cluster> cluster,
                           demo::Cluster::Create(options));
  ALPHEUS_RETURN_IF_ERROR(cluster->StartAll());
  ALPHEUS_RETURN_IF_ERROR(
      cluster->MustSucceed("format", {"--size", "2MiB"}).status());
  return cluster;
}

absl::Status RunAll(int rounds, uint64_t seed, int* done, Totals* totals) {
  const size_t count = static_cast<size_t>(rounds) + 2;
  void* shared =
      mmap(nullptr, count * sizeof(ProcessNotes), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return absl::UnavailableError("mmap");
  auto* notes = new (shared) ProcessNotes[count];
  const testing::TempDirectory directory;
  ALPHEUS_ASSIGN_OR_RETURN(const std::unique_ptr<demo::Cluster> cluster,
                           MakeCluster(directory.path()));
  Rounds all(*cluster, directory.path(), {notes, count}, seed);
  absl::Status run = all.Start();
  for (; run.ok() && *done < rounds; ++*done) run = all.RunRound();
  if (run.ok()) run = all.End();
  *totals = all.totals();
  if (run.ok()) return cluster->CheckHealth();
  return absl::Status(run.code(),
                      absl::StrCat(run.message(), "\n", cluster->Story()));
}

int Main(int rounds, uint64_t seed) {
  int done = 0;
  Totals totals;
  const absl::Status run = RunAll(rounds, seed, &done, &totals);
  if (!run.ok()) {
    std::cerr << "round " << done << " of seed " << seed << ": "
              << run.ToString() << "\n";
    return 1;
  }
  std::cout << done << " of " << rounds << " rounds of seed " << seed
            << " with nothing lost and nothing invented: " << totals.stopped
            << " stopped, of which each was fenced, " << totals.killed
            << " killed; " << totals.puts << " puts\n";
  return 0;
}

}  // namespace
}  // namespace alpheus::wal

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rocksdb_failover_rounds ROUNDS SEED\n";
    return 2;
  }
  return alpheus::wal::Main(std::atoi(argv[1]),
                            std::strtoull(argv[2], nullptr, 10));
}
