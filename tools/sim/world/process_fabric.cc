// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world/process_fabric.h"

namespace alpheus::sim {

absl::StatusOr<RegionKey> ProcessFabric::Register(std::span<std::byte> bytes,
                                                  RemoteAccess access) {
  before_call_();
  return inner_.Register(bytes, access);
}

absl::Status ProcessFabric::Deregister(RegionKey key) {
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

absl::Status ProcessFabric::PostWrite(ConnectionId connection, WorkId work,
                                      LocalBytes from, RemoteAddress to) {
  before_call_();
  return inner_.PostWrite(connection, work, from, to);
}

absl::Status ProcessFabric::PostWriteImmediate(ConnectionId connection,
                                               WorkId work, LocalBytes from,
                                               RemoteAddress to,
                                               uint32_t immediate) {
  before_call_();
  return inner_.PostWriteImmediate(connection, work, from, to, immediate);
}

absl::Status ProcessFabric::PostRead(ConnectionId connection, WorkId work,
                                     LocalBytes into, RemoteAddress from) {
  before_call_();
  return inner_.PostRead(connection, work, into, from);
}

absl::Status ProcessFabric::PostCompareSwap(ConnectionId connection,
                                            WorkId work, LocalBytes into,
                                            RemoteAddress word,
                                            uint64_t expected,
                                            uint64_t desired) {
  before_call_();
  return inner_.PostCompareSwap(connection, work, into, word, expected,
                                desired);
}

absl::Status ProcessFabric::PostFetchAdd(ConnectionId connection, WorkId work,
                                         LocalBytes into, RemoteAddress word,
                                         uint64_t add) {
  before_call_();
  return inner_.PostFetchAdd(connection, work, into, word, add);
}

absl::Status ProcessFabric::PostFlush(ConnectionId connection, WorkId work,
                                      RemoteAddress range, uint64_t bytes) {
  before_call_();
  return inner_.PostFlush(connection, work, range, bytes);
}

absl::Status ProcessFabric::PostSend(ConnectionId connection, WorkId work,
                                     LocalBytes from) {
  before_call_();
  return inner_.PostSend(connection, work, from);
}

absl::Status ProcessFabric::PostReceive(ConnectionId connection, WorkId work,
                                        LocalBytes into) {
  before_call_();
  return inner_.PostReceive(connection, work, into);
}

size_t ProcessFabric::Poll(std::span<Completion> completions,
                           std::vector<ConnectionEvent>* events) {
  before_call_();
  return inner_.Poll(completions, events);
}

bool ProcessFabric::Progress() {
  before_call_();
  return inner_.Progress();
}

void ProcessFabric::WaitForActivity(Deadline deadline) {
  inner_.WaitForActivity(clock_.InWorld(deadline));
}

}  // namespace alpheus::sim
