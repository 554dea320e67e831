// SPDX-License-Identifier: Apache-2.0
// Fuzzes what replicas, primaries and clients of a node's memory take from each
// other: messages, answers, and the private data of a connection. The first
// byte chooses which; behind it lie the bytes themselves, for most choices with
// the right first words put in front of them. Answers also come from a list of
// verdicts, with one byte changed. Sums are put behind what the input has, or
// nothing would be decoded. A report that decodes is chosen from, and what a
// repair would copy is looked at.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "recovery/opening/chooser.h"
#include "recovery/opening/copy_ranges.h"
#include "recovery/opening/opening_quorums.h"
#include "recovery/opening/repair_plan.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/client_messages.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/state_report_wire.h"
#include "recovery/protocol/wire_parts.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"

namespace alpheus::testing {
namespace {

constexpr Uuid kLogId{7, 8};

std::vector<std::byte> BytesOf(std::span<const uint8_t> raw) {
  std::vector<std::byte> bytes(raw.size());
  std::ranges::transform(raw, bytes.begin(),
                         [](uint8_t b) { return std::byte{b}; });
  return bytes;
}

// The first `bytes` bytes of what an encoder makes, then the input.
std::vector<std::byte> Behind(std::span<const std::byte> front, size_t bytes,
                              FuzzInput& input) {
  std::vector<std::byte> all(front.begin(),
                             front.begin() + static_cast<ptrdiff_t>(bytes));
  const std::vector<std::byte> rest = BytesOf(input.rest());
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

// With the sum of what their first word says that they are.
std::vector<std::byte> Summed(std::span<const std::byte> bytes, Uuid log_id) {
  recovery::ByteWriter to;
  to.Raw(bytes);
  recovery::PutSum(to, recovery::ByteReader(bytes).U32(), log_id);
  return to.Take();
}

void FuzzMessage(std::span<const std::byte> unsummed) {
  // MSG1.
  ExpectTrue(!recovery::DecodeMessage({8, 9}, Summed(unsummed, kLogId)).ok(),
             "a message of another log is none");
  const std::vector<std::byte> bytes = Summed(unsummed, kLogId);
  const auto message = recovery::DecodeMessage(kLogId, bytes);
  if (!message.ok()) return;
  const auto again = recovery::EncodeMessage(kLogId, *message);
  ExpectTrue(std::ranges::equal(again, bytes),
             "a message that decodes is the encoding of what it says");
  ExpectTrue(*recovery::DecodeMessage(kLogId, again) == *message,
             "what is encoded decodes as it was");
}

// An opener's part, with a second member that has nothing if there is one (CH5
// of chooser.h).
void FuzzChoice(recovery::StateReport report) {
  const Configuration list = report.configuration;
  const uint64_t capacity = report.ring_capacity;
  if (list.members.empty()) return;
  report.node = list.members[0].node;
  report.incarnation = list.members[0].incarnation;
  // The two that opening_peer.h checks.
  const std::vector<EpochEntry>& entries = report.table.entries();
  report.log_epoch = entries.empty() ? Epoch(0) : entries.back().epoch;
  if (report.log_epoch.value >= uint64_t{1} << 62) return;
  std::vector<recovery::StateReport> reports = {std::move(report)};
  if (list.members.size() > 1) {
    recovery::StateReport& other = reports.emplace_back();
    other.node = list.members[1].node;
    other.incarnation = list.members[1].incarnation;
    other.configuration = list;
    other.ring_capacity = capacity;
  }
  const quorum::QuorumSizes sizes = recovery::SizesOf(list);
  const auto decision = recovery::Choose(sizes, reports);
  if (!decision.ok() || decision->outcome != recovery::Outcome::kChosen) return;
  const recovery::RepairPlan plan = recovery::PlanRepair(
      sizes, *decision, reports, {kLogId, decision->epoch + 1, 1, list});
  for (const recovery::ReplicaRepair& repair : plan.repairs) {
    for (const recovery::CopyRange& range :
         recovery::RangesOf(*decision, reports, repair.copies, capacity)) {
      ExpectTrue(range.bytes > 0 && range.bytes <= capacity &&
                     range.place <= capacity - range.bytes,
                 "what is copied lies in the ring");
    }
  }
}

void FuzzStateReport(std::span<const std::byte> unsummed) {
  const std::vector<std::byte> bytes = Summed(unsummed, kLogId);
  const auto report = recovery::DecodeStateReport(kLogId, bytes);
  if (!report.ok()) return;
  ExpectTrue(
      bytes.size() <= recovery::StateReportBytesMax(report->ring_capacity),
      "a report's size is bounded by its ring");
  ExpectTrue(
      std::ranges::equal(recovery::EncodeStateReport(kLogId, *report), bytes),
      "a report that decodes is the encoding of what it says");
  // Runs may be long, but their ends are few.
  recovery::VerdictReader reader(*report);
  for (const recovery::VerdictRun& run : report->runs) {
    for (const Lsn lsn : {run.first, run.end - 1}) {
      const recovery::VerdictReader::Seen seen = reader.At(lsn);
      ExpectTrue(
          !report->knows() || (run.verdict == recovery::Verdict::kHave) ==
                                  (seen.record != nullptr),
          "a have has a record");
    }
  }
  FuzzChoice(*report);
}

recovery::StateReport EmptyReport() {
  recovery::StateReport report;
  report.configuration.members = {{NodeId(1), 1}};
  report.ring_capacity = 4096;
  report.table =
      EpochTable::Empty(kLogId).With({Epoch(1), 1, Lsn(1), {}, 0}, Lsn(1));
  return report;
}

void FuzzBuiltStateReport(FuzzInput& input) {
  recovery::StateReport report = EmptyReport();
  const uint64_t changed = input.Below(512);
  const uint8_t change = input.Byte();
  RingOffset at;
  while (!input.empty()) {
    const uint8_t choice = input.Byte();
    if (choice % 5 == 0) {
      recovery::AddRecord(&report, {Epoch(1), at, choice, 1U + choice / 64U});
      at = report.records.back().end();
    } else {
      recovery::AddVerdict(&report, static_cast<recovery::Verdict>(choice % 5),
                           1 + choice / 64);
    }
  }
  std::vector<std::byte> bytes = recovery::EncodeStateReport(kLogId, report);
  bytes.resize(bytes.size() - recovery::kSumBytes);
  if (changed < bytes.size()) bytes[changed] ^= std::byte{change};
  FuzzStateReport(bytes);
}

void FuzzPrivateData(const std::string& unsummed) {
  const std::string bytes(AsText(Summed(AsBytes(unsummed), Uuid())));
  if (const auto hello = recovery::DecodeHello(bytes); hello.ok()) {
    ExpectTrue(recovery::EncodeHello(*hello) == bytes,
               "a hello is its encoding");
  }
  if (const auto server_hello = recovery::DecodeServerHello(bytes);
      server_hello.ok()) {
    ExpectTrue(recovery::EncodeServerHello(*server_hello) == bytes,
               "a server hello is its encoding");
  }
  const absl::Status why = recovery::DecodeRejection(unsummed);
  ExpectTrue(!why.ok(), "a rejection is never OK");
  const std::string again = recovery::EncodeRejection(why);
  ExpectTrue(again.size() <= recovery::kHelloBytes, "a rejection fits");
  const absl::Status cut = recovery::DecodeRejection(again);
  ExpectTrue(
      cut.code() == why.code() && recovery::EncodeRejection(cut) == again,
      "a rejection that was cut stays as it is");
}

// A second reading of a client's message, field by field, that shares nothing
// with the decoder but the sum. Returns whether these bytes, without their sum,
// are one.
bool IsClientMessage(std::span<const std::byte> bytes) {
  size_t at = 0;
  bool is_short = false;
  const auto number = [&](size_t size) {
    uint64_t value = 0;
    if (bytes.size() - at < size) {
      is_short = true;
      return value;
    }
    for (size_t i = 0; i < size; ++i) {
      value |= std::to_integer<uint64_t>(bytes[at + i]) << (8 * i);
    }
    at += size;
    return value;
  };
  const auto text = [&](uint64_t least, uint64_t most) {
    const uint64_t size = number(4);
    const bool fits = size <= bytes.size() - at;
    if (fits) at += size;
    return fits && size >= least && size <= most;
  };
  bool is_good = number(4) == 0x4d435041;
  switch (number(4)) {
    case 1: {
      const uint64_t high = number(8);
      const uint64_t low = number(8);
      is_good = is_good && (high != 0 || low != 0) && text(1, 128);
      break;
    }
    case 2:
      for (int i = 0; i < 4; ++i) number(8);
      break;
    case 3:
      is_good = is_good && number(4) <= 1 && text(1, 64);
      break;
    case 4: {
      is_good = is_good && number(8) != 0 && number(8) != 0;
      const uint64_t domain = number(1);
      const uint64_t adapter = number(1);
      const uint64_t buffers = number(1);
      const uint64_t transport = number(1);
      const uint64_t session = number(8);
      const uint64_t credits = number(4);
      const uint64_t most = number(4);
      const bool is_of_reads = domain + adapter + buffers + transport == 0 &&
                               credits == 0 && most == 0;
      const bool is_of_updates = domain <= 2 && adapter <= 7 && buffers <= 1 &&
                                 transport <= 2 && credits >= 2 && most >= 64 &&
                                 most <= 65536;
      is_good = is_good && (session == 0 ? is_of_reads : is_of_updates);
      break;
    }
    case 5: {
      const uint64_t code = number(4);
      is_good = is_good && code >= 1 && code <= 16 && text(0, 256);
      break;
    }
    default:
      return false;
  }
  return is_good && !is_short && at == bytes.size();
}

void FuzzClientMessage(std::span<const std::byte> unsummed) {
  // CLM1.
  ExpectTrue(
      !recovery::DecodeClientMessage({8, 9}, Summed(unsummed, kLogId)).ok(),
      "a client's message of another log is none");
  const std::vector<std::byte> bytes = Summed(unsummed, kLogId);
  const auto message = recovery::DecodeClientMessage(kLogId, bytes);
  ExpectTrue(message.ok() == IsClientMessage(unsummed),
             "two readers of a client's message agree");
  if (!message.ok()) return;
  ExpectTrue(std::ranges::equal(recovery::EncodeClientMessage(kLogId, *message),
                                bytes),
             "a client's message that decodes is the encoding of what it says");
}

void FuzzClientData(const std::string& unsummed) {
  const std::string bytes(AsText(Summed(AsBytes(unsummed), Uuid())));
  if (const auto hello = recovery::DecodeClientHello(bytes); hello.ok()) {
    ExpectTrue(recovery::EncodeClientHello(*hello) == bytes &&
                   recovery::IsClientHello(bytes),
               "a client's hello is its encoding");
  }
  if (const auto welcome = recovery::DecodeClientWelcome(bytes); welcome.ok()) {
    ExpectTrue(recovery::EncodeClientWelcome(*welcome) == bytes,
               "a client's welcome is its encoding");
  }
  const absl::Status why = recovery::DecodeClientRejection(bytes);
  ExpectTrue(!why.ok(), "a client's rejection is never OK");
  const std::string again = recovery::EncodeClientRejection(why);
  ExpectTrue(again.size() <= recovery::kClientHelloBytes, "a rejection fits");
  const absl::Status cut = recovery::DecodeClientRejection(again);
  ExpectTrue(
      cut.code() == why.code() && recovery::EncodeClientRejection(cut) == again,
      "a client's rejection that was cut stays as it is");
}

void FuzzClient(FuzzInput& input) {
  constexpr size_t kMagic = 4;
  constexpr size_t kMagicAndVersion = 8;
  const std::string fronts[] = {
      recovery::EncodeClientHello({}), recovery::EncodeClientWelcome({}),
      recovery::EncodeClientRejection(absl::UnknownError(""))};
  const uint8_t choice = input.Byte() % 5;
  if (choice == 4) return FuzzClientMessage(BytesOf(input.rest()));
  if (choice == 3) {
    return FuzzClientMessage(
        Behind(recovery::EncodeClientMessage(kLogId, recovery::ClientProved{}),
               kMagic, input));
  }
  FuzzClientData(std::string(
      AsText(Behind(AsBytes(fronts[choice]), kMagicAndVersion, input))));
}

void FuzzOne(FuzzInput& input) {
  constexpr size_t kMagic = 4;
  constexpr size_t kReportUpToTheHead = 88;
  // Inputs of before choose as they did.
  const uint8_t byte = input.Byte();
  if (byte == 0xc1) return FuzzClient(input);
  const uint8_t choice = byte % 8;
  switch (choice) {
    case 0:
      return FuzzMessage(
          Behind(recovery::EncodeMessage(kLogId, recovery::Formatted{}), kMagic,
                 input));
    case 1:
      return FuzzMessage(BytesOf(input.rest()));
    case 2:
      return FuzzStateReport(
          Behind(recovery::EncodeStateReport(kLogId, EmptyReport()),
                 kReportUpToTheHead, input));
    case 3:
      return FuzzStateReport(BytesOf(input.rest()));
    case 4:
      return FuzzBuiltStateReport(input);
    default: {
      constexpr size_t kMagicAndVersion = 8;
      const std::string fronts[] = {
          recovery::EncodeHello({}), recovery::EncodeServerHello({}),
          recovery::EncodeRejection(absl::UnknownError(""),
                                    recovery::RejectionSum::kNone)};
      return FuzzPrivateData(std::string(AsText(
          Behind(AsBytes(fronts[choice - 5]), kMagicAndVersion, input))));
    }
  }
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
