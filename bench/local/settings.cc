// SPDX-License-Identifier: Apache-2.0
#include "bench/local/scenarios/scenarios.h"

namespace alpheus::bench {

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 7;
  s.ring_bytes = 64 << 20;
  s.sizes = {64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  s.thread_sizes = {64, 1024};
  s.threads = {1, 2, 4};
  s.batch_ops = 2000;
  // Short, so that some of them are not disturbed on a shared machine.
  s.slice_ns = 5'000'000;
  s.slices = 12;
  // 16, since the paper says what happens there.
  s.policy_threads = {1, 2, 4, 16};
  s.exposure_ops = 200'000;
  s.stage_ops = 20'000;
  s.tenants = 16;
  s.tenant_sizes = s.sizes;
  s.tenant_ring_bytes = 8 << 20;
  s.recovery_mib = {16, 32, 64, 128, 256};
  s.recovery_sizes = {64, 1024, 16384};
  s.opening_mib = {16, 64, 256, 1024};
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 5;
  s.ring_bytes = 16 << 20;
  s.sizes = {64, 256, 1024, 4096, 16384};
  s.slices = 4;
  s.exposure_ops = 50'000;
  s.stage_ops = 5'000;
  s.tenant_sizes = {64, 1024, 16384};
  s.tenant_ring_bytes = 2 << 20;
  s.recovery_mib = {16, 64};
  s.opening_mib = {16, 256};
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  // The smallest that libpmemlog takes.
  s.ring_bytes = 2 << 20;
  s.sizes = {64, 1024};
  s.tenant_sizes = {64, 1024};
  s.batch_ops = 50;
  s.slice_ns = 100'000;
  s.slices = 1;
  s.exposure_ops = 500;
  s.stage_ops = 100;
  s.tenants = 2;
  s.recovery_mib = {2, 4};
  s.opening_mib = {2, 4};
  return s;
}

}  // namespace alpheus::bench
