// SPDX-License-Identifier: Apache-2.0
// direct_fabric: two adapters joined by nothing at all, for tests of those who
// use a fabric.
//
// Operations wait until Run, which executes them in order at the other end.
// There is no handshake: Join makes a connection. No delays, no faults but
// Break; for those there is the simulated fabric.
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_DIRECT_FABRIC_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_DIRECT_FABRIC_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/random.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/region_table.h"

namespace alpheus::testing {

class DirectFabric final : public fabric::Fabric {
 public:
  explicit DirectFabric(const Limits& limits)
      : limits_(limits), random_(1), regions_(random_) {}

  // A connection with the same id at both ends.
  static fabric::ConnectionId Join(DirectFabric& a, DirectFabric& b);

  // Executes what was posted here, in order. Returns how many operations.
  size_t Run();
  // Breaks the connection as if the peer had gone: work posted here and later
  // fails.
  void Break(fabric::ConnectionId connection);
  // Does the same, and this host knows already: posting fails, as on fabrics.
  void BreakKnown(fabric::ConnectionId connection) {
    connections_.at(connection).refuses = true;
  }
  // Operations that were posted and have not been run.
  size_t posted() const { return posted_.size(); }
  // Operations of that kind that have been run.
  uint64_t executed(fabric::Operation operation) const {
    const auto found = executed_.find(operation);
    return found == executed_.end() ? 0 : found->second;
  }
  // Receives that are posted and have not completed.
  size_t receives(fabric::ConnectionId connection) const {
    return connections_.at(connection).receives.size();
  }
  // For the next Poll.
  void AddEvent(const fabric::ConnectionEvent& event) {
    events_.push_back(event);
  }
  // `elsewhere` runs while this host waits for activity.
  void SetElsewhere(std::function<void()> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }
  // The deadline of the last wait for activity.
  Deadline waits_until() const { return waits_until_; }
  std::vector<fabric::Completion> DrainCompletions();
  bool is_closed(fabric::ConnectionId connection) const {
    return !connections_.contains(connection);
  }

  Limits limits() const override { return limits_; }
  absl::StatusOr<fabric::RegionKey> Register(
      std::span<std::byte> bytes, fabric::RemoteAccess access) override {
    return regions_.Register(bytes, access);
  }
  absl::Status Deregister(fabric::RegionKey key) override {
    return regions_.Deregister(key);
  }
  absl::StatusOr<std::string> Listen(std::string_view address) override;
  absl::StatusOr<fabric::ConnectionId> Connect(std::string_view address,
                                               std::string_view private_data,
                                               Deadline deadline) override;
  absl::Status Accept(fabric::ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Reject(fabric::ConnectionId connection,
                      std::string_view private_data) override;
  absl::Status Close(fabric::ConnectionId connection) override;
  absl::Status Post(fabric::ConnectionId connection,
                    const fabric::WorkRequest& request) override;
  absl::Status PostReceive(fabric::ConnectionId connection, fabric::WorkId work,
                           fabric::LocalBytes into) override;
  size_t Poll(std::span<fabric::Completion> completions,
              std::vector<fabric::ConnectionEvent>* events) override;
  bool RunTurn() override { return Run() != 0; }
  void WaitForActivity(Deadline deadline) override {
    waits_until_ = deadline;
    if (elsewhere_) elsewhere_();
  }
  void Wake() override {}

 private:
  struct Receive {
    fabric::WorkId work;
    fabric::LocalBytes into;
  };
  struct Connection {
    DirectFabric* peer = nullptr;
    bool broken = false;
    bool refuses = false;
    std::deque<Receive> receives;
    uint32_t sends = 0;  // posted, not completed
  };
  struct Posted {
    fabric::ConnectionId connection;
    fabric::WorkRequest request;
  };

  fabric::CompletionStatus Execute(const Posted& posted);
  fabric::CompletionStatus Announce(const Posted& posted,
                                    fabric::Operation operation);

  const Limits limits_;
  Random random_;
  fabric::RegionTable regions_;
  std::map<fabric::ConnectionId, Connection> connections_;
  std::deque<Posted> posted_;
  std::deque<fabric::Completion> completions_;
  std::vector<fabric::ConnectionEvent> events_;
  std::map<fabric::Operation, uint64_t> executed_;
  std::function<void()> elsewhere_;
  Deadline waits_until_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_DIRECT_FABRIC_H_
