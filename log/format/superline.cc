// SPDX-License-Identifier: Apache-2.0
#include "log/format/superline.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"

namespace alpheus {
namespace {

constexpr uint32_t kFlagRepairing = 1;
constexpr uint32_t kDeletionShift = 1;
constexpr uint32_t kDeletionMask = 3;
constexpr uint32_t kVersionMin = 1;

void PutMembers(const MemberList& list, MemberFormat (&to)[kMembersMax]) {
  ALPHEUS_CHECK(list.members.size() <= kMembersMax,
                "members fit the superline");
  for (size_t i = 0; i < list.members.size(); ++i) {
    to[i] = {list.members[i].node.value, list.members[i].incarnation};
  }
}

// Reads a list's members if its sizes are possible.
absl::Status TakeMembers(const MemberFormat (&from)[kMembersMax],
                         MemberList& list) {
  if (!HasPossibleSizes(list)) {
    return absl::DataLossError(
        absl::StrCat("superline: configuration with N=", list.replica_count,
                     " W=", list.write_quorum, " can't be"));
  }
  for (uint32_t i = 0; i < list.replica_count; ++i) {
    list.members.push_back({NodeId(from[i].node), from[i].incarnation});
  }
  return absl::OkStatus();
}

absl::StatusOr<Deletion> DeletionIn(uint32_t flags) {
  const uint32_t word = flags >> kDeletionShift & kDeletionMask;
  const auto deletion = static_cast<Deletion>(word);
  if (deletion == Deletion::kMarked || deletion == Deletion::kDecided) {
    return deletion;
  }
  return absl::DataLossError(
      absl::StrCat("superline: format version ", kDeletionFormatVersion,
                   " with a deletion of ", word, ", expected 1 or 2"));
}

size_t ContentBytesOf(uint32_t version) {
  return version == 1   ? kSuperlineBytesOfVersion1
         : version == 2 ? kSuperlineBytesOfVersion2
                        : sizeof(SuperlineFormat);
}

}  // namespace

bool HasPossibleSizes(const MemberList& list) {
  return list.replica_count >= 1 && list.replica_count <= kMembersMax &&
         list.write_quorum >= 1 && list.write_quorum <= list.replica_count;
}

bool Names(const MemberList& list, const Member& member) {
  const std::vector<Member>& members = list.members;
  return std::find(members.begin(), members.end(), member) != members.end();
}

std::vector<std::byte> EncodeSuperline(const Superline& superline) {
  const Configuration& configuration = superline.configuration;
  SuperlineFormat f{};
  const bool is_marked = superline.deletion != Deletion::kNone;
  f.format_version = is_marked ? kDeletionFormatVersion : kFormatVersion;
  f.flags = (superline.repairing ? kFlagRepairing : 0) |
            static_cast<uint32_t>(superline.deletion) << kDeletionShift;
  f.cluster_id[0] = superline.cluster_id.high;
  f.cluster_id[1] = superline.cluster_id.low;
  f.log_id[0] = superline.log_id.high;
  f.log_id[1] = superline.log_id.low;
  f.node = superline.node.value;
  f.incarnation = superline.incarnation;
  f.region_bytes = superline.region_bytes;
  f.ring_offset = superline.ring_offset;
  f.ring_capacity = superline.ring_capacity;
  f.table_capacity = superline.table_capacity;
  f.promised_epoch = superline.promised_epoch.value;
  f.promised_node = superline.promised_node.value;
  f.promised_incarnation = superline.promised_incarnation;
  f.log_epoch = superline.log_epoch.value;
  f.table_seq = superline.table_seq;
  f.head_lsn = superline.head_lsn.value;
  f.head_offset = superline.head_offset.value;
  f.head_chain = superline.head_chain;
  f.unsafe_shutdown_count = superline.unsafe_shutdown_count;
  f.configuration_id = configuration.id;
  f.replica_count = configuration.replica_count;
  f.write_quorum = configuration.write_quorum;
  PutMembers(configuration, f.members);
  if (const std::optional<MemberList>& from = configuration.made_from) {
    f.from_id = from->id;
    f.from_replica_count = from->replica_count;
    f.from_write_quorum = from->write_quorum;
    PutMembers(*from, f.from_members);
  }
  f.ceiling = superline.ceiling.value;
  std::vector<std::byte> content(sizeof(f));
  std::memcpy(content.data(), &f, sizeof(f));
  return content;
}

uint32_t FormatVersionOf(std::span<const std::byte> content) {
  uint32_t version = 0;
  if (content.size() >= sizeof(version)) {
    std::memcpy(&version, content.data(), sizeof(version));
  }
  return version;
}

absl::StatusOr<Superline> DecodeSuperline(std::span<const std::byte> content) {
  if (content.size() < sizeof(SuperlineFormat::format_version)) {
    return absl::DataLossError("superline: content is too short");
  }
  const uint32_t version = FormatVersionOf(content);
  const bool is_read =
      version >= kVersionMin && version <= kDeletionFormatVersion;
  if (!is_read) {
    return absl::UnimplementedError(absl::StrCat(
        "superline: format version ", version, ", this program reads versions ",
        kVersionMin, " to ", kDeletionFormatVersion,
        ". Use a program of that version to read the region"));
  }
  SuperlineFormat f{};
  const size_t expected = ContentBytesOf(version);
  if (content.size() != expected) {
    return absl::DataLossError(absl::StrCat("superline: ", content.size(),
                                            " bytes of content, expected ",
                                            expected));
  }
  std::memcpy(&f, content.data(), expected);
  Superline s;
  s.cluster_id = {f.cluster_id[0], f.cluster_id[1]};
  s.log_id = {f.log_id[0], f.log_id[1]};
  s.node = NodeId(f.node);
  s.incarnation = f.incarnation;
  s.region_bytes = f.region_bytes;
  s.ring_offset = f.ring_offset;
  s.ring_capacity = f.ring_capacity;
  s.table_capacity = f.table_capacity;
  s.promised_epoch = Epoch(f.promised_epoch);
  s.promised_node = NodeId(f.promised_node);
  s.promised_incarnation = f.promised_incarnation;
  s.log_epoch = Epoch(f.log_epoch);
  s.table_seq = f.table_seq;
  s.head_lsn = Lsn(f.head_lsn);
  s.head_offset = RingOffset(f.head_offset);
  s.head_chain = f.head_chain;
  s.repairing = (f.flags & kFlagRepairing) != 0;
  if (version == kDeletionFormatVersion) {
    ALPHEUS_ASSIGN_OR_RETURN(s.deletion, DeletionIn(f.flags));
  }
  s.unsafe_shutdown_count = f.unsafe_shutdown_count;
  // A program of an earlier version may have written anywhere in the ring.
  s.ceiling =
      RingOffset(version < 3 ? f.head_offset + f.ring_capacity : f.ceiling);
  s.configuration.id = f.configuration_id;
  s.configuration.replica_count = f.replica_count;
  s.configuration.write_quorum = f.write_quorum;
  ALPHEUS_RETURN_IF_ERROR(TakeMembers(f.members, s.configuration));
  if (f.from_replica_count == 0) return s;
  MemberList from;
  from.id = f.from_id;
  from.replica_count = f.from_replica_count;
  from.write_quorum = f.from_write_quorum;
  ALPHEUS_RETURN_IF_ERROR(TakeMembers(f.from_members, from));
  s.configuration.made_from = std::move(from);
  return s;
}

}  // namespace alpheus
