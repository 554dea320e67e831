// SPDX-License-Identifier: Apache-2.0
#include "log/format/superline.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "log/base/mutant.h"

namespace alpheus {
namespace {

constexpr uint32_t kFlagRepairing = 1;

}  // namespace

bool Names(const Configuration& configuration, const Member& member) {
  const std::vector<Member>& members = configuration.members;
  return std::find(members.begin(), members.end(), member) != members.end();
}

std::vector<std::byte> EncodeSuperline(const Superline& superline) {
  const Configuration& configuration = superline.configuration;
  ALPHEUS_CHECK(configuration.members.size() <= kMembersMax,
                "members fit the superline");
  SuperlineFormat f{};
  f.format_version = kFormatVersion;
  f.flags = superline.repairing ? kFlagRepairing : 0;
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
  for (size_t i = 0; i < configuration.members.size(); ++i) {
    f.members[i].node = configuration.members[i].node.value;
    f.members[i].incarnation = configuration.members[i].incarnation;
  }
  std::vector<std::byte> content(sizeof(f));
  std::memcpy(content.data(), &f, sizeof(f));
  return content;
}

absl::StatusOr<Superline> DecodeSuperline(std::span<const std::byte> content) {
  SuperlineFormat f{};
  if (content.size() < sizeof(f.format_version)) {
    return absl::DataLossError("superline: content is too short");
  }
  std::memcpy(&f.format_version, content.data(), sizeof(f.format_version));
  if (f.format_version != kFormatVersion && !IsMutant("kAnyFormatIsRead")) {
    return absl::UnimplementedError(
        absl::StrCat("superline: format version ", f.format_version,
                     ", this program reads version ", kFormatVersion,
                     ". Use a program of that version to read the region"));
  }
  if (content.size() != sizeof(f)) {
    return absl::DataLossError(absl::StrCat("superline: ", content.size(),
                                            " bytes of content, expected ",
                                            sizeof(f)));
  }
  std::memcpy(&f, content.data(), sizeof(f));
  if (f.replica_count == 0 || f.replica_count > kMembersMax ||
      f.write_quorum == 0 || f.write_quorum > f.replica_count) {
    return absl::DataLossError(
        absl::StrCat("superline: configuration with N=", f.replica_count,
                     " W=", f.write_quorum, " can't be"));
  }
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
  s.unsafe_shutdown_count = f.unsafe_shutdown_count;
  s.configuration.id = f.configuration_id;
  s.configuration.replica_count = f.replica_count;
  s.configuration.write_quorum = f.write_quorum;
  for (uint32_t i = 0; i < f.replica_count; ++i) {
    s.configuration.members.push_back(
        {NodeId(f.members[i].node), f.members[i].incarnation});
  }
  return s;
}

}  // namespace alpheus
