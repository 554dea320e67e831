// SPDX-License-Identifier: Apache-2.0
// administrator: the orders of an operator to a cluster, as a node of it
// carries them out for others: those of `alpheus elect`, `drain`, `scrub`,
// `replace`, `reconfigure`, `format` and `delete-log`.
//
// Idea: the node is one more place from which these orders are given, by the
// same calls as those of the command line, and with the node's own cluster
// file. An operator needs neither that file nor the cluster's key.
//
// Invariants:
//   ORD1. The node reads no file for a caller but those that it uses itself: a
//         message about a file may show some of it.
//   ORD2. The node shows its identity to no server of ZooKeeper but those of
//         its own list: the identity is a password, and goes as it is.
// Thread safety: all members by many threads at once; they block.
// References: docs/use/operating.md; docs/design/service.md.
#ifndef ALPHEUS_API_ADMIN_ADMINISTRATOR_H_
#define ALPHEUS_API_ADMIN_ADMINISTRATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "alpheus/candidate.h"
#include "alpheus/recovery_report.h"
#include "api/admin/cluster_scrub.h"
#include "api/admin/delete_log.h"
#include "log/base/ids.h"

namespace alpheus {

// How long an order may take.
struct OrderBounds {
  uint32_t timeout_ms = 0;
  // Asked several times a second; true: the caller waits no more. A change of
  // the members, and the making and the deletion of a log, don't ask.
  std::function<bool()> gives_up = {};
};

class Administrator {
 public:
  virtual ~Administrator() = default;

  // Returns the number of the node that carries the orders out.
  virtual uint64_t node() const = 0;

  // As Candidate::Elect and Candidate::Drain.
  virtual absl::StatusOr<PrimaryReport> Elect(const std::string& log,
                                              uint64_t node,
                                              const OrderBounds& bounds) = 0;
  virtual absl::StatusOr<PrimaryReport> Drain(const std::string& log,
                                              uint64_t node,
                                              const OrderBounds& bounds) = 0;
  // Scrubs as ScrubCluster; nodes that have not ended after timeout_ms are
  // given up (Cancelled, each). `node` 0: all replicas.
  virtual absl::StatusOr<std::vector<ScrubResult>> Scrub(
      const std::string& log, uint64_t node, const OrderBounds& bounds) = 0;
  // Change the members as Log::ChangeMembers: replaces the replicas of nodes
  // that lost theirs, or changes the list to that of a cluster file's text. The
  // text is read as if it were beside the node's own file, and has the same
  // key_file, insecure_without_key, [zookeeper] and [encryption], to the
  // letter: else InvalidArgument, and nothing is done.
  virtual absl::StatusOr<RecoveryReport> Replace(
      const std::string& log, const std::vector<uint64_t>& nodes,
      const OrderBounds& bounds) = 0;
  virtual absl::StatusOr<RecoveryReport> Reconfigure(
      const std::string& log, const std::string& text,
      const OrderBounds& bounds) = 0;
  // Makes a log, as Log::Format. `region_bytes`: of each replica.
  virtual absl::StatusOr<Uuid> CreateLog(const std::string& log,
                                         uint64_t region_bytes,
                                         const OrderBounds& bounds) = 0;
  // Deletes a log for good, as DeleteLog (delete_log.h).
  virtual absl::StatusOr<DeletedLog> DeleteLog(const std::string& log,
                                               const OrderBounds& bounds) = 0;
};

// Carries orders out.
class ClusterAdministrator final : public Administrator {
 public:
  // The cluster file is read for each order.
  ClusterAdministrator(std::string cluster_file, uint64_t node)
      : cluster_file_(std::move(cluster_file)), node_(node) {}

  uint64_t node() const override { return node_; }
  absl::StatusOr<PrimaryReport> Elect(const std::string& log, uint64_t node,
                                      const OrderBounds& bounds) override;
  absl::StatusOr<PrimaryReport> Drain(const std::string& log, uint64_t node,
                                      const OrderBounds& bounds) override;
  absl::StatusOr<std::vector<ScrubResult>> Scrub(
      const std::string& log, uint64_t node,
      const OrderBounds& bounds) override;
  absl::StatusOr<RecoveryReport> Replace(const std::string& log,
                                         const std::vector<uint64_t>& nodes,
                                         const OrderBounds& bounds) override;
  absl::StatusOr<RecoveryReport> Reconfigure(
      const std::string& log, const std::string& text,
      const OrderBounds& bounds) override;
  absl::StatusOr<Uuid> CreateLog(const std::string& log, uint64_t region_bytes,
                                 const OrderBounds& bounds) override;
  absl::StatusOr<DeletedLog> DeleteLog(const std::string& log,
                                       const OrderBounds& bounds) override;

 private:
  const std::string cluster_file_;
  const uint64_t node_;
};

}  // namespace alpheus

#endif  // ALPHEUS_API_ADMIN_ADMINISTRATOR_H_
