// SPDX-License-Identifier: Apache-2.0
// service_calls: calls of the service that its client has not: those of an
// operator.
//
// Thread safety: all members concurrently.
#ifndef ALPHEUS_BENCH_SERVICE_GRPC_SERVICE_CALLS_H_
#define ALPHEUS_BENCH_SERVICE_GRPC_SERVICE_CALLS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace alpheus::bench::service {

class ServiceCalls {
 public:
  // Calls to one node, of one log. Errors of all: Unavailable.
  ServiceCalls(const std::string& address, std::string log);
  ~ServiceCalls();
  ServiceCalls(const ServiceCalls&) = delete;
  ServiceCalls& operator=(const ServiceCalls&) = delete;

  absl::StatusOr<bool> IsPrimary() const;
  // Returns the last LSN that is durable.
  absl::StatusOr<uint64_t> DurableLsn() const;
  absl::Status Cleanup(uint64_t through_lsn) const;

 private:
  struct Stub;

  const std::string log_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace alpheus::bench::service

#endif  // ALPHEUS_BENCH_SERVICE_GRPC_SERVICE_CALLS_H_
