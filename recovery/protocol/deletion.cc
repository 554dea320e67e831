// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/deletion.h"

#include <algorithm>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace alpheus::recovery {
namespace {

constexpr char kDeletedPayload[] = "alpheus/deleted";

}  // namespace

uint32_t OpeningQuorumOf(const MemberList& list) {
  return std::max(list.replica_count - list.write_quorum + 1,
                  list.write_quorum);
}

std::optional<Configuration> ListOfQuorum(
    std::span<const DeletionWitness> replicas) {
  const Configuration* found = nullptr;
  for (const DeletionWitness& witness : replicas) {
    const Configuration& list = witness.state.configuration;
    const auto count =
        std::ranges::count_if(replicas, [&](const DeletionWitness& other) {
          const bool has_list = other.state.configuration == list;
          return has_list && Names(list, other.replica);
        });
    if (static_cast<uint32_t>(count) < OpeningQuorumOf(list)) continue;
    if (found == nullptr || found->id < list.id) found = &list;
  }
  if (found == nullptr) return std::nullopt;
  return *found;
}

bool IsDecided(std::span<const DeletionWitness> replicas) {
  std::vector<DeletionWitness> marked;
  for (const DeletionWitness& witness : replicas) {
    if (witness.state.deletion == Deletion::kNone) continue;
    marked.push_back(witness);
  }
  return ListOfQuorum(marked).has_value();
}

absl::Status DeletedError(const std::string& replica, Deletion deletion) {
  const bool is_decided = deletion == Deletion::kDecided;
  absl::Status deleted = absl::NotFoundError(absl::StrCat(
      replica,
      is_decided
          ? ": the log was deleted. A log of this name can't be made again in "
            "this cluster; give a new one another name"
          : ": this replica is marked as deleted, and promises and shows "
            "nothing any more. `alpheus delete-log` completes the deletion"));
  deleted.SetPayload(kDeletedPayload,
                     absl::Cord(is_decided ? "decided" : "marked"));
  return deleted;
}

Deletion DeletionBy(const absl::Status& status) {
  const auto payload = status.GetPayload(kDeletedPayload);
  if (!payload.has_value()) return Deletion::kNone;
  return *payload == "decided" ? Deletion::kDecided : Deletion::kMarked;
}

}  // namespace alpheus::recovery
