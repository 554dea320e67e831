// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/stranger.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "tools/sim/node_process.h"

namespace alpheus::sim {
namespace {

constexpr int64_t kPauseNanosMax = 1'000'000;
constexpr int64_t kStrangerWaitsNanos = 2'000'000;
constexpr uint64_t kWays = 5;

ClusterKey OtherKey() {
  std::array<std::byte, kClusterKeyBytes> bytes{};
  bytes.fill(std::byte{0xbd});
  return ClusterKey(bytes);
}

// Else nobody was there, or the connection broke before the answer.
bool IsRefusal(const Inquiry& inquiry) {
  return absl::IsUnauthenticated(inquiry.status()) ||
         (absl::IsFailedPrecondition(inquiry.status()) && !inquiry.welcome());
}

// Each would give something out, or end something.
Message DrawRequest(Random& random) {
  const Epoch highest(UINT64_MAX >> 1);
  switch (random.Below(5)) {
    case 0:
      return View{};
    case 1:
      return Follow{};
    case 2:
      return Release{};
    case 3:
      return Prepare{highest, false};
    default:
      return AskPromise{{highest, {NodeId(1), random.Next() | 1}}};
  }
}

}  // namespace

Stranger::Stranger(World& world, int host)
    : world_(world),
      host_(host),
      random_(world.options().seed ^ 0x57ea),
      clock_(world.network().clock(),
             static_cast<int64_t>(random_.Below(uint64_t{1} << 40))),
      fabric_(world.network().fabric(host_), clock_,
              [&world] { world.SwitchByLot(); }) {
  world_.threads().Start(world_.threads().NewProcess(), [this] { Run(); });
}

Hello Stranger::DrawHello() {
  return {kClusterId, kLogId, {NodeId(0), random_.Next() | 1}};
}

// Without credentials an inquiry asks at once.
Inquiry::Options Stranger::At(const World::Machine& machine,
                              const Hello& hello) {
  return {
      .address = world_.NodeAddress(machine.number),
      .node = machine.id(),
      .hello = hello,
      .deadline = Deadline::AtNanos(clock_.NowNanos() + kStrangerWaitsNanos)};
}

bool Stranger::Finish(Inquiry& inquiry) {
  const int64_t until = world_.now() + kStrangerWaitsNanos;
  while (!inquiry.done() && world_.now() < until) {
    world_.ClearActivity(host_);
    const size_t count = fabric_.Poll(completions_, &events_);
    const bool any = count != 0 || !events_.empty();
    for (const ConnectionEvent& event : std::exchange(events_, {})) {
      inquiry.Take(event);
    }
    for (size_t i = 0; i < count; ++i) inquiry.Take(completions_[i]);
    if (!any) world_.WaitForActivity(host_, Deadline::AtNanos(until));
  }
  return inquiry.done();
}

std::optional<uint64_t> Stranger::Refused(int machine) {
  const World::Machine& at = world_.machine(machine);
  if (at.node == nullptr) return std::nullopt;
  node_ = at.node->process();
  return at.node->refusals();
}

void Stranger::Judge(const World::Machine& machine, const char* what,
                     const Inquiry& inquiry, std::optional<uint64_t> before) {
  ++world_.counters().strangers;
  if (!inquiry.done()) return;
  const absl::Status& status = inquiry.status();
  if (status.ok()) {
    return world_.referee().Violate(
        "H17", absl::StrCat("machine ", machine.number, " gives a stranger, ",
                            what, ", message ", inquiry.reply()->index()));
  }
  if (!IsRefusal(inquiry)) return;
  ++world_.counters().strangers_refused;
  const ProcessId node = node_;
  const std::optional<uint64_t> after = Refused(machine.number);
  if (!before || !after || node_ != node || *after > *before) return;
  world_.referee().Violate(
      "H17",
      absl::StrCat("machine ", machine.number, " refuses a stranger, ", what,
                   ", and does not count it: ", status.ToString()));
}

void Stranger::AskUnproved(const World::Machine& machine) {
  const auto before = Refused(machine.number);
  Inquiry::Options at = At(machine, DrawHello());
  Message request = DrawRequest(random_);
  if (world_.options().canary == Canary::kKnownStranger) {
    at.credentials = {SimulatedKey(), &random_};
    request = View{};  // which is given to whoever has the key
  }
  Inquiry inquiry(fabric_, std::move(at), std::move(request));
  Finish(inquiry);
  Judge(machine, "without a proof", inquiry, before);
}

void Stranger::ProveByAnotherKey(const World::Machine& machine) {
  const auto before = Refused(machine.number);
  Inquiry inquiry(fabric_, At(machine, DrawHello()),
                  Challenge{Nonce{random_.Next(), random_.Next()}});
  if (!Finish(inquiry) || !inquiry.may_ask()) return;
  inquiry.Ask(Prove{OtherKey().Sign(EncodeMessage(*inquiry.reply()))});
  Finish(inquiry);
  Judge(machine, "with another key", inquiry, before);
}

void Stranger::ComeFromAnotherCluster(const World::Machine& machine) {
  const auto before = Refused(machine.number);
  Hello hello = DrawHello();
  hello.cluster_id = {random_.Next(), random_.Next()};
  Inquiry inquiry(fabric_, At(machine, hello), View{});
  Finish(inquiry);
  Judge(machine, "of another cluster", inquiry, before);
}

// Of a process that has the key, which is played here: its random numbers come
// twice, once for the message and once for what is signed.
void Stranger::Record(const World::Machine& machine) {
  const Hello hello = DrawHello();
  const uint64_t nonce = random_.Next();
  Random first(nonce);
  Random second(nonce);
  PrimaryHandshake sent({SimulatedKey(), &first});
  PrimaryHandshake handshake({SimulatedKey(), &second});
  const Challenge challenge = sent.Begin(hello, Welcome{});
  Inquiry inquiry(fabric_, At(machine, hello), challenge);
  if (!Finish(inquiry) || !inquiry.may_ask()) return;
  static_cast<void>(handshake.Begin(hello, *inquiry.welcome()));
  const auto* challenged = std::get_if<Challenged>(&*inquiry.reply());
  if (challenged == nullptr) return;
  const absl::StatusOr<Prove> prove = handshake.Take(*challenged);
  if (!prove.ok()) return;
  inquiry.Ask(*prove);
  if (!Finish(inquiry) || !inquiry.status().ok()) return;
  recorded_ = {machine.number, hello, challenge, *prove};
}

void Stranger::Replay() {
  const World::Machine& machine = world_.machine(recorded_->machine);
  const auto before = Refused(machine.number);
  Inquiry inquiry(fabric_, At(machine, recorded_->hello), recorded_->challenge);
  if (!Finish(inquiry) || !inquiry.may_ask()) return;
  inquiry.Ask(recorded_->prove);
  Finish(inquiry);
  ++world_.counters().replays;
  Judge(machine, "with a recorded proof", inquiry, before);
}

void Stranger::Run() {
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
  }
}

}  // namespace alpheus::sim
