// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/member_lists.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace alpheus::sim {

quorum::QuorumSizes MemberList::sizes() const {
  return *quorum::MakeQuorumSizes(static_cast<uint32_t>(machines.size()),
                                  write_quorum);
}

std::vector<NodeId> MemberList::nodes() const {
  std::vector<NodeId> nodes;
  for (const int machine : machines) {
    nodes.push_back(NodeId(static_cast<uint64_t>(machine) + 1));
  }
  return nodes;
}

std::string MemberList::ToString() const {
  return absl::StrCat("list ", id, " of machines ",
                      absl::StrJoin(machines, ","), ", W ", write_quorum);
}

}  // namespace alpheus::sim
