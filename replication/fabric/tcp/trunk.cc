// SPDX-License-Identifier: Apache-2.0
#include "replication/fabric/tcp/trunk.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replication/fabric/tcp/lane.h"
#include "replication/fabric/tcp/wire.h"

namespace alpheus::fabric::tcp {
namespace {

constexpr uint32_t kTrunkMagic = 0x54504c41;  // "ALPT" in memory
constexpr uint32_t kTrunkVersion = 1;

// Two words of 32 bits, little-endian as everything on the wire.
std::array<std::byte, 8> TwoWords(uint32_t first, uint32_t second) {
  std::array<std::byte, 8> bytes;
  PutWord(uint64_t{second} << 32 | first, bytes.data());
  return bytes;
}

std::array<std::byte, Trunk::kHelloBytes> Start(uint32_t says) {
  std::array<std::byte, Trunk::kHelloBytes> bytes;
  PutWord(uint64_t{kTrunkVersion} << 32 | kTrunkMagic, bytes.data());
  PutWord(says, bytes.data() + sizeof(uint64_t));
  return bytes;
}

std::optional<uint32_t> ReadStart(
    std::span<const std::byte, Trunk::kHelloBytes> bytes) {
  const uint64_t says = GetWord(bytes.data() + sizeof(uint64_t));
  const bool is_good =
      GetWord(bytes.data()) == (uint64_t{kTrunkVersion} << 32 | kTrunkMagic) &&
      says <= kGroups;
  if (!is_good) return std::nullopt;
  return static_cast<uint32_t>(says);
}

}  // namespace

// --- Start ------------------------------------------------------------------

std::array<std::byte, Trunk::kHelloBytes> Trunk::Hello(uint32_t group) {
  return Start(group);
}

std::array<std::byte, Trunk::kHelloBytes> Trunk::Answer(uint32_t adapters) {
  return Start(adapters);
}

std::optional<uint32_t> Trunk::ReadHello(
    std::span<const std::byte, kHelloBytes> bytes) {
  const std::optional<uint32_t> group = ReadStart(bytes);
  return group && *group < kGroups ? group : std::nullopt;
}

std::optional<uint32_t> Trunk::ReadAnswer(
    std::span<const std::byte, kHelloBytes> bytes) {
  const std::optional<uint32_t> adapters = ReadStart(bytes);
  const bool is_good = adapters && *adapters > 0 && *adapters <= kGroups;
  return is_good ? adapters : std::nullopt;
}

Trunk::Trunk(std::unique_ptr<Stream> stream, TlsSession::Side side,
             std::string peer, uint32_t group)
    : stream_(std::move(stream)),
      side_(side),
      peer_(std::move(peer)),
      group_(group) {
  if (!connects()) return;
  const auto hello = Hello(group);
  out_.assign(hello.begin(), hello.end());
  appended_ = out_.size();
}

// --- Lanes ------------------------------------------------------------------

Trunk::LaneState* Trunk::Find(ConnectionId connection) {
  const auto found = lanes_.find(connection);
  return found == lanes_.end() ? nullptr : &found->second;
}

ConnectionId Trunk::Owner(uint32_t number) const {
  const auto found = owners_.find(number);
  return found == owners_.end() ? ConnectionId() : found->second;
}

std::vector<ConnectionId> Trunk::connections() const {
  std::vector<ConnectionId> all;
  all.reserve(lanes_.size());
  for (const auto& [connection, state] : lanes_) all.push_back(connection);
  return all;
}

std::unique_ptr<Stream> Trunk::OpenLane(ConnectionId connection,
                                        uint32_t group) {
  auto lane = std::make_unique<Lane>(shared_from_this(), connection);
  LaneState& state = lanes_[connection];
  state.group = group;
  state.lane = lane.get();
  Hold(state);
  return lane;
}

void Trunk::Hold(LaneState& state) const {
  state.lane->is_held_ = !Carries(state.group);
}

std::vector<Trunk::HeldLane> Trunk::TakeHeld() {
  std::vector<HeldLane> held;
  for (auto& [connection, state] : lanes_) {
    if (state.lane == nullptr || !state.lane->is_held_) continue;
    held.push_back({connection, state.group});
    Hold(state);
  }
  return held;
}

void Trunk::MoveLane(ConnectionId connection, Trunk& to) {
  auto moving = lanes_.extract(connection);
  LaneState& state = moving.mapped();
  if (!std::exchange(state.is_readable, true)) --unreadable_;
  std::erase(waiting_, connection);
  state.lane->trunk_ = to.shared_from_this();
  to.Hold(state);
  to.lanes_.insert(std::move(moving));
}

std::unique_ptr<Stream> Trunk::AcceptLane(uint32_t number,
                                          ConnectionId connection) {
  lanes_[connection].number = number;
  owners_[number] = connection;
  return std::make_unique<Lane>(shared_from_this(), connection);
}

void Trunk::CloseLane(ConnectionId connection) {
  const auto found = lanes_.find(connection);
  if (found == lanes_.end()) return;
  EndSending(found->second);
  if (!found->second.is_readable) --unreadable_;
  owners_.erase(found->second.number);
  lanes_.erase(found);
}

// --- Sending ----------------------------------------------------------------

void Trunk::AppendFrame(uint32_t number, uint32_t bytes) {
  const auto header = TwoWords(number, bytes);
  out_.insert(out_.end(), header.begin(), header.end());
  appended_ += header.size();
}

void Trunk::EndSending(LaneState& state) {
  const bool is_known = state.number != 0;
  if (std::exchange(state.has_ended, true) || !is_known || !is_open()) return;
  AppendFrame(state.number, 0);
  state.end_position = appended_;
}

IoResult Trunk::Send(ConnectionId connection, LaneState& state,
                     std::span<iovec> from) {
  if (!is_ready()) return {};
  if (!has_room()) {
    AwaitRoom(connection);
    return {};
  }
  if (state.number == 0) {
    state.number = ++last_lane_;
    owners_[state.number] = connection;
  }
  size_t bytes = 0;
  for (const iovec& piece : from) bytes += piece.iov_len;
  bytes = std::min<size_t>(bytes, kFrameBytesMax);
  AppendFrame(state.number, static_cast<uint32_t>(bytes));
  const size_t at = out_.size();
  out_.resize(at + bytes);
  size_t copied = 0;
  for (const iovec& piece : from) {
    const size_t part = std::min(piece.iov_len, bytes - copied);
    if (part == 0) break;
    std::memcpy(out_.data() + at + copied, piece.iov_base, part);
    copied += part;
  }
  appended_ += bytes;
  state.end_position = appended_;
  if (senders_.empty() || senders_.back() != connection) {
    senders_.push_back(connection);
  }
  return {.outcome = IoOutcome::kSome, .bytes = bytes};
}

void Trunk::AwaitRoom(ConnectionId connection) {
  if (std::ranges::find(waiting_, connection) == waiting_.end()) {
    waiting_.push_back(connection);
  }
}

bool Trunk::Flush() {
  if (!is_open() || !is_ready()) return false;
  const uint64_t before = stream_->sent_bytes();
  if (stream_->has_unsent()) stream_->Flush();
  while (unsent() > 0) {
    iovec piece{out_.data() + out_sent_, unsent()};
    const IoResult result = stream_->Send({&piece, 1});
    // The end is found by receiving, after the peer's last bytes.
    if (result.outcome != IoOutcome::kSome) break;
    out_sent_ += result.bytes;
    taken_ += result.bytes;
  }
  if (unsent() == 0) {
    out_.clear();
    out_sent_ = 0;
  } else if (out_sent_ >= kUnsentBytesMax) {
    out_.erase(out_.begin(), out_.begin() + static_cast<int64_t>(out_sent_));
    out_sent_ = 0;
  }
  return stream_->sent_bytes() > before;
}

std::vector<ConnectionId> Trunk::TakeSenders() {
  std::vector<ConnectionId> senders = senders_;
  if (!has_unsent()) senders_.clear();
  return senders;
}

ConnectionId Trunk::TakeWaiting() {
  if (waiting_.empty() || !has_room()) return {};
  const ConnectionId next = waiting_.front();
  waiting_.pop_front();
  return next;
}

void Trunk::Watch() {
  stream_->Watch(MayBeRead(), unsent() > 0 || !waiting_.empty());
}

// --- Receiving --------------------------------------------------------------

bool Trunk::Take(std::span<const std::byte> bytes,
                 absl::FunctionRef<void(const Arrival&)> give) {
  if (start_bytes_ < start_.size()) {
    const size_t part = std::min(bytes.size(), start_.size() - start_bytes_);
    std::copy_n(bytes.begin(), part, start_.begin() + start_bytes_);
    start_bytes_ += part;
    bytes = bytes.subspan(part);
    if (start_bytes_ == start_.size() && !OnStart()) return false;
  }
  while (!bytes.empty()) {
    if (in_left_ == 0) {
      const size_t part =
          std::min(bytes.size(), header_.size() - header_bytes_);
      std::copy_n(bytes.begin(), part, header_.begin() + header_bytes_);
      header_bytes_ += part;
      bytes = bytes.subspan(part);
      if (header_bytes_ < header_.size()) break;
      header_bytes_ = 0;
      if (!OnFrame(give)) return false;
      continue;
    }
    const auto part = bytes.first(std::min<size_t>(bytes.size(), in_left_));
    bytes = bytes.subspan(part.size());
    in_left_ -= static_cast<uint32_t>(part.size());
    const ConnectionId owner = Owner(in_lane_);
    // A lane that is closed here drops what was on its way (TRK2).
    if (owner != ConnectionId()) {
      give({.number = in_lane_, .connection = owner, .bytes = part});
    }
  }
  return true;
}

bool Trunk::OnStart() {
  if (!connects()) return ReadHello(start_) == group_;
  const std::optional<uint32_t> adapters = ReadAnswer(start_);
  adapters_ = adapters.value_or(0);
  return adapters.has_value();
}

bool Trunk::OnFrame(absl::FunctionRef<void(const Arrival&)> give) {
  const uint64_t words = GetWord(header_.data());
  in_lane_ = static_cast<uint32_t>(words);
  in_left_ = static_cast<uint32_t>(words >> 32);
  if (in_lane_ == 0 || in_left_ > kFrameBytesMax) return false;
  if (in_lane_ > last_lane_) {
    // Only the side that connects opens lanes, one after the other.
    if (connects() || in_lane_ != last_lane_ + 1 || in_left_ == 0) return false;
    const bool is_full = lanes_.size() >= kLanesMax;
    if (is_full) return false;
    last_lane_ = in_lane_;
    give({.number = in_lane_});
    return true;
  }
  const ConnectionId owner = Owner(in_lane_);
  if (in_left_ == 0 && owner != ConnectionId()) {
    give({.number = in_lane_, .connection = owner, .is_end = true});
  }
  return true;
}

}  // namespace alpheus::fabric::tcp
