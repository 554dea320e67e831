// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/compare.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "log/base/bytes.h"
#include "log/core/ring/region_state.h"

namespace alpheus::testing {
namespace {

// A record as ScanLog gave it to its visitor.
struct Visited {
  Lsn lsn;
  Epoch epoch;
  RingOffset offset;
  bool cleaned = false;
  bool aborted = false;
  std::vector<std::byte> payload;
};

void ExpectSameRecords(const std::vector<Visited>& production,
                       const std::vector<naive::Record>& naive) {
  ExpectSame("records visited", production.size(), naive.size());
  for (size_t i = 0; i < naive.size(); ++i) {
    const Visited& p = production[i];
    const naive::Record& n = naive[i];
    ExpectSame("record's LSN", p.lsn, n.lsn);
    ExpectSame("record's epoch", p.epoch, n.epoch);
    ExpectSame("record's offset", p.offset, n.offset);
    ExpectSame("record's cleaned", p.cleaned, n.cleaned);
    ExpectSame("record's aborted", p.aborted, n.type == 3);
    ExpectSame("record's payload bytes", p.payload.size(), n.payload.size());
    ExpectTrue(p.payload == n.payload, "record's payload is the same");
  }
}

void ExpectSameEnd(const ScanResult& p, const naive::ScanOutcome& n) {
  ExpectSame("scan's end LSN", p.end.lsn, n.end.lsn);
  ExpectSame("scan's end offset", p.end.offset, n.end.offset);
  ExpectSame("scan's end chain", p.end.chain, n.end.chain);
  ExpectSame("scan's verdict", TailVerdictName(p.verdict), n.verdict);
  ExpectSame("proven LSN", p.proven_lsn, n.proven_lsn);
  ExpectSame("LSN named durable", p.named_durable_lsn, n.named_durable_lsn);
  ExpectSame("bad payload", p.bad_payload, n.bad_payload);
  ExpectSame("bad bytes", p.bad_bytes, n.bad_bytes);
  ExpectSame("cut records", p.cut_records, n.cut_records);
  ExpectSame("last LSN cut", p.cut_last_lsn, n.cut_last_lsn);
}

void ExpectSameCounts(const ScanResult& p, const naive::ScanOutcome& n) {
  ExpectSame("data records", p.data_records, n.data_records);
  ExpectSame("cleaned records", p.cleaned_records, n.cleaned_records);
  ExpectSame("aborted records", p.aborted_records, n.aborted_records);
  ExpectSame("payload bytes", p.payload_bytes, n.payload_bytes);
  ExpectSame("damaged PADs", p.damaged_pads.size(), n.damaged_pads.size());
  for (size_t i = 0; i < n.damaged_pads.size(); ++i) {
    ExpectSame("LSN behind a damaged PAD", p.damaged_pads[i].next_lsn,
               n.damaged_pads[i].first);
    ExpectSame("offset of a damaged PAD", p.damaged_pads[i].offset,
               n.damaged_pads[i].second);
  }
}

void ExpectSameBehind(const ScanInput& input, const naive::ScanTask& task,
                      const naive::ScanOutcome& outcome) {
  // From the end, as salvage asks, and from the head, which finds the most.
  for (const naive::Position& from : {outcome.end, task.head}) {
    const LogPosition found = FindRecordAfter(
        input, {Lsn(from.lsn), RingOffset(from.offset), from.chain});
    const std::optional<naive::Record> record = naive::FirstBehind(task, from);
    ExpectSame("LSN found behind", found.lsn, record ? record->lsn : 0);
    if (record) {
      ExpectSame("offset found behind", found.offset, record->offset);
    }
  }
}

void ExpectSameFaults(const std::vector<std::string>& production,
                      const std::vector<std::string>& naive) {
  ExpectSame("number of bad copies", production.size(), naive.size());
  for (size_t i = 0; i < naive.size(); ++i) {
    // The sentence goes on with the place.
    ExpectTrue(production[i].starts_with(naive[i]), "bad copy is named");
  }
}

void ExpectSameReading(std::span<std::byte> region, ReadingMode mode,
                       naive::Mode naive_mode) {
  const auto p = ReadRegionState(region, "fuzz", mode);
  const naive::Region n = naive::ReadRegion(region, naive_mode);
  if (p.ok() != (n.outcome == naive::Outcome::kGood)) {
    Difference("region can be read", p.status().ToString(),
               std::string(naive::OutcomeName(n.outcome)) + ": " + n.why);
  }
  ExpectSameOutcome("region", p.status(), n.outcome);
  if (!p.ok()) return;
  ExpectSameSuperline(p->superline, n.superline);
  ExpectSame("superline's seq",
             p->superline_cell.copies[*p->superline_cell.newest].seq,
             n.superline_seq);
  ExpectSameTable(p->table, n.table);
  ExpectSame("table's copy", p->table_copy, n.table_copy);
  for (size_t line = 0; line < 2; ++line) {
    ExpectSameWatermark(p->watermarks.lines[line], n.watermarks[line]);
  }
  ExpectSame("proven by the region", p->ProvenLsn(), n.proven_lsn);
  ExpectSame("closed cleanly", p->closed_cleanly, n.closed_cleanly);
  ExpectSameFaults(p->single_faults, n.bad_copies);
  ExpectSameScan(ScanInputOf(region, *p), naive::TaskOf(n, region));
}

void ExpectSameMembers(const std::vector<Member>& p,
                       const std::vector<naive::Member>& n) {
  ExpectSame("members", p.size(), n.size());
  for (size_t i = 0; i < n.size(); ++i) {
    ExpectSame("member's node", p[i].node, n[i].node);
    ExpectSame("member's incarnation", p[i].incarnation, n[i].incarnation);
  }
}

}  // namespace

void Difference(const std::string& what, const std::string& production,
                const std::string& naive) {
  std::fprintf(stderr, "fuzz: %s: production %s, naive %s\n", what.c_str(),
               production.c_str(), naive.c_str());
  std::abort();
}

naive::LogId NaiveId(Uuid id) { return {id.high, id.low}; }

void ExpectSameOutcome(const char* what, const absl::Status& production,
                       naive::Outcome naive) {
  absl::StatusCode expected = absl::StatusCode::kOk;
  if (naive == naive::Outcome::kDamaged) {
    expected = absl::StatusCode::kDataLoss;
  } else if (naive == naive::Outcome::kOtherVersion) {
    expected = absl::StatusCode::kUnimplemented;
  }
  if (production.code() != expected) {
    Difference(what, production.ToString(), naive::OutcomeName(naive));
  }
}

void ExpectSameSuperline(const Superline& p, const naive::Superline& n) {
  ExpectTrue(NaiveId(p.cluster_id) == n.cluster_id, "cluster id");
  ExpectTrue(NaiveId(p.log_id) == n.log_id, "log id");
  ExpectSame("node", p.node, n.node);
  ExpectSame("incarnation", p.incarnation, n.incarnation);
  ExpectSame("region bytes", p.region_bytes, n.region_bytes);
  ExpectSame("ring offset", p.ring_offset, n.ring_offset);
  ExpectSame("ring capacity", p.ring_capacity, n.ring_capacity);
  ExpectSame("table capacity", p.table_capacity, n.table_capacity);
  ExpectSame("promised epoch", p.promised_epoch, n.promised_epoch);
  ExpectSame("promised node", p.promised_node, n.promised_node);
  ExpectSame("promised incarnation", p.promised_incarnation,
             n.promised_incarnation);
  ExpectSame("log epoch", p.log_epoch, n.log_epoch);
  ExpectSame("table seq", p.table_seq, n.table_seq);
  ExpectSame("head LSN", p.head_lsn, n.head_lsn);
  ExpectSame("head offset", p.head_offset, n.head_offset);
  ExpectSame("head chain", p.head_chain, n.head_chain);
  ExpectSame("repairing", p.repairing, (n.flags & 1) != 0);
  ExpectSame("deletion", static_cast<uint32_t>(p.deletion), n.deletion);
  ExpectSame("unsafe shutdowns", p.unsafe_shutdown_count, n.unsafe_shutdowns);
  ExpectSame("ceiling", p.ceiling, n.ceiling);
  ExpectSame("configuration id", p.configuration.id, n.configuration_id);
  ExpectSame("N", p.configuration.replica_count, n.replica_count);
  ExpectSame("W", p.configuration.write_quorum, n.write_quorum);
  ExpectSameMembers(p.configuration.members, n.members);
  const std::optional<MemberList>& from = p.configuration.made_from;
  ExpectSame("made from one", from.has_value(), n.from_replica_count != 0);
  if (!from) return;
  ExpectSame("id of that", from->id, n.from_id);
  ExpectSame("N of that", from->replica_count, n.from_replica_count);
  ExpectSame("W of that", from->write_quorum, n.from_write_quorum);
  ExpectSameMembers(from->members, n.from_members);
}

void ExpectSameTable(const EpochTable& p, const naive::EpochTable& n) {
  ExpectSame("epochs", p.entries().size(), n.size());
  for (size_t i = 0; i < n.size(); ++i) {
    const EpochEntry& entry = p.entries()[i];
    ExpectSame("epoch", entry.epoch, n[i].epoch);
    ExpectSame("nonce", entry.nonce, n[i].nonce);
    ExpectSame("start LSN", entry.start_lsn, n[i].start_lsn);
    ExpectSame("start offset", entry.start_offset, n[i].start_offset);
    ExpectSame("start chain", entry.start_chain, n[i].start_chain);
  }
}

void ExpectSameWatermark(const std::optional<Watermark>& p,
                         const std::optional<naive::Watermark>& n) {
  ExpectSame("watermark holds", p.has_value(), n.has_value());
  if (!p) return;
  ExpectSame("watermark's epoch", p->epoch, n->epoch);
  ExpectSame("watermark's LSN", p->lsn, n->lsn);
  ExpectSame("watermark's offset", p->place.offset, n->offset);
  ExpectSame("watermark's chain", p->place.chain, n->chain);
}

naive::ScanOutcome ExpectSameScan(const ScanInput& input,
                                  const naive::ScanTask& task) {
  std::vector<Visited> visited;
  const ScanResult result =
      ScanLog(input, [&](const LogPosition&, const RecordView& record) {
        visited.push_back({record.lsn(),
                           record.epoch(),
                           record.offset,
                           record.cleaned,
                           record.aborted(),
                           {record.payload.begin(), record.payload.end()}});
      });
  naive::ScanOutcome outcome = naive::Scan(task);
  ExpectSameRecords(visited, outcome.records);
  ExpectSameEnd(result, outcome);
  ExpectSameCounts(result, outcome);
  ExpectSameBehind(input, task, outcome);
  // A visitor must not change what is found.
  ExpectTrue(ScanLog(input).end == result.end, "scan without visitor");
  return outcome;
}

void ExpectSameRegion(std::span<std::byte> region) {
  ExpectSameReading(region, ReadingMode::kExact, naive::Mode::kExact);
  ExpectSameReading(region, ReadingMode::kSalvage, naive::Mode::kSalvage);
}

}  // namespace alpheus::testing
