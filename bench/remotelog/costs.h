// SPDX-License-Identifier: Apache-2.0
// costs: the cost of each part of a remote append, and its source.
//
// Idea: no cost belongs to a row of the tables. Each belongs to a part (a store
// into the adapter, a way over PCIe, a fence), and the time of an append
// follows from its steps (append_world.h). None was fitted to the findings that
// the benchmark is compared with. `origin` tells how well each is founded, and
// the benchmark varies all of them by 30 %, which shows what depends on a
// guess.
//
// Thread safety: values and constants.
// References: docs/design/remote_persistence.md, "The cost model"; remote
// persistence taxonomy §4.2 (its hardware).
#ifndef ALPHEUS_BENCH_REMOTELOG_COSTS_H_
#define ALPHEUS_BENCH_REMOTELOG_COSTS_H_

#include <cstdint>
#include <span>

namespace alpheus::bench::remotelog {

// Costs in nanoseconds, unless stated. Constants describes each with its
// source.
struct Costs {
  double post = 80;
  double post_block = 95;
  double pcie = 140;
  double adapter_gap = 30;
  double wire = 275;
  double network_switch = 90;
  double gigabits = 100;
  double header_bytes = 42;
  double inline_bytes = 220;
  double root_complex = 240;
  double without_ddio = 70;
  double poll = 60;
  double handle = 50;
  double load_cache = 20;
  double load_memory = 90;
  double flush_line = 5;
  double fence = 100;
  double post_receive = 60;
  double apply = 120;
  double trim = 250;
  double trim_records = 16;
};

enum class Origin : uint8_t {
  kPaper,      // the taxonomy's text says so
  kPublished,  // a datasheet, a format, or a measurement of others
  kOwn,        // measured with this project
  kAssumed,    // a guess
};
const char* OriginName(Origin origin);

struct Constant {
  const char* name;
  double Costs::* value;
  const char* unit;
  Origin origin;
  const char* what;
  const char* source;
};

// Returns one constant for each member of Costs, in their order.
std::span<const Constant> Constants();

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_COSTS_H_
