// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/actors/stranger.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "tools/sim/actors/node_process.h"

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
      nonsense_(world.options().seed ^ 0x10115e15e),
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

template <class Talk>
bool Stranger::Finish(Talk& talk) {
  const int64_t until = world_.now() + kStrangerWaitsNanos;
  while (!talk.done() && world_.now() < until) {
    world_.ClearActivity(host_);
    const size_t count = fabric_.Poll(completions_, &events_);
    const bool any = count != 0 || !events_.empty();
    for (const ConnectionEvent& event : std::exchange(events_, {})) {
      talk.Take(event);
    }
    for (size_t i = 0; i < count; ++i) talk.Take(completions_[i]);
    if (!any) world_.WaitForActivity(host_, Deadline::AtNanos(until));
  }
  return talk.done();
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
        "P-H17", absl::StrCat("machine ", machine.number, " gives a stranger, ",
                              what, ", message ", inquiry.reply()->index()));
  }
  if (!IsRefusal(inquiry)) return;
  ++world_.counters().strangers_refused;
  if (IsCounted(machine.number, before)) return;
  world_.referee().Violate(
      "P-H17",
      absl::StrCat("machine ", machine.number, " refuses a stranger, ", what,
                   ", and does not count it: ", status.ToString()));
}

bool Stranger::IsCounted(int machine, std::optional<uint64_t> before) {
  const ProcessId node = node_;
  const std::optional<uint64_t> after = Refused(machine);
  return !before || !after || node_ != node || *after > *before;
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
  inquiry.Ask(Prove{OtherKey().Sign(EncodeMessage(kLogId, *inquiry.reply()))});
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

NonsenseCall Stranger::DrawNonsenseCall(const World::Machine& machine) {
  const Hello hello{kClusterId, kLogId, {NodeId(0), nonsense_.Next() | 1}};
  NonsenseCall call;
  call.address = world_.NodeAddress(machine.number);
  call.hello = EncodeHello(hello);
  call.log_id = kLogId;
  call.deadline = Deadline::AtNanos(clock_.NowNanos() + kStrangerWaitsNanos);
  switch (nonsense_.Below(8)) {
    case 0:
    case 1:
      call.hello = AsText(DrawNonsense(nonsense_, AsBytes(call.hello),
                                       fabric_.limits().private_bytes_max));
      break;
    case 2:
      call.guessed_key =
          RegionKey(nonsense_.Below(2) == 0 ? 1 + nonsense_.Below(64)
                                            : nonsense_.Next() | 1);
      return call;
    case 3:
      call.has_immediate = true;
      return call;
    default:
      break;
  }
  const std::vector<std::byte> good = EncodeMessage(
      kLogId, Challenge{Nonce{nonsense_.Next(), nonsense_.Next()}});
  const bool is_challenged = nonsense_.Below(2) == 0;
  if (is_challenged) call.messages.push_back(good);
  const std::vector<std::byte> next =
      is_challenged ? EncodeMessage(kLogId, Prove{OtherKey().Sign(good)})
                    : EncodeMessage(kLogId, DrawRequest(nonsense_));
  const std::vector<std::byte> drawn =
      DrawNonsense(nonsense_, next,
                   std::min<uint64_t>(fabric_.limits().message_bytes_max,
                                      kMessageBytesMax + 64));
  call.messages.push_back(
      nonsense_.Below(2) == 0 ? drawn : WithSum(drawn, next, kLogId));
  return call;
}

void Stranger::TalkNonsense(const World::Machine& machine) {
  const auto before = Refused(machine.number);
  NonsenseTalk talk(fabric_, DrawNonsenseCall(machine));
  ++world_.counters().nonsense;
  Finish(talk);
  JudgeNonsense(machine, talk, before);
}

// A connection that breaks says nothing, and who does not serve the replica
// refuses all.
void Stranger::JudgeNonsense(const World::Machine& machine,
                             const NonsenseTalk& talk,
                             std::optional<uint64_t> before) {
  world_.counters().guessed_keys +=
      static_cast<uint64_t>(talk.operations_refused());
  if (!talk.got().empty()) {
    return world_.referee().Violate(
        "P-H17",
        absl::StrCat("machine ", machine.number,
                     " gives a stranger that talks nonsense ", talk.got()));
  }
  // But of a hello that was changed.
  const bool is_changed =
      absl::StrContains(talk.refusal().message(), "a hello was changed");
  if (talk.refusal().ok() ||
      (absl::IsUnavailable(talk.refusal()) && !is_changed)) {
    return;
  }
  ++world_.counters().nonsense_refused;
  if (IsCounted(machine.number, before)) return;
  world_.referee().Violate(
      "P-H17",
      absl::StrCat("machine ", machine.number,
                   " refuses a stranger that talks nonsense, and does not "
                   "count it: ",
                   talk.refusal().ToString()));
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
    if (nonsense_.Below(2) == 0) {
      TalkNonsense(world_.machine(static_cast<int>(
          nonsense_.Below(static_cast<uint64_t>(world_.options().nodes)))));
    }
  }
}

}  // namespace alpheus::sim
