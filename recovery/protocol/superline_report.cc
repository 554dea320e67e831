// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/superline_report.h"

#include "absl/status/statusor.h"
#include "log/format/atomic_cell.h"
#include "log/format/layout.h"
#include "log/format/watermark.h"

namespace alpheus::recovery {
namespace {

std::optional<Superline> SuperlineOfClaimed(std::span<std::byte> region,
                                            Uuid cluster_id, Uuid log_id,
                                            NodeId node) {
  if (region.size() < kTableOffset) return std::nullopt;
  const CellState cell = ReadCell(SuperlinePlace(region));
  if (!cell.newest) return std::nullopt;
  const absl::StatusOr<Superline> superline =
      DecodeSuperline(cell.copies[*cell.newest].content);
  if (!superline.ok() || superline->cluster_id != cluster_id ||
      superline->log_id != log_id || superline->node != node) {
    return std::nullopt;
  }
  return *superline;
}

}  // namespace

std::optional<ServerHello> ServerHelloOfClaimed(std::span<std::byte> region,
                                                Uuid cluster_id, Uuid log_id,
                                                NodeId node) {
  const std::optional<Superline> superline =
      SuperlineOfClaimed(region, cluster_id, log_id, node);
  if (!superline) return std::nullopt;
  return ServerHelloOf(*superline);
}

Followed FollowedOf(const Superline& superline) {
  Followed followed;
  followed.log_epoch = superline.log_epoch;
  followed.repairing = superline.repairing;
  followed.replica_count = superline.configuration.replica_count;
  followed.write_quorum = superline.configuration.write_quorum;
  followed.configuration_id = superline.configuration.id;
  followed.promised = quorum::PromiseOf(superline);
  followed.head = {superline.head_lsn, superline.head_offset,
                   superline.head_chain};
  followed.durable_lsn = superline.head_lsn - 1;
  return followed;
}

std::optional<Followed> FollowedOfClaimed(std::span<std::byte> region,
                                          Uuid cluster_id, Uuid log_id,
                                          NodeId node) {
  const std::optional<Superline> superline =
      SuperlineOfClaimed(region, cluster_id, log_id, node);
  if (!superline) return std::nullopt;
  Followed followed = FollowedOf(*superline);
  followed.persisted_lsn =
      ReadWatermarks(region, log_id).Proven(superline->log_epoch);
  followed.is_claimed = true;
  return followed;
}

}  // namespace alpheus::recovery
