// SPDX-License-Identifier: Apache-2.0
// failing_fabric: an adapter of which one call fails.
#ifndef ALPHEUS_TESTS_SUPPORT_FABRICS_FAILING_FABRIC_H_
#define ALPHEUS_TESTS_SUPPORT_FABRICS_FAILING_FABRIC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "replication/fabric/fabric.h"

namespace alpheus::testing {

// All calls go to the adapter within, but for one.
class FailingFabric : public fabric::Fabric {
 public:
  explicit FailingFabric(fabric::Fabric& inner) : inner_(inner) {}

  // The n-th Register, Accept, PostReceive or PostSend from now fails, n >= 1;
  // those after it succeed again.
  void FailCall(uint64_t n) { until_failure_ = n; }
  bool has_failed() const { return until_failure_ == 0; }
  // Messages that were posted.
  uint64_t sends() const { return sends_; }

  Limits limits() const override { return inner_.limits(); }
  absl::StatusOr<fabric::RegionKey> Register(
      std::span<std::byte> bytes, fabric::RemoteAccess access) override {
    if (Fails()) return Failure();
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
    if (Fails()) return Failure();
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
    if (request.operation != fabric::Operation::kSend)
      return inner_.Post(connection, request);
    if (Fails()) return Failure();
    ++sends_;
    return inner_.Post(connection, request);
  }
  absl::Status PostReceive(fabric::ConnectionId connection, fabric::WorkId work,
                           fabric::LocalBytes into) override {
    if (Fails()) return Failure();
    return inner_.PostReceive(connection, work, into);
  }
  size_t Poll(std::span<fabric::Completion> completions,
              std::vector<fabric::ConnectionEvent>* events) override {
    return inner_.Poll(completions, events);
  }
  bool RunTurn() override { return inner_.RunTurn(); }
  void WaitForActivity(Deadline deadline) override {
    inner_.WaitForActivity(deadline);
  }
  void FlushSends() override { inner_.FlushSends(); }
  void Wake() override { inner_.Wake(); }

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};

  bool Fails() { return until_failure_ != kNever && Count(); }
  bool Count() {
    if (until_failure_ == 0) return false;
    return --until_failure_ == 0;
  }
  static absl::Status Failure() {
    return absl::ResourceExhaustedError("the adapter has no room");
  }

  fabric::Fabric& inner_;
  uint64_t until_failure_ = kNever;
  uint64_t sends_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_FABRICS_FAILING_FABRIC_H_
