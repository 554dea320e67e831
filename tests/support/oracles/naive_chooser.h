// SPDX-License-Identifier: Apache-2.0
// naive_chooser: the choice of protocol P-A4.4 a second time, as its text says
// it, in sets and maps.
//
// Shares nothing with recovery/: where the two differ, one of them or the text
// is wrong. LSNs are 1, 2, 3...; a record's identity is (epoch, LSN, variant).
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_CHOOSER_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_CHOOSER_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace alpheus::testing::naive {

// A replica's verdict for one LSN: (h)ave, (t)orn, (a)bsent, (c)orrupt,
// (u)nknown.
struct Cell {
  char verdict = 'a';
  int epoch = 0;    // of a have
  int variant = 0;  // of a have; another one is another record

  bool operator==(const Cell&) const = default;
};

struct Reply {
  int node = 0;
  int log_epoch = 0;
  std::vector<std::pair<int, int>> table;  // epoch, first LSN
  int head = 1;
  bool blank = false;
  bool suspect = false;
  bool repairing = false;
  std::vector<Cell> cells;  // of LSN 1, 2, ...; absent behind
};

struct Choice {
  char outcome = 'w';  // (c)hosen, (w)ait, (e)rror
  int head = 1;
  int end = 0;                         // last LSN that is kept
  std::vector<std::set<int>> holders;  // from head to end, nodes
  std::vector<int> epochs;             // from head to end
  std::set<int> nacks;                 // of end + 1, nodes
};

// The epoch that owns `lsn` in a table; 0 if none does.
int OwnerOf(const std::vector<std::pair<int, int>>& table, int lsn);

Choice Choose(int n, int w, int r, const std::vector<Reply>& replies);

}  // namespace alpheus::testing::naive

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_NAIVE_CHOOSER_H_
