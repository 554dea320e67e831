// SPDX-License-Identifier: Apache-2.0
// rows: what is appended by: the 72 rows of the tables, and beside those with
// an atomic WRITE the estimate that the taxonomy used for them.
//
// Idea: no adapter of the taxonomy's time had atomic WRITE. It ran READ, WRITE,
// READ in a row in its place: the time is near, the order isn't kept (§4.2).
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
  // "mhp,on,dram,singleton,write", as `alpheus plan --all` has it; of an
  // estimate ",estimate" behind.
  std::string name;
  Platform platform;
  std::vector<Step> steps;
};

// All rows, each estimate behind its row.
std::vector<BenchRow> BenchRows();

}  // namespace alpheus::bench::remotelog

#endif  // ALPHEUS_BENCH_REMOTELOG_ROWS_H_
