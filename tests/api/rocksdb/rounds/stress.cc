// SPDX-License-Identifier: Apache-2.0
// Random batches, flushes, compactions, snapshots, iterators, checkpoints and
// reopenings of a RocksDB on the plugin, in processes that are killed or close
// it.
//
// usage: rocksdb_stress ROUNDS SEED
//
// A round is a process. It notes in a file beside the database which batches it
// tried and which it was told to be durable, before and after each write; so
// when it is killed both bounds are known. Options of RocksDB are drawn for
// each opening. stress_model.h says what must be there.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/rocksdb/fs/wal_file_system.h"
#include "log/base/random.h"
#include "rocksdb/env.h"
#include "rocksdb/utilities/checkpoint.h"
#include "tests/api/rocksdb/rounds/stress_database.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

using rocksdb::Status;
using testing::StressBounds;
using testing::StressDatabase;
using testing::StressModel;

constexpr int kThreads = 3;
constexpr uint64_t kBatchesMax = 4'000;  // of all threads, until it is killed

// The content of the file of the expected state.
struct Expected {
  struct OfThread {
    std::atomic<uint64_t> tried{0};
    std::atomic<uint64_t> synced{0};
  };
  std::array<OfThread, kThreads> threads;
  std::atomic<uint64_t> batches{0};  // of this process
  std::atomic<uint64_t> all_batches{0};
  std::atomic<uint64_t> checkpoints{0};
  std::atomic<uint64_t> snapshots{0};
};

Expected* MapExpected(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Expected)) != 0) return nullptr;
  void* mapped = mmap(nullptr, sizeof(Expected), PROT_READ | PROT_WRITE,
                      MAP_SHARED, fd, 0);
  close(fd);
  // Zeroes are what it begins with.
  return mapped == MAP_FAILED ? nullptr : static_cast<Expected*>(mapped);
}

class Stress {
 public:
  Stress(const std::string& directory, uint64_t seed, uint64_t round,
         Expected& expected)
      : directory_(directory),
        seed_(seed),
        round_(round),
        expected_(expected),
        options_(StressDatabase::DrawOptions(seed * 1'000'003 + round)) {
    WalOptions wal;
    wal.log.path = directory + "/wal";
    wal.create_bytes = 4 << 20;
    wal.stall_ms = 600'000;
    env_ = rocksdb::NewCompositeEnv(
        std::make_shared<WalFileSystem>(wal, rocksdb::FileSystem::Default()));
    options_.env = env_.get();
  }

