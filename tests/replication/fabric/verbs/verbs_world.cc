// SPDX-License-Identifier: Apache-2.0
#include "tests/replication/fabric/verbs/verbs_world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace alpheus::testing {
namespace {

constexpr int kHosts = 3;
// A guest's adapter is a program, and its processor is emulated.
constexpr int64_t kNotReadyNanos = 100'000'000;
constexpr int64_t kRetryNanos = 1'200'000'000;
constexpr int64_t kPassNanos = 1'000'000;
// Passes without a move. No timer of a queue pair's runs after so many; only a
// peer's adapter or its connection manager may still have some work in hand.
constexpr int kStillPasses = 400;
// More than the cases' regions come to.
constexpr uint64_t kDeviceBytes = uint64_t{128} << 20;

// The port of the guest's bridge at which the host is; one that is isolated is
// cut off from all others that are (tests/vm/network.sh).
void Isolate(const std::string& host, bool is_isolated) {
  const char* const pattern = std::getenv("ALPHEUS_VERBS_PORTS");
  ASSERT_NE(pattern, nullptr);
  const std::string number = host.substr(host.rfind('.') + 1);
  std::ofstream port(absl::StrReplaceAll(pattern, {{"*", number}}));
  port << (is_isolated ? '1' : '0') << std::flush;
  ASSERT_TRUE(port.good()) << pattern << ", host " << host;
}

std::shared_ptr<std::byte> MapDevice(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  void* const at =
      mmap(nullptr, kDeviceBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  EXPECT_NE(at, MAP_FAILED) << path;
  if (file >= 0) (void)close(file);
  return {static_cast<std::byte*>(at),
          [](std::byte* begin) { (void)munmap(begin, kDeviceBytes); }};
}

// A thread that can run there shows that this processor is not held up.
void MoveToNextProcessor() {
  const int next = (sched_getcpu() + 1) % static_cast<int>(get_nprocs());
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(static_cast<size_t>(next), &processors);
  // Where it is refused there are fewer to wait for.
  (void)sched_setaffinity(0, sizeof(processors), &processors);
}

}  // namespace

std::vector<std::string> VerbsWorld::Addresses() {
  const char* const text = std::getenv("ALPHEUS_VERBS_ADDRESSES");
  if (text == nullptr) return {};
  return absl::StrSplit(text, ',', absl::SkipEmpty());
}

absl::StatusOr<std::unique_ptr<VerbsWorld>> VerbsWorld::Make() {
  std::unique_ptr<VerbsWorld> world(new VerbsWorld());
  world->options_.limits.retry_ns = kRetryNanos;
  world->options_.receiver_wait_ns = kNotReadyNanos;
  // More takes a guest longer than it is waited for.
  world->options_.limits.message_bytes_max = 1 << 18;
  for (int host = 0; host < kHosts; ++host) {
    fabric::verbs::VerbsFabricOptions options = world->options_;
    options.source_host = world->AddressOf(host);
    if (world->addresses_.size() > 1) {
      options.device = absl::StrCat("rxe", host);
    }
    auto fabric = fabric::verbs::VerbsFabric::Open(options, world->clock_,
                                                   world->random_);
    if (!fabric.ok()) return fabric.status();
    world->fabrics_.push_back(*std::move(fabric));
  }
  return world;
}

std::string VerbsWorld::ListenAddress(int host) {
  return absl::StrCat(AddressOf(host), ":0");
}

std::string VerbsWorld::UnusedAddress(int host) {
  return absl::StrCat(AddressOf(host), ":1");
}

WorldMemory VerbsWorld::Memory(int host, uint64_t bytes,
                               fabric::RemoteAccess access) {
  const char* const device = std::getenv("ALPHEUS_VERBS_DEVICE");
  if (device == nullptr) return FabricWorld::Memory(host, bytes, access);
  if (device_ == nullptr) device_ = MapDevice(device);
  std::byte* const begin = device_.get() + device_used_;
  device_used_ += (bytes + 7) / 8 * 8;
  EXPECT_LE(device_used_, kDeviceBytes);
  std::memset(begin, 0, bytes);
  return {device_, {begin, bytes}};
}

bool VerbsWorld::Pass() {
  bool moved = false;
  for (const auto& fabric : fabrics_) moved |= fabric->RunTurn();
  if (moved) {
    still_passes_ = 0;
    return true;
  }
  MoveToNextProcessor();
  fabric(next_to_wait_)
      .WaitForActivity(Deadline::AtNanos(NowNanos() + kPassNanos));
  next_to_wait_ = (next_to_wait_ + 1) % hosts();
  const bool is_in_flight = std::ranges::any_of(
      fabrics_, [](const auto& fabric) { return fabric->IsInFlight(); });
  if (is_in_flight || ++still_passes_ < kStillPasses) return true;
  still_passes_ = 0;  // a caller that comes again has begun something new
  return false;
}

void VerbsWorld::Cut(int host, int other) {
  for (const int end : {host, other}) Isolate(AddressOf(end), true);
  cuts_.insert({host, other});
}

void VerbsWorld::Heal(int host, int other) {
  for (const int end : {host, other}) Isolate(AddressOf(end), false);
  cuts_.erase({host, other});
}

VerbsWorld::~VerbsWorld() {
  for (const auto& [host, other] : std::exchange(cuts_, {})) Heal(host, other);
}

}  // namespace alpheus::testing
