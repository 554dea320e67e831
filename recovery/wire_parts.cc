// SPDX-License-Identifier: Apache-2.0
#include "recovery/wire_parts.h"

#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/format/layout.h"

namespace alpheus {

void Put(ByteWriter& to, const Configuration& configuration) {
  ALPHEUS_CHECK(configuration.replica_count <= kMembersMax,
                "no configuration has more members");
  to.U64(configuration.id);
  to.U32(configuration.replica_count);
  to.U32(configuration.write_quorum);
  std::vector<Member> members = configuration.members;
  members.resize(configuration.replica_count);
  for (const Member& member : members) {
    to.Id(member.node);
    to.U64(member.incarnation);
  }
}

Configuration TakeConfiguration(ByteReader& from) {
  Configuration configuration;
  configuration.id = from.U64();
  configuration.replica_count = from.U32();
  configuration.write_quorum = from.U32();
  if (!from.Expect(configuration.replica_count >= 1 &&
                   configuration.replica_count <= kMembersMax &&
                   configuration.write_quorum >= 1 &&
                   configuration.write_quorum <= configuration.replica_count)) {
    return {};
  }
  for (uint32_t i = 0; i < configuration.replica_count; ++i) {
    const auto node = from.As<NodeId>();
    configuration.members.push_back({node, from.U64()});
  }
  return configuration;
}

void Put(ByteWriter& to, const LogPosition& position) {
  to.Id(position.lsn);
  to.Id(position.offset);
  to.U64(position.chain);
}

LogPosition TakePosition(ByteReader& from) {
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

EpochTable TakeTable(ByteReader& from, Uuid log_id) {
  const uint64_t bytes = uint64_t{from.U32()} * sizeof(EpochEntryFormat);
  auto table = EpochTable::Decode(log_id, from.Raw(bytes));
  if (!from.Expect(table.ok())) return EpochTable::Empty(log_id);
  return *std::move(table);
}

}  // namespace alpheus
