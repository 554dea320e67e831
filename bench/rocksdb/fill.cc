// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/fill.h"

#include <array>
#include <string_view>

#include "bench/harness/clock.h"
#include "bench/harness/workers.h"
#include "log/base/random.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::wal {
namespace {

// How often a thread looks whether its time is over.
constexpr uint64_t kPutsPerLook = 16;

using Key = std::array<char, kKeyBytes>;

void Store64BigEndian(uint64_t value, char* out) {
  for (int i = 7; i >= 0; --i) {
    out[i] = static_cast<char>(value);
    value >>= 8;
  }
}

// The keys of one thread; no other thread has any of them.
class Keys {
 public:
  Keys(bool is_random, int worker)
      : is_random_(is_random),
        worker_(static_cast<uint64_t>(worker)),
        random_(worker_) {}

  std::string_view Next() {
    Store64BigEndian(is_random_ ? random_.Next() : worker_, key_.data());
    Store64BigEndian(worker_ << 48 | count_++, key_.data() + 8);
    return {key_.data(), key_.size()};
  }

 private:
  const bool is_random_;
  const uint64_t worker_;
  Random random_;
  uint64_t count_ = 0;
  Key key_{};
};

struct Worker {
  Keys keys;
  std::vector<double> put_ns;
};

absl::Status PutAll(Database& database, const Fill& fill,
                    const std::string& value, uint64_t puts, Worker& worker) {
  worker.put_ns.clear();
  worker.put_ns.reserve(puts);
  const int64_t end = NowNanos() + fill.duration_ns_max;
  int64_t last = NowNanos();
  for (uint64_t i = 0; i < puts; ++i) {
    ALPHEUS_RETURN_IF_ERROR(
        database.Put(fill.with_sync, worker.keys.Next(), value));
    const int64_t now = NowNanos();
    worker.put_ns.push_back(static_cast<double>(now - last));
    last = now;
    if (i % kPutsPerLook == 0 && now >= end) break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FillTimes> RunFill(Database& database, const Fill& fill) {
  const std::string value(fill.value_bytes, 'v');
  std::vector<Worker> workers;
  for (int i = 0; i < fill.threads; ++i) {
    workers.push_back({.keys = Keys(fill.is_random, i), .put_ns = {}});
  }
  const auto threads = static_cast<uint64_t>(fill.threads);
  const auto run = [&](uint64_t puts) {
    // On no core of their own: backups and RocksDB's threads need some, too.
    return RunTogether(fill.threads, /*cores=*/{}, [&](int worker) {
      return PutAll(database, fill, value, (puts + threads - 1) / threads,
                    workers[static_cast<size_t>(worker)]);
    });
  };
  ALPHEUS_RETURN_IF_ERROR(run(fill.warm_up_puts).status());
  FillTimes times;
  ALPHEUS_ASSIGN_OR_RETURN(times.elapsed_ns, run(fill.puts));
  for (const Worker& worker : workers) {
    times.put_ns.insert(times.put_ns.end(), worker.put_ns.begin(),
                        worker.put_ns.end());
  }
  return times;
}

uint64_t WalBytesPerPut(uint64_t value_bytes) {
  return WalBytesOfPut(std::string(kKeyBytes, 'k'),
                       std::string(value_bytes, 'v'));
}

}  // namespace alpheus::bench::wal
