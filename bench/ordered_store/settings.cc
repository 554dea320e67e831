// SPDX-License-Identifier: Apache-2.0
#include "bench/ordered_store/scenarios.h"

namespace alpheus::bench::ordered_store {

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 7;
  s.ring_bytes = 64 << 20;
  // Far more than the caches hold.
  s.keys = 1 << 20;
  s.threads = {1, 2, 4, 8, 16};
  // Short, so that some of them are not disturbed on a shared machine.
  s.slice_ns = 5'000'000;
  s.slices = 8;
  s.commit_ops = 20'000;
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 5;
  s.ring_bytes = 16 << 20;
  s.keys = 1 << 17;
  s.threads = {1, 2, 4, 8};
  s.slices = 4;
  s.commit_ops = 5'000;
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  s.ring_bytes = 2 << 20;
  s.keys = 1 << 10;
  s.slice_ns = 100'000;
  s.slices = 1;
  s.commit_ops = 500;
  return s;
}

}  // namespace alpheus::bench::ordered_store
