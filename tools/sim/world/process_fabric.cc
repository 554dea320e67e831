// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/process_fabric.h"

namespace alpheus::sim {

using fabric::ConnectionId;

absl::StatusOr<fabric::RegionKey> ProcessFabric::Register(
    std::span<std::byte> bytes, fabric::RemoteAccess access) {
  before_call_();
  return inner_.Register(bytes, access);
}

absl::Status ProcessFabric::Deregister(fabric::RegionKey key) {
  before_call_();
  return inner_.Deregister(key);
}

absl::StatusOr<std::string> ProcessFabric::Listen(std::string_view address) {
  before_call_();
  return inner_.Listen(address);
}

absl::StatusOr<ConnectionId> ProcessFabric::Connect(
    std::string_view address, std::string_view private_data,
    Deadline deadline) {
  before_call_();
  return inner_.Connect(address, private_data, clock_.InWorld(deadline));
}

absl::Status ProcessFabric::Accept(ConnectionId connection,
                                   std::string_view private_data) {
  before_call_();
  return inner_.Accept(connection, private_data);
}

absl::Status ProcessFabric::Reject(ConnectionId connection,
                                   std::string_view private_data) {
  before_call_();
  return inner_.Reject(connection, private_data);
}

absl::Status ProcessFabric::Close(ConnectionId connection) {
  before_call_();
  return inner_.Close(connection);
}

absl::Status ProcessFabric::Post(ConnectionId connection,
                                 const fabric::WorkRequest& request) {
  before_call_();
  return inner_.Post(connection, request);
}

absl::Status ProcessFabric::PostReceive(ConnectionId connection,
                                        fabric::WorkId work,
                                        fabric::LocalBytes into) {
  before_call_();
  return inner_.PostReceive(connection, work, into);
}

size_t ProcessFabric::Poll(std::span<fabric::Completion> completions,
                           std::vector<fabric::ConnectionEvent>* events) {
  before_call_();
  return inner_.Poll(completions, events);
}

bool ProcessFabric::RunTurn() {
  before_call_();
  return inner_.RunTurn();
}

void ProcessFabric::WaitForActivity(Deadline deadline) {
  inner_.WaitForActivity(clock_.InWorld(deadline));
}

}  // namespace alpheus::sim
