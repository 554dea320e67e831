// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracles/naive_chooser.h"

#include <algorithm>

namespace alpheus::testing::naive {
namespace {

// "Blank and suspect replicas answer unknown. A repairing replica answers
// unknown", whatever they hold.
Cell CellAt(const Reply& reply, int lsn) {
  if (reply.blank || reply.suspect || reply.repairing) return {'u', 0, 0};
  if (lsn > static_cast<int>(reply.cells.size())) return {'a', 0, 0};
  return reply.cells[lsn - 1];
}

}  // namespace

int OwnerOf(const std::vector<std::pair<int, int>>& table, int lsn) {
  int owner = 0;
  for (const auto& [epoch, start] : table) {
    if (start <= lsn) owner = epoch;
  }
  return owner;
}

Choice Choose(int n, int w, int r, const std::vector<Reply>& replies) {
  Choice choice;
  std::set<int> nodes;
  std::vector<Reply> fenced;  // that count for R
  const Reply* highest = nullptr;
  for (const Reply& reply : replies) {
    nodes.insert(reply.node);
    if (reply.blank) continue;
    if (highest == nullptr || highest->log_epoch < reply.log_epoch) {
      highest = &reply;
    }
    choice.head = std::max(choice.head, reply.head);
    if (!reply.suspect) fenced.push_back(reply);
  }
  const bool all = static_cast<int>(nodes.size()) == n;
  if (static_cast<int>(fenced.size()) < r) {
    choice.outcome = all ? 'e' : 'w';
    return choice;
  }
  const int e = highest->log_epoch;
  const auto& table = highest->table;
  const int start = table.empty() ? 1 : table.back().second;

  bool other_record = false;
  for (int k = choice.head;; ++k) {
    // P-INV-8: the table's chains are those of variant 0.
    for (const auto& entry : table) {
      if (entry.second == k && other_record) {
        choice.outcome = 'e';
        return choice;
      }
    }
    // "a report with log_epoch = E has it or, for k < start(E), any report
    // has a record whose epoch owns k in E's table"
    std::set<int> holders;
    std::set<std::pair<int, int>> identities;
    std::set<int> nacks;
    for (const Reply& reply : fenced) {
      const Cell cell = CellAt(reply, k);
      const bool has = cell.verdict == 'h';
      const bool owned = has && cell.epoch == OwnerOf(table, k);
      if (has && (reply.log_epoch == e || (k < start && owned))) {
        holders.insert(reply.node);
        identities.insert({cell.epoch, cell.variant});
        if (!owned) identities.insert({-1, -1});  // against its own table
      }
      // "torn, absent, or, from a replica with log_epoch < E, a have whose
      // epoch does not own that LSN in E's table; corrupt and unknown never"
      if (cell.verdict == 't' || cell.verdict == 'a' ||
          (has && reply.log_epoch < e && !owned)) {
        nacks.insert(reply.node);
      }
      // "except that it nacks LSNs from the start of the highest epoch E on if
      // its log_epoch is below E"
      if (reply.repairing && reply.log_epoch < e && k >= start) {
        nacks.insert(reply.node);
      }
      // Beyond the protocol's text: so does one with a broken record there.
      if (cell.verdict == 'c' && reply.log_epoch < e && k >= start) {
        nacks.insert(reply.node);
      }
    }
    if (identities.size() > 1) {
      choice.outcome = 'e';
      return choice;
    }
    if (!holders.empty()) {
      other_record |= identities.begin()->second != 0;
      choice.holders.push_back(holders);
      choice.epochs.push_back(identities.begin()->first);
      continue;
    }
    choice.end = k - 1;
    if (static_cast<int>(nacks.size()) >= n - w + 1) {
      choice.outcome = 'c';
      choice.nacks = nacks;
    } else {
      choice.outcome = all ? 'e' : 'w';
    }
    return choice;
  }
}

}  // namespace alpheus::testing::naive
