// SPDX-License-Identifier: Apache-2.0
// etcd_cluster: members of an etcd on this machine, and a client of one of
// them.
//
// Idea: messages of a few fields are encoded by hand (protobuf_fields.h), so
// that neither this header nor its users see gRPC.
//
// Thread safety: one thread.
// References: etcd 3.4, etcdserver/etcdserverpb/rpc.proto (Put, Status,
// MoveLeader).
#ifndef ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_CLUSTER_H_
#define ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/replicated/candidates/candidate.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"

namespace alpheus::bench::replicated {

struct EtcdStatus {
  uint64_t member = 0;  // who answers
  uint64_t leader = 0;  // whom it takes for the leader; 0: nobody
};

// One channel to one member.
class EtcdClient {
 public:
  explicit EtcdClient(uint16_t port);
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  // Puts; returns the new revision. Errors of all calls: Unavailable (also
  // after five seconds without an answer), DataLoss (a malformed answer).
  absl::StatusOr<uint64_t> Put(std::string_view key, std::string_view value,
                               Waiting waiting);
  absl::StatusOr<EtcdStatus> AskStatus();
  // Has the leader, which this member must be, hand over to that one.
  absl::Status MoveLeader(uint64_t to);

 private:
  class Channel;

  std::unique_ptr<Channel> channel_;
};

class EtcdCluster {
 public:
  // Starts that many members in a new folder below `parent`; returns when all
  // agree on a leader. `more`: further arguments of each. Errors: NotFound (no
  // etcd); Unavailable; DeadlineExceeded.
  static absl::StatusOr<std::unique_ptr<EtcdCluster>> Start(
      const std::string& parent, int count,
      const std::vector<std::string>& more = {});

  size_t size() const { return members_.size(); }
  PeerProcess& member(size_t i) { return members_[i]; }
  EtcdClient& client(size_t i) { return *clients_[i]; }
  // Returns where a member listens for further clients.
  uint16_t client_port(size_t i) const { return client_ports_[i]; }
  // Return the id of a member, and who was leader when they had started.
  uint64_t id(size_t i) const { return ids_[i]; }
  size_t leader() const { return leader_; }

 private:
  explicit EtcdCluster(std::string program) : program_(std::move(program)) {}

  absl::Status StartMembers(const std::string& parent, int count,
                            const std::vector<std::string>& more);
  void End();
  absl::Status FindLeader();

  const std::string program_;
  std::optional<ScratchFolder> folder_;
  std::vector<PeerProcess> members_;
  std::vector<std::unique_ptr<EtcdClient>> clients_;
  std::vector<uint16_t> client_ports_;
  std::vector<uint64_t> ids_;
  size_t leader_ = 0;
};

}  // namespace alpheus::bench::replicated

#endif  // ALPHEUS_BENCH_REPLICATED_PEERS_ETCD_CLUSTER_H_
