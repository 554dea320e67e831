// SPDX-License-Identifier: Apache-2.0
// member_lists: the cluster files of a simulated cluster: each machine's list
// of members.
//
// Idea: a process knows the members only from its machine's file at its start.
// Operators write lists, and give them to one machine after the other. A
// machine may have an old list, or one that the log does not have yet.
//
// Thread safety: one thread.
// References: docs/design/recovery.md, "Changing the members";
// quorum/cluster/cluster_file.h.
#ifndef ALPHEUS_TOOLS_SIM_ACTORS_MEMBER_LISTS_H_
#define ALPHEUS_TOOLS_SIM_ACTORS_MEMBER_LISTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "log/base/ids.h"
#include "quorum/arithmetic/quorum.h"

namespace alpheus::sim {

struct MemberList {
  uint64_t id = 1;            // configuration_id
  std::vector<int> machines;  // in order
  uint32_t write_quorum = 1;

  bool Has(int machine) const {
    return std::ranges::find(machines, machine) != machines.end();
  }
  quorum::QuorumSizes sizes() const;
  std::vector<NodeId> nodes() const;
  std::string ToString() const;
};

class MemberLists {
 public:
  // Starts with this list on all machines.
  MemberLists(MemberList first, size_t machines)
      : lists_{std::move(first)}, files_(machines, 0) {}

  // Returns the number of lists, which are numbered as they are written.
  size_t count() const { return lists_.size(); }
  const MemberList& list(size_t number) const { return lists_[number]; }
  size_t Write(MemberList list) {
    lists_.push_back(std::move(list));
    return lists_.size() - 1;
  }
  const MemberList& of(int machine) const {
    return lists_[files_[static_cast<size_t>(machine)]];
  }
  void Give(int machine, size_t number) {
    files_[static_cast<size_t>(machine)] = number;
  }
  bool Has(int machine, size_t number) const {
    return files_[static_cast<size_t>(machine)] == number;
  }

 private:
  std::vector<MemberList> lists_;
  std::vector<size_t> files_;  // by machine
};

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_ACTORS_MEMBER_LISTS_H_
