// SPDX-License-Identifier: Apache-2.0
// Kills a process that writes to RocksDB on the plugin, at random moments, and
// looks at what the next one finds.
//
// usage: rocksdb_kill_rounds ROUNDS SEED
//
// Each thread of the writer puts numbered batches, some of them synced, and
// notes in memory that outlives it which it tried and which were acknowledged.
// The next process must find, of each thread, all batches up to some number and
// none behind it (no hole), and that number between the last that was
// acknowledged as synced and the last that was tried.
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "api/rocksdb/fs/wal_file_system.h"
#include "log/base/random.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/write_batch.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::wal {
namespace {

constexpr int kThreads = 3;
constexpr uint64_t kKeys = 40;  // of each thread
constexpr uint64_t kSyncEvery = 4;

struct Noted {
  struct OfThread {
    std::atomic<uint64_t> tried{0};
    std::atomic<uint64_t> synced{0};
  };
  std::array<OfThread, kThreads> threads;
  std::atomic<uint64_t> puts{0};  // in this round
};

std::string KeyOf(int thread, uint64_t number) {
  return "t" + std::to_string(thread) + ":" + std::to_string(number % kKeys);
}
std::string LastKeyOf(int thread) {
  return "t" + std::to_string(thread) + ":last";
}
// Some 300 bytes that belong to the number.
std::string ValueOf(uint64_t number) {
  std::string value;
  while (value.size() < 300) value += std::to_string(number) + " ";
  return value;
}

class Writer {
 public:
  Writer(const std::string& directory, int round, Noted& noted)
      : noted_(noted), path_(directory + "/db") {
    WalOptions wal;
    wal.log.path = directory + "/wal";
    wal.create_bytes = 2 << 20;
    wal.stall_ms = 600'000;
    env_ = rocksdb::NewCompositeEnv(
        std::make_shared<WalFileSystem>(wal, rocksdb::FileSystem::Default()));
    options_.env = env_.get();
    options_.create_if_missing = true;
    options_.write_buffer_size = 128 << 10;
    options_.recycle_log_file_num = round % 3 == 0 ? 2 : 0;
    options_.two_write_queues = round % 4 == 1;
    options_.avoid_flush_during_recovery = round % 5 == 2;
    options_.track_and_verify_wals_in_manifest = round % 2 == 1;
  }

  bool Open() {
    rocksdb::DB* db = nullptr;
    const rocksdb::Status opened = rocksdb::DB::Open(options_, path_, &db);
    db_.reset(db);
    if (!opened.ok()) std::cerr << "open: " << opened.ToString() << "\n";
    return opened.ok();
  }

  bool Verify() {
    for (int thread = 0; thread < kThreads; ++thread) {
      if (!VerifyThread(thread)) return false;
    }
    return true;
  }

  void WriteForEver() {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([this, thread] {
        for (uint64_t number = found_[thread] + 1; Put(thread, number);) {
          ++number;
        }
      });
    }
  }

 private:
  std::string Get(const std::string& key) {
    std::string value;
    const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), key, &value);
    return got.ok() ? value : got.ToString();
  }

  bool VerifyThread(int thread) {
    const Noted::OfThread& noted = noted_.threads[thread];
    const std::string last = Get(LastKeyOf(thread));
    const uint64_t found = std::strtoull(last.c_str(), nullptr, 10);
    found_[thread] = found;
    if (found < noted.synced.load() || found > noted.tried.load()) {
      std::cerr << "thread " << thread << ": found " << last << ", synced "
                << noted.synced.load() << ", tried " << noted.tried.load()
                << "\n";
      return false;
    }
    for (uint64_t number = found < kKeys ? 1 : found - kKeys + 1;
         number <= found; ++number) {
      if (Get(KeyOf(thread, number)) != ValueOf(number)) {
        std::cerr << "thread " << thread << ": last is " << found << ", but "
                  << number << " is " << Get(KeyOf(thread, number)) << "\n";
        return false;
      }
    }
    return true;
  }

  bool Put(int thread, uint64_t number) {
    Noted::OfThread& noted = noted_.threads[thread];
    rocksdb::WriteBatch batch;
    if (!batch.Put(KeyOf(thread, number), ValueOf(number)).ok() ||
        !batch.Put(LastKeyOf(thread), std::to_string(number)).ok()) {
      return false;
    }
    rocksdb::WriteOptions options;
    options.sync = number % kSyncEvery == 0;
    noted.tried.store(number);
    const rocksdb::Status put = db_->Write(options, &batch);
    if (!put.ok()) {
      std::cerr << "put: " << put.ToString() << "\n";
      return false;
    }
    if (options.sync) noted.synced.store(number);
    noted_.puts.fetch_add(1);
    return true;
  }

  Noted& noted_;
  const std::string path_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
  std::array<uint64_t, kThreads> found_{};
};

// Runs in the child; its exit status says what went wrong.
[[noreturn]] void RunWriter(const std::string& directory, int round, bool write,
                            Noted& noted) {
  {
    Writer writer(directory, round, noted);
    if (!writer.Open() || !writer.Verify()) _exit(1);
    if (write) {
      writer.WriteForEver();
      _exit(2);  // it only ends by an error
    }
  }
  _exit(0);
}

// Returns when the child has put so many, or has ended.
void WaitForPuts(pid_t child, uint64_t puts, const Noted& noted, int* status,
                 bool* ended) {
  while (noted.puts.load() < puts && !*ended) {
    *ended = waitpid(child, status, WNOHANG) == child;
    std::this_thread::yield();
  }
}

bool RunRound(const std::string& directory, int round, RandomSource& random,
              Noted& noted) {
  noted.puts.store(0);
  const pid_t child = fork();
  if (child == 0) RunWriter(directory, round, true, noted);
  int status = 0;
  bool ended = false;
  // One in eight while it opens, or soon after.
  if (random.Below(8) == 0) {
    for (uint64_t turns = random.Below(20'000); turns > 0; --turns) {
      std::this_thread::yield();
    }
  } else {
    WaitForPuts(child, 1 + random.Below(3'000), noted, &status, &ended);
  }
  if (!ended) {
    kill(child, SIGKILL);
    ended = waitpid(child, &status, 0) == child;
  }
  return ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool RunLast(const std::string& directory, int round, Noted& noted) {
  const pid_t child = fork();
  if (child == 0) RunWriter(directory, round, false, noted);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

int Run(int rounds, uint64_t seed) {
  void* shared = mmap(nullptr, sizeof(Noted), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* noted = new (shared) Noted;
  Random random(seed);
  const testing::TempDirectory directory;
  uint64_t puts = 0;
  for (int round = 0; round < rounds; ++round) {
    if (!RunRound(directory.path(), round, random, *noted)) {
      std::cerr << "round " << round << " of seed " << seed << " failed\n";
      return 1;
    }
    puts += noted->puts.load();
  }
  if (!RunLast(directory.path(), rounds, *noted)) return 1;
  std::cout << rounds << " of " << rounds << " rounds with nothing lost, "
            << puts << " puts\n";
  return 0;
}

}  // namespace
}  // namespace alpheus::wal

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: rocksdb_kill_rounds ROUNDS SEED\n";
    return 2;
  }
  return alpheus::wal::Run(std::atoi(argv[1]),
                           std::strtoull(argv[2], nullptr, 10));
}
