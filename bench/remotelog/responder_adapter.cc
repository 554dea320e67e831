// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/responder_adapter.h"

#include <algorithm>
#include <utility>

#include "bench/remotelog/work_request.h"

namespace alpheus::bench::remotelog {
namespace {

// Bytes of a READ that stands for FLUSH.
constexpr double kFlushedBytes = 8;

}  // namespace

ResponderAdapter::ResponderAdapter(const Costs& costs,
                                   const replication::Platform& platform,
                                   size_t connections, EventQueue* queue,
                                   Handlers handlers)
    : costs_(costs),
      to_memory_(platform.ddio ? 0 : costs.without_ddio),
      queue_(queue),
      handlers_(std::move(handlers)),
      connections_(connections) {}

void ResponderAdapter::Receive(const Operation& operation) {
  queue_->At(receiving_.Begin(queue_->now(), costs_.adapter_gap),
             [this, operation] { CarryOut(operation); });
}

void ResponderAdapter::CarryOut(const Operation& operation) {
  if (IsNonPosted(operation.step.action)) {
    connections_[operation.connection].non_posted.push_back(operation);
    CarryOutNonPosted(operation.connection);
    return;
  }
  // Reliable connections acknowledge what the adapter has.
  if (operation.is_awaited) handlers_.send_back(operation, 0);
  Write(operation);
}

void ResponderAdapter::CarryOutNonPosted(size_t connection) {
  Connection& of = connections_[connection];
  while (!of.non_posted.empty()) {
    const Operation operation = of.non_posted.front();
    if (operation.step.action == replication::StepAction::kRequesterFlush) {
      Read(operation);
    } else {
      if (of.flushes_in_flight > 0) return;  // RA3
      if (operation.is_awaited) handlers_.send_back(operation, 0);
      Write(operation);
    }
    of.non_posted.pop_front();
  }
}

void ResponderAdapter::Write(const Operation& operation) {
  Connection& connection = connections_[operation.connection];
  queue_->At(VisibleAt(connection),
             [this, operation] { handlers_.bytes_visible(operation); });
  if (IsMessage(operation.step.action)) {
    queue_->At(VisibleAt(connection),
               [this, operation] { handlers_.message_visible(operation); });
  }
}

double ResponderAdapter::VisibleAt(Connection& connection) {
  connection.last_visible =
      std::max(connection.last_visible,
               queue_->now() + costs_.pcie + costs_.root_complex + to_memory_);
  return connection.last_visible;
}

void ResponderAdapter::Read(const Operation& operation) {
  Connection& connection = connections_[operation.connection];
  const double half_way = costs_.root_complex / 2;
  const double reads_at =
      std::max(queue_->now() + costs_.pcie + half_way, connection.last_visible);
  ++connection.flushes_in_flight;
  queue_->At(reads_at + to_memory_ + half_way + costs_.pcie, [this, operation] {
    --connections_[operation.connection].flushes_in_flight;
    if (operation.is_awaited) {
      handlers_.send_back(operation, kFlushedBytes);
    }
    CarryOutNonPosted(operation.connection);
  });
}

}  // namespace alpheus::bench::remotelog
