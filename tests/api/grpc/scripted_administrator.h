// SPDX-License-Identifier: Apache-2.0
// scripted_administrator: takes an administrator's orders for a test, and says
// what the test has set.
//
// Thread safety: orders come on threads of the server; the test sets what is
// said before, and reads `orders()` at any time.
#ifndef ALPHEUS_TESTS_API_GRPC_SCRIPTED_ADMINISTRATOR_H_
#define ALPHEUS_TESTS_API_GRPC_SCRIPTED_ADMINISTRATOR_H_

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "api/admin/administrator.h"

namespace alpheus::testing {

class ScriptedAdministrator final : public Administrator {
 public:
  // Status that all orders return; OK: they return the results below.
  absl::Status status;
  // Runs in each order.
  std::function<void(const OrderBounds& bounds)> during =
      [](const OrderBounds& /*bounds*/) {};
  PrimaryReport primary = {.node = 2, .epoch = Epoch(131'075)};
  std::vector<ScrubResult> scrubs;
  RecoveryReport report;
  Uuid log_id = {1, 2};

  // The orders that came, as "elect main 3", and how long they had.
  std::vector<std::string> orders() const {
    const std::lock_guard lock(mutex_);
    return orders_;
  }
  uint32_t timeout_ms() const {
    const std::lock_guard lock(mutex_);
    return timeout_ms_;
  }

  uint64_t node() const override { return 1; }
  absl::StatusOr<PrimaryReport> Elect(const std::string& log, uint64_t node,
                                      const OrderBounds& bounds) override {
    return Said(absl::StrCat("elect ", log, " ", node), bounds, primary);
  }
  absl::StatusOr<PrimaryReport> Drain(const std::string& log, uint64_t node,
                                      const OrderBounds& bounds) override {
    return Said(absl::StrCat("drain ", log, " ", node), bounds, primary);
  }
  absl::StatusOr<std::vector<ScrubResult>> Scrub(
      const std::string& log, uint64_t node,
      const OrderBounds& bounds) override {
    return Said(absl::StrCat("scrub ", log, " ", node), bounds, scrubs);
  }
  absl::StatusOr<RecoveryReport> Replace(const std::string& log,
                                         const std::vector<uint64_t>& nodes,
                                         const OrderBounds& bounds) override {
    return Said(absl::StrCat("replace ", log, " ", absl::StrJoin(nodes, ",")),
                bounds, report);
  }
  absl::StatusOr<RecoveryReport> Reconfigure(
      const std::string& log, const std::string& text,
      const OrderBounds& bounds) override {
    return Said(absl::StrCat("reconfigure ", log, " ", text), bounds, report);
  }
  absl::StatusOr<Uuid> CreateLog(const std::string& log, uint64_t region_bytes,
                                 const OrderBounds& bounds) override {
    return Said(absl::StrCat("create ", log, " ", region_bytes), bounds,
                log_id);
  }
  absl::StatusOr<DeletedLog> DeleteLog(const std::string& log,
                                       const OrderBounds& bounds) override {
    return Said(absl::StrCat("delete ", log), bounds, DeletedLog{{1, 3}, {2}});
  }

 private:
  template <class Result>
  absl::StatusOr<Result> Said(std::string order, const OrderBounds& bounds,
                              const Result& result) {
    {
      const std::lock_guard lock(mutex_);
      orders_.push_back(std::move(order));
      timeout_ms_ = bounds.timeout_ms;
    }
    during(bounds);
    if (!status.ok()) return status;
    return result;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> orders_;
  uint32_t timeout_ms_ = 0;  // of the last one
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_API_GRPC_SCRIPTED_ADMINISTRATOR_H_
