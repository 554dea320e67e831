// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/unauthenticated_client.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "tools/sim/actors/node_process.h"

namespace alpheus::sim {

using recovery::ControlCall;
using recovery::Hello;

namespace {

constexpr int64_t kPauseNanosMax = 1'000'000;
constexpr int64_t kClientWaitsNanos = 2'000'000;
constexpr uint64_t kWays = 5;

quorum::ClusterKey OtherKey() {
  std::array<std::byte, quorum::kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{0xbd});
  return quorum::ClusterKey(bytes);
}

// Otherwise no node was there, or the connection broke before the answer.
bool IsRefusal(const ControlCall& control_call) {
  return absl::IsUnauthenticated(control_call.status()) ||
         (absl::IsFailedPrecondition(control_call.status()) &&
          !control_call.server_hello());
}

// Each would give something out, or end something.
recovery::Message DrawRequest(Random& random) {
  const Epoch highest(UINT64_MAX >> 1);
  switch (random.Below(5)) {
    case 0:
      return recovery::View{};
    case 1:
      return recovery::Follow{};
    case 2:
      return recovery::Release{};
    case 3:
      return recovery::OpenForRepair{highest, false};
    default:
      return recovery::Prepare{{highest, {NodeId(1), random.Next() | 1}}};
  }
}

}  // namespace

UnauthenticatedClient::UnauthenticatedClient(World& world, int host)
    : world_(world),
      host_(host),
      random_(world.options().seed ^ 0x57ea),
      malformed_(world.options().seed ^ 0x10115e15e),
      clock_(world.network().clock(),
             static_cast<int64_t>(random_.Below(uint64_t{1} << 40))),
      fabric_(world.network().fabric(host_), clock_,
              [&world] { world.SwitchByLot(); }) {
  world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
}

Hello UnauthenticatedClient::DrawHello() {
  return {kClusterId, kLogId, {NodeId(0), random_.Next() | 1}};
}

// Without credentials a control call asks at once.
ControlCall::Options UnauthenticatedClient::At(const World::Machine& machine,
                                               const Hello& hello) {
  return {.address = world_.NodeAddress(machine.number),
          .node = machine.id(),
          .hello = hello,
          .deadline = Deadline::AtNanos(clock_.NowNanos() + kClientWaitsNanos)};
}

template <class Talk>
bool UnauthenticatedClient::Finish(Talk& talk) {
  const int64_t until = world_.now() + kClientWaitsNanos;
  while (!talk.done() && world_.now() < until) {
    world_.ClearActivity(host_);
    const size_t count = fabric_.Poll(completions_, &events_);
    const bool any = count != 0 || !events_.empty();
    for (const fabric::ConnectionEvent& event : std::exchange(events_, {})) {
      talk.OnConnectionEvent(event);
    }
    for (size_t i = 0; i < count; ++i) talk.OnCompletion(completions_[i]);
    if (!any) world_.WaitForActivity(host_, Deadline::AtNanos(until));
  }
  return talk.done();
}

std::optional<uint64_t> UnauthenticatedClient::Rejected(int machine) {
  const World::Machine& at = world_.machine(machine);
  if (at.node == nullptr) return std::nullopt;
  node_ = at.node->process();
  return at.node->rejects();
}

void UnauthenticatedClient::Judge(const World::Machine& machine,
                                  const char* what,
                                  const ControlCall& control_call,
                                  std::optional<uint64_t> before) {
  ++world_.counters().unauthenticated_clients;
  if (!control_call.done()) return;
  const absl::Status& status = control_call.status();
  if (status.ok()) {
    return world_.oracle().Violate(
        "P-H17", absl::StrCat("machine ", machine.number,
                              " gives an unauthenticated client, ", what,
                              ", message ", control_call.reply()->index()));
  }
  if (!IsRefusal(control_call)) return;
  ++world_.counters().unauthenticated_refused;
  if (IsCounted(machine.number, before)) return;
  world_.oracle().Violate(
      "P-H17", absl::StrCat("machine ", machine.number,
                            " refuses an unauthenticated client, ", what,
                            ", and does not count it: ", status.ToString()));
}

