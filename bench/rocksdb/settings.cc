// SPDX-License-Identifier: Apache-2.0
#include "bench/rocksdb/scenarios.h"

namespace alpheus::bench::wal {

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 7;
  s.region_bytes = uint64_t{128} << 20;
  s.backups = {1, 2};
  s.value_bytes = {100, 1024};
  s.threads = {1, 2, 4, 16};
  s.warm_up_puts = 2'000;
  s.puts = 20'000;
  s.turn_ns_max = 400'000'000;
  s.recovery_rounds = 7;
  // The largest fits in the write buffer.
  s.recovery_puts = {10'000, 100'000};
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 5;
  s.region_bytes = uint64_t{64} << 20;
  s.value_bytes = {100};
  s.threads = {1, 2};
  s.warm_up_puts = 500;
  s.puts = 5'000;
  s.turn_ns_max = 100'000'000;
  s.recovery_rounds = 5;
  s.recovery_puts = {20'000};
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  s.region_bytes = uint64_t{16} << 20;
  s.warm_up_puts = 10;
  s.puts = 100;
  s.turn_ns_max = 50'000'000;
  s.recovery_rounds = 1;
  s.recovery_puts = {100};
  return s;
}

}  // namespace alpheus::bench::wal
