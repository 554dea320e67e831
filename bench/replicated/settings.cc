// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/scenarios/scenarios.h"

namespace alpheus::bench::replicated {

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 7;
  s.ring_bytes = 64 << 20;
  s.sizes = {64, 256, 1024, 4096, 16384};
  s.backups = {1, 2};
  s.warm_up_ops = 2'000;
  s.spin_ops = 20'000;
  s.block_ops = 3'000;
  s.peer_sizes = {64, 1024};
  s.peer_quorums = {2, 3};
  s.recovery_mib = {16, 64, 256};
  s.many_backups = {0, 1, 2, 3, 4, 5};
  s.many_sizes = {64, 1024, 4096};
  s.order_sizes = {64, 256, 1024, 4096, 16384};
  s.place_sizes = {64, 1024};
  s.exposure_threads = {1, 4, 16};
  s.exposure_ops = 64'000;
  s.tenants = {1, 4, 16};
  s.tenant_ops = 32'000;
  s.resync_mib = 256;
  s.resync_sizes = {64, 1024};
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 5;
  s.ring_bytes = 16 << 20;
  s.warm_up_ops = 500;
  s.spin_ops = 5'000;
  s.block_ops = 500;
  s.peer_sizes = {64};
  s.peer_quorums = {2};
  s.recovery_mib = {256};
  s.many_sizes = {64};
  s.order_sizes = {64, 4096};
  s.place_sizes = {64};
  s.exposure_ops = 16'000;
  s.tenant_ops = 8'000;
  s.resync_sizes = {64};
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  s.ring_bytes = 2 << 20;
  s.sizes = {64, 16384};
  s.warm_up_ops = 2;
  s.spin_ops = 50;
  s.block_ops = 20;
  s.recovery_mib = {2};
  s.many_backups = {0, 1, 3};
  s.exposure_threads = {1, 4};
  s.exposure_ops = 2'000;
  s.tenants = {1, 4};
  s.tenant_ops = 80;
  s.resync_mib = 2;
  return s;
}

}  // namespace alpheus::bench::replicated
