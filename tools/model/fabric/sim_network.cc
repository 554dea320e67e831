// SPDX-License-Identifier: Apache-2.0
#include "tools/model/fabric/sim_network.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/base/check.h"
#include "tools/model/fabric/sim_fabric.h"

namespace alpheus::model {

using fabric::ConnectionId;

namespace {

// A software adapter's stores go into the cache.
StagedMemory::Options StagesOf(const replication::Platform& platform) {
  return {.domain = platform.domain,
          .ddio = platform.ddio ||
                  platform.transport == replication::Transport::kTcp};
}

}  // namespace

SimNetwork::SimNetwork(const SimOptions& options)
    : options_(options),
      random_(options.seed),
      keys_(~options.seed),
      hosts_(static_cast<size_t>(options.hosts)) {
  ALPHEUS_CHECK(options.packet_bytes > 0 && options.packet_bytes % 8 == 0,
                "FB1: 8-byte words land whole (fabric.h)");
  ALPHEUS_CHECK(
      0 <= options.delay_ns_min && options.delay_ns_min <= options.delay_ns_max,
      "delays have a range (sim_network.h)");
  for (const replication::Platform& platform : options.platforms) {
    ALPHEUS_CHECK(platform.transport != replication::Transport::kIwarp,
                  "iWARP is not modelled (sim_network.h)");
  }
  for (int host = 0; host < options.hosts; ++host) {
    Host& made = hosts_[host];
    made.stages = std::make_unique<StagedMemory>(StagesOf(PlatformOf(host)));
    made.stages->SetOnLanding(
        [this, host, &made](const StagedMemory::Write& write,
                            std::span<const std::byte> bytes) {
          NoteLanding({host, made.writers[write.channel], bytes});
        });
    Restart(host);
  }
}

SimNetwork::~SimNetwork() = default;

fabric::Fabric& SimNetwork::fabric(int host) {
  ALPHEUS_CHECK(IsUp(host), "only a host that is up is used (sim_network.h)");
  return *hosts_[host].fabric;
}

std::string SimNetwork::Address(int host, int port) {
  return absl::StrCat("sim:", host, ":", port);
}

void SimNetwork::CutOneWay(int from, int to) {
  Trace(from, ConnectionId(), absl::StrCat("cut to ", to));
  cuts_.emplace(from, to);
}

void SimNetwork::HealOneWay(int from, int to) {
  Trace(from, ConnectionId(), absl::StrCat("heal to ", to));
  cuts_.erase({from, to});
  for (auto& [id, channel] : channels_) {
    if (id.from.host != from || id.to != to) continue;
    for (; channel.held_back > 0; --channel.held_back) {
      events_.Schedule(Delay(from, to), [this, id = id] { Arrive(id); });
    }
  }
}

void SimNetwork::Cut(int host, int other) {
  CutOneWay(host, other);
  CutOneWay(other, host);
}

void SimNetwork::Heal(int host, int other) {
  HealOneWay(host, other);
  HealOneWay(other, host);
}

void SimNetwork::SlowDown(int from, int to, int64_t ns) {
  if (ns == 0) {
    slow_.erase({from, to});
    return;
  }
  Trace(from, ConnectionId(), absl::StrCat("slower to ", to, " by ", ns));
  slow_[{from, to}] = ns;
}

void SimNetwork::Crash(int host) {
  ALPHEUS_CHECK(IsUp(host), "only a host that is up crashes (sim_network.h)");
  Trace(host, ConnectionId(), "crash");
  hosts_[host].stages->EndAll();
  hosts_[host].fabric.reset();
}

void SimNetwork::EndProgram(int host) {
  ALPHEUS_CHECK(IsUp(host), "only a program that runs ends (sim_network.h)");
  hosts_[host].fabric->CloseAll();
  Crash(host);
}

void SimNetwork::Restart(int host) {
  ALPHEUS_CHECK(!IsUp(host), "a host that is up does not start");
  Host& restarted = hosts_[host];
  ++restarted.incarnation;
  restarted.fabric = std::make_unique<SimFabric>(
      *this, host, restarted.incarnation, keys_, PlatformOf(host).transport,
      *restarted.stages);
  Trace(host, ConnectionId(), "start");
}

replication::Platform SimNetwork::PlatformOf(int host) const {
  const auto index = static_cast<size_t>(host);
  return index < options_.platforms.size() ? options_.platforms[index]
                                           : replication::Platform();
}

void SimNetwork::MayFlip(int host, int from, Flips what,
                         std::span<std::byte> came) {
  Host& target = hosts_[host];
  const bool is_checked =
      PlatformOf(host).transport == replication::Transport::kInfiniBand ||
      PlatformOf(from).transport == replication::Transport::kInfiniBand;
  if (target.flips_next != what || came.empty() || is_checked) return;
  target.flips_next = Flips::kNone;
  ++target.flips;
  target.before_flip();
  came[random_.Below(came.size())] ^= std::byte{1}
                                      << static_cast<int>(random_.Below(8));
}

void SimNetwork::AttachMemory(int host, ModelPersistence& memory) {
  hosts_[host].memories.push_back(&memory);
  hosts_[host].stages->Attach(memory);
}

void SimNetwork::DetachMemory(int host, const ModelPersistence& memory) {
  const auto detached = std::erase(hosts_[host].memories, &memory);
  ALPHEUS_CHECK(detached == 1, "detached memory was attached");
  hosts_[host].stages->Detach(memory);
}

void SimNetwork::LosePower(int host) {
  LosePowerOfAdapter(host);
  for (ModelPersistence* memory : hosts_[host].memories) {
    memory->Reset(memory->CutDrawing(random_));
  }
}

void SimNetwork::LosePowerOfAdapter(int host) {
  Trace(host, ConnectionId(), "power lost");
  Host& at = hosts_[host];
  // A word has at most three moves to make.
  const size_t words = at.stages->WordsAt(StagedMemory::Stage::kAdapter) +
                       at.stages->WordsAt(StagedMemory::Stage::kIio) +
                       at.stages->WordsAt(StagedMemory::Stage::kVisible);
  if (words > 0) at.stages->MakeSome(random_.Below(3 * words + 1), random_);
  at.stages->LosePower();
  at.fabric.reset();
}

void SimNetwork::Send(const ChannelId& channel, Message message) {
  channels_[channel].messages.push_back(std::move(message));
  events_.Schedule(Delay(channel.from.host, channel.to),
                   [this, channel] { Arrive(channel); });
}

// Delivers the channel's first message, whichever one was sent with this delay:
// messages can't overtake each other.
void SimNetwork::Arrive(const ChannelId& id) {
  const auto found = channels_.find(id);
  Channel& channel = found->second;
  if (cuts_.contains({id.from.host, id.to})) {
    ++channel.held_back;
    return;
  }
  const Message message = std::move(channel.messages.front());
  channel.messages.pop_front();
  if (channel.messages.empty()) channels_.erase(found);

  const Host& to = hosts_[id.to];
  const bool is_there =
      to.fabric != nullptr &&
      (message.incarnation == 0 || message.incarnation == to.incarnation);
  Trace(id.to, id.from.connection,
        absl::StrCat(message.name, is_there ? " from " : " lost from ",
                     id.from.host));
  if (is_there) message.deliver(*to.fabric);
}

void SimNetwork::ScheduleAt(int host, uint64_t incarnation, int64_t after_ns,
                            std::function<void(SimFabric&)> happen) {
  events_.Schedule(
      after_ns, [this, host, incarnation, happen = std::move(happen)] {
        const Host& at = hosts_[host];
        if (at.fabric != nullptr && at.incarnation == incarnation) {
          happen(*at.fabric);
        }
      });
}

int64_t SimNetwork::Delay(int from, int to) {
  int64_t range = options_.delay_ns_max - options_.delay_ns_min + 1;
  const auto slow = slow_.find({from, to});
  if (slow != slow_.end()) range += slow->second;
  return options_.delay_ns_min +
         static_cast<int64_t>(random_.Below(static_cast<uint64_t>(range)));
}

int64_t SimNetwork::StepDelay() {
  return static_cast<int64_t>(
      random_.Below(static_cast<uint64_t>(options_.step_ns_max) + 1));
}

bool SimNetwork::Breaks() {
  if (options_.break_probability <= 0) return false;
  constexpr double kWhole = 0x1p53;
  const bool breaks = static_cast<double>(random_.Next() >> 11) <
                      options_.break_probability * kWhole;
  breaks_ += breaks ? 1 : 0;
  return breaks;
}

void SimNetwork::Trace(int host, ConnectionId connection,
                       std::string_view what) {
  if (!trace_) return;
  trace_(absl::StrCat(events_.NowNanos(), " host ", host, " connection ",
                      connection.value, ": ",
                      absl::string_view(what.data(), what.size())));
}

}  // namespace alpheus::model
