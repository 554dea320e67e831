// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/faults/region_damage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

#include "log/base/check.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_state.h"
#include "log/format/atomic_cell.h"
#include "log/format/record.h"
#include "log/format/superline.h"
#include "recovery/replica/state_report_scan.h"
#include "tools/model/memory/crash_model.h"

namespace alpheus::sim {
namespace {

// Readers change nothing, and take what could be changed.
std::span<std::byte> BytesOf(const RegionImage& image) {
  return {const_cast<std::byte*>(image.data()), image.size()};
}

RecordHeader HeaderAt(const RegionImage& image, size_t at) {
  RecordHeader header;
  std::memcpy(&header, image.data() + at, sizeof(header));
  return header;
}

ImageRecord RecordOf(const RegionImage& image, const RegionState& state,
                     Lsn lsn, const recovery::ReportedRecord& reported) {
  const Ring ring(nullptr, state.superline.ring_capacity);
  ImageRecord record;
  record.lsn = lsn;
  record.epoch = reported.epoch;
  record.at = state.superline.ring_offset + ring.Place(reported.offset);
  record.bytes = reported.lines * kLineBytes;
  const RecordHeader header = HeaderAt(image, record.at);
  record.said = sizeof(header);
  if (header.type == static_cast<uint8_t>(RecordType::kData)) {
    record.said += header.payload_bytes;
  }
  return record;
}

}  // namespace

std::optional<ImageLog> ReadImage(const RegionImage& image) {
  const absl::StatusOr<RegionState> state =
      ReadRegionState(BytesOf(image), "image");
  if (!state.ok()) return std::nullopt;
  ImageLog log;
  log.promised = state->superline.promised_epoch;
  log.log_epoch = state->superline.log_epoch;
  log.head = state->head();
  log.repairing = state->superline.repairing;
  RegionState readable = *state;
  // Its records lie there all the same.
  readable.superline.repairing = false;
  readable.superline.configuration.members = {
      {readable.superline.node, readable.superline.incarnation}};
  const recovery::StateReport report =
      recovery::ReportOfRegion(BytesOf(image), readable, {});
  for (const recovery::VerdictRun& run : report.runs) {
    if (run.verdict != recovery::Verdict::kHave) continue;
    for (uint64_t i = 0; i < run.end - run.first; ++i) {
      log.records.push_back(RecordOf(image, *state, run.first + i,
                                     report.records[run.first_record + i]));
    }
  }
  log.proven = state->ProvenLsn();
  return log;
}

RegionImage FormattedRegion(const RegionIdentity& identity,
                            uint64_t incarnation,
                            const Configuration& configuration,
                            const Layout& layout) {
  model::ModelPersistence pmem(layout.region_bytes);
  FormatIdentity format;
  format.cluster_id = identity.cluster_id;
  format.log_id = identity.log_id;
  format.node = identity.node;
  format.configuration.members = {{identity.node, incarnation}};
  ALPHEUS_CHECK(FormatRegion(pmem, pmem.region(), layout, format).ok(),
                "modelled memory does not fail unasked");
  const CellState cell = ReadCell(SuperlinePlace(pmem.region()));
  absl::StatusOr<Superline> superline =
      DecodeSuperline(cell.copies[*cell.newest].content);
  superline->configuration = configuration;
  ALPHEUS_CHECK(
      WriteCell(pmem, SuperlinePlace(pmem.region()), cell.newest,
                cell.copies[*cell.newest].seq + 1, EncodeSuperline(*superline)),
      "modelled memory does not fail unasked");
  return pmem.CutKeepingNone();
}

RegionImage OfAnotherFormat(RegionImage image) {
  const CellState cell = ReadCell(SuperlinePlace(image));
  std::vector<std::byte> content = cell.copies[*cell.newest].content;
  const uint32_t version = kDeletionFormatVersion + 1;
  std::memcpy(content.data(), &version, sizeof(version));
  model::ModelPersistence pmem(image);
  ALPHEUS_CHECK(WriteCell(pmem, SuperlinePlace(pmem.region()), cell.newest,
                          cell.copies[*cell.newest].seq + 1, content),
                "modelled memory does not fail unasked");
  return pmem.CutKeepingNone();
}

namespace {

const ImageRecord& AnyOf(const ImageLog& log, RandomSource& random) {
  return log.records[random.Below(log.records.size())];
}

// Returns a place in a record, or, one time in eight, before the ring.
size_t AnyPlace(const ImageLog& log, const Layout& layout,
                RandomSource& random) {
  if (log.records.empty() || random.Below(8) == 0) {
    return random.Below(layout.ring_offset);
  }
  const ImageRecord& record = AnyOf(log, random);
  return record.at + random.Below(record.said);
}

void Poison(size_t at, RandomSource& random, RegionImage& image) {
  constexpr size_t kUnits[] = {8, kLineBytes, 256, kPageBytes};
  const size_t unit = kUnits[random.Below(std::size(kUnits))];
  const size_t first = at / unit * unit;
  const size_t end = std::min(first + unit, image.size());
  const uint64_t way = random.Below(3);
  for (size_t i = first; i < end; ++i) {
    const uint64_t value = way == 0   ? 0
                           : way == 1 ? 0xff
                                      : random.Next() & 0xff;
    image[i] = std::byte(value);
  }
}

void LoseLine(size_t at, const RegionImage& older, RandomSource& random,
              RegionImage& image) {
  std::byte* const line = image.data() + at / kLineBytes * kLineBytes;
  if (random.Below(2) == 0) {
    std::memset(line, 0, kLineBytes);
  } else {
    std::memcpy(line, older.data() + at / kLineBytes * kLineBytes, kLineBytes);
  }
}

void Misdirect(size_t from, size_t to, size_t bytes, RandomSource& random,
               RegionImage& image) {
  if (random.Below(2) == 0) {
    std::memmove(image.data() + to, image.data() + from, bytes);
    return;
  }
  const RegionImage kept(
      image.begin() + static_cast<std::ptrdiff_t>(to),
      image.begin() + static_cast<std::ptrdiff_t>(to + bytes));
  std::memmove(image.data() + to, image.data() + from, bytes);
  std::memcpy(image.data() + from, kept.data(), bytes);
}

}  // namespace

void Damage(ByteDamage damage, const ImageLog& log, const Layout& layout,
            const RegionImage& older, RandomSource& random,
            RegionImage& image) {
  const size_t at = AnyPlace(log, layout, random);
  switch (damage) {
    case ByteDamage::kFlipBit:
      image[at] ^= std::byte(1u << random.Below(8));
      return;
    case ByteDamage::kPoison:
      return Poison(at, random, image);
    case ByteDamage::kLostLine:
      return LoseLine(at, older, random, image);
    case ByteDamage::kMisdirectLine: {
      const size_t to = AnyPlace(log, layout, random);
      return Misdirect(at / kLineBytes * kLineBytes,
                       to / kLineBytes * kLineBytes, kLineBytes, random, image);
    }
    case ByteDamage::kMisdirectRecord: {
      if (log.records.empty()) return;
      const ImageRecord& from = AnyOf(log, random);
      const ImageRecord& to = AnyOf(log, random);
      return Misdirect(from.at, to.at, std::min(from.bytes, to.bytes), random,
                       image);
    }
  }
}

std::optional<Lacks> LacksOf(const ImageLog& log, const RegionImage& before,
                             const RegionImage& after) {
  const auto was = ReadRegionState(BytesOf(before), "before");
  const auto is = ReadRegionState(BytesOf(after), "after");
  if (!was.ok() || !is.ok() || was->superline != is->superline ||
      was->table.entries() != is->table.entries()) {
    return std::nullopt;
  }
  Lacks lacks;
  // Watermark, the start of the epoch, and later records prove a record (P-H9).
  Lsn proven = is->ProvenLsn();
  for (auto record = log.records.rbegin(); record != log.records.rend();
       ++record) {
    if (std::memcmp(before.data() + record->at, after.data() + record->at,
                    record->said) != 0) {
      const std::byte* const bytes = before.data() + record->at;
      lacks.emplace(record->lsn.value,
                    Lack{.is_proven = record->lsn <= proven,
                         .epoch = record->epoch,
                         .at = record->at,
                         .bytes = {bytes, bytes + record->said}});
      continue;
    }
    const RecordHeader header = HeaderAt(after, record->at);
    proven = std::max(proven, Lsn(header.durable_lsn));
  }
  return lacks;
}

}  // namespace alpheus::sim
