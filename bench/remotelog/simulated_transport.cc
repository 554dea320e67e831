// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/simulated_transport.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "bench/remotelog/event_queue.h"
#include "bench/remotelog/requester_program.h"
#include "bench/remotelog/responder_adapter.h"
#include "bench/remotelog/responder_program.h"
#include "bench/remotelog/work_request.h"

namespace alpheus::bench::remotelog {
namespace {

class World {
 public:
  World(const Costs& costs, const AppendRun& run)
      : costs_(costs),
        adapter_(costs, run.platform, run.clients, &queue_, Handlers()),
        program_(costs, run.platform, run.steps, run.clients, &queue_,
                 [this](size_t connection) { SendAck(connection); }),
        clients_(run.clients) {
    for (size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].program = std::make_unique<RequesterProgram>(
          costs, run.steps, i, run.appends, &queue_,
          [this](const Operation& operation) { Send(operation); });
    }
  }

  // False if the clients wait for something that never comes.
  bool Run() {
    for (Client& client : clients_) client.program->Start();
    while (!IsDone()) {
      if (!queue_.RunOne()) return false;
    }
    return true;
  }

  AppendTimes Times() const {
    AppendTimes times;
    for (const Client& client : clients_) {
      const std::vector<double>& of = client.program->latencies();
      times.latency.insert(times.latency.end(), of.begin(), of.end());
    }
    times.elapsed = queue_.now();
    times.responder_messages = program_.message_time();
    times.responder_background = program_.background_time();
    return times;
  }

 private:
  struct Client {
    std::unique_ptr<RequesterProgram> program;
    Lane sending;
    Lane link;
  };

  ResponderAdapter::Handlers Handlers() {
    return {
        .send_back =
            [this](const Operation& operation, double bytes) {
              SendBack(operation.connection, bytes);
            },
        .bytes_visible =
            [this](const Operation& operation) {
              program_.BytesAreVisible(operation);
            },
        .message_visible =
            [this](const Operation& operation) {
              program_.MessageIsVisible(operation);
            },
    };
  }

  bool IsDone() const {
    return std::all_of(
        clients_.begin(), clients_.end(),
        [](const Client& client) { return client.program->is_done(); });
  }

  // When bytes that are ready to be sent have crossed the link.
  double Cross(Lane& link, double ready, double bytes) const {
    const double takes = LinkTime(bytes, costs_);
    return link.Begin(ready, takes) + takes + costs_.wire +
           costs_.network_switch;
  }

  // Returns the time at which the adapter has an operation posted now, its
  // bytes included.
  double ReadyAt(const replication::Step& step) const {
    const double told = queue_.now() + costs_.pcie;
    if (IsInline(step, costs_)) return told;
    return told + 2 * costs_.pcie + costs_.root_complex;
  }

  void Send(const Operation& operation) {
    Client& client = clients_[operation.connection];
    const double begins =
        client.sending.Begin(ReadyAt(operation.step), costs_.adapter_gap);
    queue_.At(Cross(client.link, begins, PayloadBytes(operation.step)),
              [this, operation] { adapter_.Receive(operation); });
  }

  // Posted by the server's thread.
  void SendAck(size_t connection) {
    const replication::Step ack{replication::StepAction::kResponderSendAck};
    queue_.At(sending_back_.Begin(ReadyAt(ack), costs_.adapter_gap),
              [this, connection] { SendBack(connection, kNoticeBytes); });
  }

  // Ends in a completion, after the bytes, in the client's cache.
  void SendBack(size_t connection, double bytes) {
    const double arrives = Cross(link_back_, queue_.now(), bytes);
    queue_.At(arrives + costs_.pcie + costs_.root_complex, [this, connection] {
      clients_[connection].program->CompletionIsVisible();
    });
  }

  const Costs costs_;
  EventQueue queue_;
  ResponderAdapter adapter_;
  ResponderProgram program_;
  Lane sending_back_;
  Lane link_back_;
  std::vector<Client> clients_;
};

}  // namespace

absl::StatusOr<AppendTimes> SimulatedTransport::Append(const AppendRun& run) {
  World world(costs_, run);
  if (world.Run()) return world.Times();
  return absl::FailedPreconditionError(
      absl::StrCat("remotelog: the clients wait for ever in ",
                   replication::StepsToString(run.steps)));
}

}  // namespace alpheus::bench::remotelog
