// SPDX-License-Identifier: Apache-2.0
#include "tests/recovery/replica/replica_world.h"

#include <cstring>

#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/mix.h"
#include "log/base/status_macros.h"
#include "log/core/ring/format_region.h"
#include "log/format/checksum.h"
#include "log/format/record.h"
#include "tests/support/fixtures/log_harness.h"

namespace alpheus::testing {
namespace {

Layout LayoutOf(const ReplicaWorldOptions& options) {
  return *Layout::ForRing(options.ring_capacity, options.table_capacity);
}

FormatIdentity Identity() {
  FormatIdentity identity;
  identity.cluster_id = kWorldCluster;
  identity.log_id = kWorldLog;
  identity.node = NodeId(1);
  identity.configuration.replica_count = 3;
  identity.configuration.write_quorum = 2;
  for (uint64_t node = 1; node <= 3; ++node) {
    identity.configuration.members.push_back({NodeId(node), 100 + node});
  }
  return identity;
}

void WriteHeader(std::byte* at, uint64_t seed, Lsn lsn, Epoch epoch,
                 RecordType type, uint64_t payload_bytes,
                 uint32_t payload_crc) {
  RecordHeader header{};
  header.lsn = lsn.value;
  header.epoch = epoch.value;
  header.payload_bytes = static_cast<uint32_t>(payload_bytes);
  header.magic = kRecordMagic;
  header.type = static_cast<uint8_t>(type);
  header.payload_crc = payload_crc;
  header.header_crc = HeaderChecksum(seed, header);
  std::memcpy(at, &header, kRecordHeaderBytes);
}

}  // namespace

void LogImage::OpenEpoch(Epoch epoch, uint64_t salt) {
  table_ = table_.With(
      {epoch, Mix(epoch.value, salt), end().lsn, end().offset, end().chain},
      head().lsn);
}

Lsn LogImage::Append(std::string_view payload) {
  const EpochEntry* owner = table_.Owner(end().lsn);
  const EpochKey& key = table_.KeyOf(owner);
  LogPosition next = end();
  const uint64_t bytes = RecordBytes(payload.size());
  if (bytes > ring().UntilEnd(next.offset)) {
    const uint64_t gap = ring().UntilEnd(next.offset);
    WriteHeader(ring().At(next.offset), key.Seed(next.lsn, next.offset),
                next.lsn, owner->epoch, RecordType::kPad,
                gap - kRecordHeaderBytes, 0);
    next.offset = next.offset + gap;
  }
  ALPHEUS_CHECK(next.offset + bytes <= head().offset + ring().capacity(),
                "the ring of a test has room");
  const uint64_t seed = key.Seed(next.lsn, next.offset);
  std::byte* const at = ring().At(next.offset);
  std::memset(at, 0, bytes);
  std::memcpy(at + kRecordHeaderBytes, payload.data(), payload.size());
  WriteHeader(at, seed, next.lsn, owner->epoch, RecordType::kData,
              payload.size(),
              PayloadChecksum(seed, Crc32c(kCrcStart, AsBytes(payload))));
  next.chain = ExtendChain(next.chain, LoadHeader(at).header_crc());
  next.offset = next.offset + bytes;
  next.lsn = next.lsn + 1;
  positions_.push_back(next);
  return next.lsn - 1;
}

void LogImage::CleanThrough(Lsn lsn) {
  while (head().lsn <= lsn) positions_.erase(positions_.begin());
}

void LogImage::Truncate(Lsn lsn) {
  while (end().lsn > lsn + 1) positions_.pop_back();
}

const LogPosition& LogImage::PositionOf(Lsn lsn) const {
  return positions_[lsn - head().lsn];
}

recovery::Installation LogImage::ToInstall() const {
  return {table_.entries().back().epoch, table_, head(), end(),
          BoundsWith(head()).ceiling};
}

ReplicaWorld::ReplicaWorld(const Options& options)
    : pmem_(LayoutOf(options).region_bytes) {
  const absl::Status formatted =
      FormatRegion(pmem_, pmem_.region(), LayoutOf(options), Identity());
  ALPHEUS_CHECK(formatted.ok(), "modelled memory does not fail unasked");
}

absl::Status ReplicaWorld::Open(const recovery::LocalReplicaOptions& options) {
  replica_.reset();
  ALPHEUS_ASSIGN_OR_RETURN(
      replica_, recovery::LocalReplica<model::ModelPersistence>::Open(
                    pmem_, region(), options));
  return absl::OkStatus();
}

void ReplicaWorld::PowerCut() { Reset(pmem_.CutKeepingNone()); }

std::vector<std::byte> ReplicaWorld::Snapshot() {
  return {region().begin(), region().end()};
}

void ReplicaWorld::Reset(std::span<const std::byte> image) {
  replica_.reset();
  pmem_.Reset(image);
}

quorum::Promise ReplicaWorld::PromiseFor(Epoch epoch) {
  return {epoch, {NodeId(2), 77}};
}

absl::Status ReplicaWorld::AcceptPromise(Epoch epoch) {
  return replica_->AcceptPromise(PromiseFor(epoch)).status();
}

void ReplicaWorld::CopyRecords(const LogImage& log, Lsn first, Lsn end) {
  const Ring ring = replica_->ring();
  RingOffset at = log.PositionOf(first).offset;
  const RingOffset stop = log.PositionOf(end).offset;
  for (; at < stop; at = at + kLineBytes) {
    pmem_.Copy(ring.At(at), log.ring().At(at), kLineBytes);
  }
}

void ReplicaWorld::CopyAll(const LogImage& log) {
  CopyRecords(log, log.head().lsn, log.end().lsn);
}

absl::Status ReplicaWorld::InstallAll(const LogImage& log) {
  const recovery::Installation installation = log.ToInstall();
  ALPHEUS_RETURN_IF_ERROR(AcceptPromise(installation.epoch));
  CopyAll(log);
  return replica_->Install(installation);
}

RegionState ReplicaWorld::State() {
  return *ReadRegionState(region(), "model");
}

std::vector<std::string> ReplicaWorld::Payloads() {
  return LivePayloads(region());
}

}  // namespace alpheus::testing
