// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/wire_parts.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/mix.h"
#include "log/format/checksum.h"
#include "log/format/layout.h"

namespace alpheus::recovery {

namespace {

// Bits of the adapter's byte; on the wire, never renumber.
constexpr uint32_t kNoDdio = 1;
constexpr uint32_t kNativeFlush = 2;
constexpr uint32_t kAtomicWrite = 4;

// Returns the encoding of an unknown list.
MemberList NoList() { return {0, 0, 0, {}}; }

void PutMembers(ByteWriter& to, const MemberList& list) {
  ALPHEUS_CHECK(list.replica_count <= kMembersMax,
                "no configuration has more members");
  std::vector<Member> members = list.members;
  members.resize(list.replica_count);
  for (const Member& member : members) {
    to.Id(member.node);
    to.U64(member.incarnation);
  }
}

void PutSizes(ByteWriter& to, const MemberList& list) {
  to.U64(list.id);
  to.U32(list.replica_count);
  to.U32(list.write_quorum);
}

MemberList ReadSizes(ByteReader& from) {
  MemberList list;
  list.id = from.U64();
  list.replica_count = from.U32();
  list.write_quorum = from.U32();
  return list;
}

// Reads the members, if the sizes are possible.
void ReadMembers(ByteReader& from, MemberList& list) {
  if (!from.Expect(HasPossibleSizes(list))) return;
  for (uint32_t i = 0; i < list.replica_count; ++i) {
    const auto node = from.As<NodeId>();
    list.members.push_back({node, from.U64()});
  }
}

uint32_t SumOf(uint32_t magic, Uuid log_id, std::span<const std::byte> bytes) {
  const uint64_t seed = Mix(Mix(log_id.high, log_id.low), magic);
  return Crc32c(static_cast<uint32_t>(seed), bytes);
}

}  // namespace

void PutSum(ByteWriter& to, uint32_t magic, Uuid log_id) {
  to.U32(SumOf(magic, log_id, to.bytes()));
}

absl::StatusOr<std::span<const std::byte>> ReadSummed(
    const char* what, uint32_t magic, Uuid log_id,
    std::span<const std::byte> bytes) {
  if (bytes.size() < kSumBytes) {
    return absl::UnavailableError(
        absl::StrCat(what, " was damaged on the way: ", bytes.size(),
                     " bytes are left of it. Try again"));
  }
  const std::span<const std::byte> summed =
      bytes.first(bytes.size() - kSumBytes);
  uint32_t said = 0;
  std::memcpy(&said, bytes.last(kSumBytes).data(), kSumBytes);
  const uint32_t sum = SumOf(magic, log_id, summed);
  if (sum == said) return summed;
  // A rejection cuts the text, so that its front must be enough.
  return absl::UnavailableError(absl::StrCat(
      what, " was damaged on the way: sum ", absl::Hex(sum, absl::kZeroPad8),
      ", expected ", absl::Hex(said, absl::kZeroPad8), " of ", summed.size(),
      " bytes. Try again; if it happens again, check the network and the "
      "memory of both hosts"));
}

void Put(ByteWriter& to, const Configuration& configuration) {
  PutSizes(to, configuration);
  PutMembers(to, configuration);
  const MemberList from = configuration.made_from.value_or(NoList());
  PutSizes(to, from);
  PutMembers(to, from);
}

Configuration ReadConfiguration(ByteReader& from) {
  Configuration configuration{ReadSizes(from)};
  ReadMembers(from, configuration);
  MemberList made_from = ReadSizes(from);
  if (made_from == NoList()) return configuration;
  ReadMembers(from, made_from);
  configuration.made_from = std::move(made_from);
  return configuration;
}

void Put(ByteWriter& to, const LogPosition& position) {
  to.Id(position.lsn);
  to.Id(position.offset);
  to.U64(position.chain);
}

LogPosition ReadPosition(ByteReader& from) {
  LogPosition position;
  position.lsn = from.As<Lsn>();
  position.offset = from.As<RingOffset>();
  position.chain = from.U64();
  from.Expect(position.lsn.value >= 1 && position.offset.value < kOffsetEnd &&
              position.offset.value % kLineBytes == 0);
  return position;
}

void Put(ByteWriter& to, const EpochTable& table) {
  to.U32(static_cast<uint32_t>(table.entries().size()));
  to.Raw(table.Encode());
}

EpochTable ReadTable(ByteReader& from, Uuid log_id) {
  const uint64_t bytes = uint64_t{from.U32()} * sizeof(EpochEntryFormat);
  auto table = EpochTable::Decode(log_id, from.Raw(bytes));
  if (!from.Expect(table.ok())) return EpochTable::Empty(log_id);
  return *std::move(table);
}

// One byte for each axis; the byte of DDIO also says what the adapter can do.
void Put(ByteWriter& to, const replication::Platform& platform) {
  const uint32_t adapter = (platform.ddio ? 0 : kNoDdio) |
                           (platform.native_flush ? kNativeFlush : 0) |
                           (platform.atomic_write ? kAtomicWrite : 0);
  to.U32(static_cast<uint32_t>(platform.domain) | adapter << 8 |
         static_cast<uint32_t>(platform.receive_buffers) << 16 |
         static_cast<uint32_t>(platform.transport) << 24);
}

replication::Platform ReadPlatform(ByteReader& from) {
  const uint32_t axes = from.U32();
  const auto axis = [&](int index, auto max) {
    const uint32_t value = axes >> (8 * index) & 0xff;
    const bool is_known = from.Expect(value <= static_cast<uint32_t>(max));
    return static_cast<decltype(max)>(is_known ? value : 0);
  };
  replication::Platform platform;
  platform.domain = axis(0, replication::PersistenceDomain::kSystem);
  const uint32_t adapter = axis(1, kNoDdio | kNativeFlush | kAtomicWrite);
  platform.ddio = (adapter & kNoDdio) == 0;
  platform.native_flush = (adapter & kNativeFlush) != 0;
  platform.atomic_write = (adapter & kAtomicWrite) != 0;
  platform.receive_buffers = axis(2, replication::ReceiveBuffers::kPmem);
  platform.transport = axis(3, replication::Transport::kInfiniBand);
  return platform;
}

}  // namespace alpheus::recovery
