// SPDX-License-Identifier: Apache-2.0
#include "bench/failover/scenarios.h"

namespace alpheus::bench::failover {

Settings FullSettings() {
  Settings s;
  s.preset = "full";
  s.rounds = 100;
  s.log_mib = 64;
  s.peer_rounds = 20;
  s.other_mib = {16, 256, 1024};
  s.other_rounds = 20;
  return s;
}

Settings QuickSettings() {
  Settings s = FullSettings();
  s.preset = "quick";
  s.rounds = 20;
  s.peer_rounds = 5;
  s.other_rounds = 5;
  return s;
}

Settings TinySettings() {
  Settings s = QuickSettings();
  s.preset = "tiny";
  s.rounds = 2;
  s.log_mib = 2;
  s.peer_rounds = 1;
  s.other_mib = {4};
  s.other_rounds = 1;
  return s;
}

}  // namespace alpheus::bench::failover