  // Opens, compares, writes `batches` more in all threads, and closes.
  bool RunOnce(uint64_t batches) {
    const Status opened = database_.Open(options_, directory_ + "/db");
    if (!opened.ok()) {
      std::cerr << "open: " << opened.ToString() << "\n";
      return false;
    }
    models_ = database_.Verify(seed_, Bounds());
    if (models_.empty()) return false;
    std::atomic<bool> all_well{true};
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([this, thread, batches, &all_well] {
          for (uint64_t i = 0; i < batches && all_well; ++i) {
            if (!Step(thread)) all_well = false;
          }
          DropSnapshot(thread);
        });
      }
    }
    if (!all_well) return false;
    // Nothing that was acknowledged is only in a buffer then.
    const Status flushed = database_.db().FlushWAL(/*sync=*/true);
    if (!flushed.ok()) {
      std::cerr << "flush of the WAL: " << flushed.ToString() << "\n";
      return false;
    }
    for (Expected::OfThread& thread : expected_.threads) {
      thread.synced.store(thread.tried.load());
    }
    database_.Close();
    return true;
  }

 private:
  struct Held {
    const rocksdb::Snapshot* snapshot = nullptr;
    std::optional<StressModel> model;
  };

  std::vector<StressBounds> Bounds() const {
    std::vector<StressBounds> bounds;
    for (const Expected::OfThread& thread : expected_.threads) {
      bounds.push_back({thread.synced.load(), thread.tried.load()});
    }
    return bounds;
  }

  bool Step(int thread) {
    StressModel& model = models_[static_cast<size_t>(thread)];
    const uint64_t number = model.number() + 1;
    // Sync and action are drawn apart from the batch: they may depend on
    // the moment of the crash.
    Random random(seed_ ^ (round_ << 32) ^ (number * kThreads) ^
                  static_cast<uint64_t>(thread));
    Expected::OfThread& expected = expected_.threads[thread];
    const bool sync = random.Below(5) == 0;
    expected.tried.store(number);
    const Status written =
        database_.Write(testing::StressBatch(seed_, thread, number), sync);
    if (!written.ok()) {
      std::cerr << "write: " << written.ToString() << "\n";
      return false;
    }
    if (sync) expected.synced.store(number);
    model.AdvanceTo(number);
    ++expected_.batches;
    ++expected_.all_batches;
    return DoMore(thread, random.Below(2'000));
  }

  // Takes the rare action of this number, if it has one.
  bool DoMore(int thread, uint64_t what) {
    const StressModel& model = models_[static_cast<size_t>(thread)];
    if (what < 60) return database_.IsAsIn(model, thread, nullptr);
    if (what < 90) return TakeSnapshot(thread);
    if (what < 120) return LookAtSnapshot(thread);
    rocksdb::DB& db = database_.db();
    Status status;
    if (what < 126) {
      status = db.Flush(rocksdb::FlushOptions(),
                        database_.family(what % testing::kStressFamilies));
    } else if (what < 128) {
      status = db.CompactRange(rocksdb::CompactRangeOptions(),
                               database_.family(what % 2), nullptr, nullptr);
    } else if (what < 132) {
      const uint64_t number = model.number();
      status = db.FlushWAL(/*sync=*/true);
      if (status.ok()) expected_.threads[thread].synced.store(number);
    } else if (what < 134) {
      return Checkpoint(thread);
    }
    if (!status.ok()) std::cerr << what << ": " << status.ToString() << "\n";
    return status.ok();
  }

  bool TakeSnapshot(int thread) {
    DropSnapshot(thread);
    held_[thread] = {database_.db().GetSnapshot(),
                     models_[static_cast<size_t>(thread)]};
    return true;
  }
  bool LookAtSnapshot(int thread) {
    const Held& held = held_[thread];
    if (held.snapshot == nullptr) return true;
    ++expected_.snapshots;
    return database_.IsAsIn(*held.model, thread, held.snapshot);
  }
  void DropSnapshot(int thread) {
    Held& held = held_[thread];
    if (held.snapshot != nullptr) database_.db().ReleaseSnapshot(held.snapshot);
    held = {};
  }

  // With the WAL as plain files, opened without the plugin while the database
  // goes on.
  bool Checkpoint(int thread) {
    rocksdb::Checkpoint* raw = nullptr;
    Status status = rocksdb::Checkpoint::Create(&database_.db(), &raw);
    const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
    const std::string path =
        directory_ + "/checkpoint" + std::to_string(thread);
    std::filesystem::remove_all(path);  // of a process that was killed
    std::vector<StressBounds> bounds = Bounds();
    if (status.ok()) status = checkpoint->CreateCheckpoint(path, 1 << 30);
    for (int i = 0; i < kThreads; ++i) {
      bounds[i].tried = expected_.threads[i].tried.load();
    }
    rocksdb::Options options = options_;
    options.env = rocksdb::Env::Default();
    StressDatabase copy;
    if (status.ok()) status = copy.Open(options, path);
    if (!status.ok()) {
      std::cerr << "checkpoint: " << status.ToString() << "\n";
      return false;
    }
    if (copy.Verify(seed_, bounds).empty()) {
      std::cerr << "that was a checkpoint\n";
      return false;
    }
    copy.Close();
    std::filesystem::remove_all(path);
    ++expected_.checkpoints;
    return true;
  }

  const std::string directory_;
  const uint64_t seed_;
  const uint64_t round_;
  Expected& expected_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::Env> env_;
  StressDatabase database_;
  std::vector<StressModel> models_;  // of each thread
  std::array<Held, kThreads> held_;
};

// In the child.
int RunChild(const std::string& directory, uint64_t seed, uint64_t round,
             bool is_killed, Expected& expected) {
  Random random(seed + round);
  Stress stress(directory, seed, round, expected);
  // A child that is not killed opens the database twice, by the same
  // environment.
  for (int i = 0; i < (is_killed ? 1'000'000 : 2); ++i) {
    if (!stress.RunOnce(random.Below(kBatchesMax / kThreads))) return 1;
  }
  return 0;
}

bool RunRound(const std::string& directory, uint64_t seed, uint64_t round,
              RandomSource& random, Expected& expected) {
  expected.batches.store(0);
  const bool is_killed = random.Below(4) != 0;
  const pid_t starter = getpid();
  const pid_t child = fork();
  if (child == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != starter) _exit(1);
    _exit(RunChild(directory, seed, round, is_killed, expected));
  }
  int status = 0;
  if (!is_killed) {
    return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
  }
  // One in six while it opens, or soon after.
  const bool is_early = random.Below(6) == 0;
  const uint64_t batches = is_early ? 0 : 1 + random.Below(kBatchesMax);
  for (uint64_t turns = is_early ? random.Below(20'000) : 0; turns > 0;
       --turns) {
    std::this_thread::yield();
  }
  while (expected.batches.load() < batches) {
    if (waitpid(child, &status, WNOHANG) == child) return false;
    std::this_thread::yield();
  }
  kill(child, SIGKILL);
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
         WTERMSIG(status) == SIGKILL;
}

int Run(uint64_t rounds, uint64_t seed) {
  const testing::TempDirectory directory;
  Expected* expected = MapExpected(directory.File("expected"));
  if (expected == nullptr) {
    std::cerr << "the file of the expected state can't be made\n";
    return 1;
  }
  Random random(seed);
  for (uint64_t round = 0; round < rounds; ++round) {
    if (!RunRound(directory.path(), seed, round, random, *expected)) {
      std::cerr << "round " << round << " of seed " << seed << " failed\n";
      return 1;
    }
  }
  std::cout << rounds << " of " << rounds << " rounds of seed " << seed
            << " as expected: " << expected->all_batches.load() << " batches, "
            << expected->checkpoints.load() << " checkpoints, "
            << expected->snapshots.load() << " looks at snapshots\n";
  return 0;
}

}  // namespace
}  // namespace alpheus::wal

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rocksdb_stress ROUNDS SEED\n";
    return 2;
  }
  return alpheus::wal::Run(std::strtoull(argv[1], nullptr, 10),
                           std::strtoull(argv[2], nullptr, 10));
}
