// SPDX-License-Identifier: Apache-2.0
// counting_fabric: an adapter that counts what is posted on it.
//
// A doorbell is all that was posted for sending since the last Poll: an adapter
// gets it then, at the latest (fabric.h).
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_COUNTING_FABRIC_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_COUNTING_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"
#include "replication/fabric/work_request.h"

namespace alpheus::testing {

class CountingFabric final : public fabric::Fabric {
 public:
  explicit CountingFabric(fabric::Fabric& inner) : inner_(inner) {}

  struct Counts {
    std::map<fabric::Operation, uint64_t> posted;  // receives, too
    uint64_t bytes = 0;                            // of payload
    uint64_t doorbells = 0;

    uint64_t Of(fabric::Operation operation) const {
      const auto found = posted.find(operation);
      return found == posted.end() ? 0 : found->second;
    }
  };
  const Counts& counts() const { return counts_; }
  // Begins again.
  void Forget() { counts_ = {}; }
  // Poll does this first, too.
  void FlushSends() override {
    counts_.doorbells += has_posted_ ? 1 : 0;
    has_posted_ = false;
    inner_.FlushSends();
  }

  Limits limits() const override { return inner_.limits(); }
  absl::StatusOr<fabric::RegionKey> Register(
      std::span<std::byte> bytes, fabric::RemoteAccess access) override {
    return inner_.Register(bytes, access);
  }
  absl::Status Deregister(fabric::RegionKey key) override {
    return inner_.Deregister(key);
  }
  absl::StatusOr<std::string> Listen(std::string_view address) override {
    return inner_.Listen(address);
  }
  absl::StatusOr<fabric::ConnectionId> Connect(std::string_view address,
                                               std::string_view private_data,
                                               Deadline deadline) override {
    return inner_.Connect(address, private_data, deadline);
  }
  absl::Status Accept(fabric::ConnectionId connection,
                      std::string_view private_data) override {
    return inner_.Accept(connection, private_data);
  }
  absl::Status Reject(fabric::ConnectionId connection,
                      std::string_view private_data) override {
    return inner_.Reject(connection, private_data);
  }
  absl::Status Close(fabric::ConnectionId connection) override {
    return inner_.Close(connection);
  }
  absl::Status Post(fabric::ConnectionId connection,
                    const fabric::WorkRequest& request) override {
    const absl::Status status = inner_.Post(connection, request);
    if (!status.ok()) return status;
    ++counts_.posted[request.operation];
    if (!fabric::Fetches(request.operation)) {
      counts_.bytes += request.local.bytes.size();
    }
    has_posted_ = true;
    return status;
  }
  absl::Status PostReceive(fabric::ConnectionId connection, fabric::WorkId work,
                           fabric::LocalBytes into) override {
    ++counts_.posted[fabric::Operation::kReceive];
    return inner_.PostReceive(connection, work, into);
  }
  size_t Poll(std::span<fabric::Completion> completions,
              std::vector<fabric::ConnectionEvent>* events) override {
    FlushSends();
    return inner_.Poll(completions, events);
  }
  bool RunTurn() override {
    FlushSends();
    return inner_.RunTurn();
  }
  void WaitForActivity(Deadline deadline) override {
    inner_.WaitForActivity(deadline);
  }
  void Wake() override { inner_.Wake(); }

 private:
  fabric::Fabric& inner_;
  Counts counts_;
  bool has_posted_ = false;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_COUNTING_FABRIC_H_
