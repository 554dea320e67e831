// SPDX-License-Identifier: Apache-2.0
// rows: the ways of appending: the 72 rows of the tables, and for each with an
// atomic WRITE the taxonomy's estimate.
//
// Idea: no adapter of the taxonomy's time had atomic WRITE. It ran READ, WRITE,
// READ in a row in its place: the time is close, the order isn't kept (§4.2).
// So such a row has a second entry, which is labelled wherever it is shown.
//
// Thread safety: pure functions.
// References: remote persistence taxonomy Tables 2 and 3, §4.2.
#ifndef ALPHEUS_BENCH_REMOTELOG_ROWS_H_
#define ALPHEUS_BENCH_REMOTELOG_ROWS_H_

#include <string>
#include <vector>

#include "replication/persist/platform/method.h"
#include "replication/persist/platform/method_table.h"
#include "replication/persist/platform/platform.h"

namespace alpheus::bench::remotelog {

struct BenchRow {
  // Name such as "mhp,on,dram,singleton,write", as in `alpheus plan --all`; an
  // estimate has ",estimate" at the end.
  std::string name;
  replication::Platform platform;
  std::vector<replication::Step> steps;
};

// Returns all rows, each estimate after its row.
std::vector<BenchRow> BenchRows();

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_ROWS_H_