bool UnauthenticatedClient::IsCounted(int machine,
                                      std::optional<uint64_t> before) {
  const ProcessId node = node_;
  const std::optional<uint64_t> after = Rejected(machine);
  return !before || !after || node_ != node || *after > *before;
}

void UnauthenticatedClient::AskUnproved(const World::Machine& machine) {
  const auto before = Rejected(machine.number);
  ControlCall::Options at = At(machine, DrawHello());
  recovery::Message request = DrawRequest(random_);
  if (world_.options().canary == Canary::kTrustedClient) {
    at.credentials = {SimulatedKey(), &random_};
    request = recovery::View{};  // which every holder of the key gets
  }
  ControlCall control_call(fabric_, std::move(at), std::move(request));
  Finish(control_call);
  Judge(machine, "without a proof", control_call, before);
}

void UnauthenticatedClient::ProveByAnotherKey(const World::Machine& machine) {
  const auto before = Rejected(machine.number);
  ControlCall control_call(
      fabric_, At(machine, DrawHello()),
      recovery::Challenge{recovery::Nonce{random_.Next(), random_.Next()}});
  if (!Finish(control_call) || !control_call.may_ask()) return;
  control_call.Ask(recovery::Prove{
      OtherKey().Sign(recovery::EncodeMessage(kLogId, *control_call.reply()))});
  Finish(control_call);
  Judge(machine, "with another key", control_call, before);
}

void UnauthenticatedClient::ComeFromAnotherCluster(
    const World::Machine& machine) {
  const auto before = Rejected(machine.number);
  Hello hello = DrawHello();
  hello.cluster_id = {random_.Next(), random_.Next()};
  ControlCall control_call(fabric_, At(machine, hello), recovery::View{});
  Finish(control_call);
  Judge(machine, "of another cluster", control_call, before);
}

// Records the handshake of a process that has the key, which is played here:
// its random numbers are drawn twice, for the message and for the signature.
void UnauthenticatedClient::Record(const World::Machine& machine) {
  const Hello hello = DrawHello();
  const uint64_t nonce = random_.Next();
  Random first(nonce);
  Random second(nonce);
  recovery::PrimaryHandshake sent({SimulatedKey(), &first});
  recovery::PrimaryHandshake handshake({SimulatedKey(), &second});
  const recovery::Challenge challenge =
      sent.Begin(hello, recovery::ServerHello{});
  ControlCall control_call(fabric_, At(machine, hello), challenge);
  if (!Finish(control_call) || !control_call.may_ask()) return;
  static_cast<void>(handshake.Begin(hello, *control_call.server_hello()));
  const auto* challenged =
      std::get_if<recovery::Challenged>(&*control_call.reply());
  if (challenged == nullptr) return;
  const absl::StatusOr<recovery::Prove> prove = handshake.Reply(*challenged);
  if (!prove.ok()) return;
  control_call.Ask(*prove);
  if (!Finish(control_call) || !control_call.status().ok()) return;
  recorded_ = {machine.number, hello, challenge, *prove};
}

void UnauthenticatedClient::Replay() {
  const World::Machine& machine = world_.machine(recorded_->machine);
  const auto before = Rejected(machine.number);
  ControlCall control_call(fabric_, At(machine, recorded_->hello),
                           recorded_->challenge);
  if (!Finish(control_call) || !control_call.may_ask()) return;
  control_call.Ask(recorded_->prove);
  Finish(control_call);
  ++world_.counters().replays;
  Judge(machine, "with a recorded proof", control_call, before);
}

MalformedCall UnauthenticatedClient::DrawMalformedCall(
    const World::Machine& machine) {
  const Hello hello{kClusterId, kLogId, {NodeId(0), malformed_.Next() | 1}};
  MalformedCall call;
  call.address = world_.NodeAddress(machine.number);
  call.hello = recovery::EncodeHello(hello);
  call.log_id = kLogId;
  call.deadline = Deadline::AtNanos(clock_.NowNanos() + kClientWaitsNanos);
  switch (malformed_.Below(8)) {
    case 0:
    case 1:
      call.hello = AsText(DrawMalformed(malformed_, AsBytes(call.hello),
                                        fabric_.limits().private_bytes_max));
      break;
    case 2:
      call.guessed_key =
          fabric::RegionKey(malformed_.Below(2) == 0 ? 1 + malformed_.Below(64)
                                                     : malformed_.Next() | 1);
      return call;
    case 3:
      call.has_immediate = true;
      return call;
    default:
      break;
  }
  const std::vector<std::byte> good = recovery::EncodeMessage(
      kLogId, recovery::Challenge{
                  recovery::Nonce{malformed_.Next(), malformed_.Next()}});
  const bool is_challenged = malformed_.Below(2) == 0;
  if (is_challenged) call.messages.push_back(good);
  const std::vector<std::byte> next =
      is_challenged ? recovery::EncodeMessage(
                          kLogId, recovery::Prove{OtherKey().Sign(good)})
                    : recovery::EncodeMessage(kLogId, DrawRequest(malformed_));
  const std::vector<std::byte> drawn =
      DrawMalformed(malformed_, next,
                    std::min<uint64_t>(fabric_.limits().message_bytes_max,
                                       recovery::kMessageBytesMax + 64));
  call.messages.push_back(
      malformed_.Below(2) == 0 ? drawn : WithSum(drawn, next, kLogId));
  return call;
}

void UnauthenticatedClient::SendMalformed(const World::Machine& machine) {
  const auto before = Rejected(machine.number);
  MalformedConversation talk(fabric_, DrawMalformedCall(machine));
  ++world_.counters().malformed_requests;
  Finish(talk);
  JudgeMalformed(machine, talk, before);
}

// A broken connection proves nothing, and a node that does not serve the
// replica refuses every client.
void UnauthenticatedClient::JudgeMalformed(const World::Machine& machine,
                                           const MalformedConversation& talk,
                                           std::optional<uint64_t> before) {
  world_.counters().guessed_keys +=
      static_cast<uint64_t>(talk.operations_refused());
  if (!talk.got().empty()) {
    return world_.oracle().Violate(
        "P-H17",
        absl::StrCat(
            "machine ", machine.number,
            " gives an unauthenticated client that sends malformed requests ",
            talk.got()));
  }
  // A hello that was damaged is an exception.
  const bool is_changed =
      absl::StrContains(talk.refusal().message(), "a hello was damaged");
  if (talk.refusal().ok() ||
      (absl::IsUnavailable(talk.refusal()) && !is_changed)) {
    return;
  }
  ++world_.counters().malformed_refused;
  if (IsCounted(machine.number, before)) return;
  world_.oracle().Violate(
      "P-H17", absl::StrCat("machine ", machine.number,
                            " refuses an unauthenticated client that sends "
                            "malformed requests, and does not "
                            "count it: ",
                            talk.refusal().ToString()));
}

void UnauthenticatedClient::Run() {
  for (;;) {
    world_.threads().SleepUntil(
        world_.now() + 1 + static_cast<int64_t>(random_.Below(kPauseNanosMax)));
    const World::Machine& machine = world_.machine(static_cast<int>(
        random_.Below(static_cast<uint64_t>(world_.options().nodes))));
    switch (random_.Below(kWays)) {
      case 0:
        AskUnproved(machine);
        break;
      case 1:
        ProveByAnotherKey(machine);
        break;
      case 2:
        ComeFromAnotherCluster(machine);
        break;
      case 3:
        Record(machine);
        break;
      default:
        if (recorded_) Replay();
    }
    if (malformed_.Below(2) == 0) {
      SendMalformed(world_.machine(static_cast<int>(
          malformed_.Below(static_cast<uint64_t>(world_.options().nodes)))));
    }
  }
}

}  // namespace alpheus::sim
