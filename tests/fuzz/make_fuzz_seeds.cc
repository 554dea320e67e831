// SPDX-License-Identifier: Apache-2.0
// Writes the seeds of the fuzz corpus: for each target a folder of inputs that
// are programs as its FuzzInput reads them. The same each time.
//
// usage: make_fuzz_seeds FOLDER
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log/base/bytes.h"
#include "log/base/random.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "recovery/protocol/client_messages.h"
#include "recovery/protocol/messages.h"
#include "recovery/protocol/state_report_wire.h"
#include "recovery/protocol/wire_parts.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus::testing {
namespace {

constexpr int kSeedsPerTarget = 16;

class SeedWriter {
 public:
  SeedWriter(std::string folder, std::string_view target)
      : folder_(std::move(folder) + "/" + std::string(target)) {
    std::filesystem::create_directories(folder_);
  }

  void Write(std::string_view bytes) {
    std::vector<std::byte> content;
    for (const char c : bytes) content.push_back(static_cast<std::byte>(c));
    WriteFile(folder_ + "/seed" + std::to_string(++count_), content);
  }

  // Programs of growing length whose choices are random, each behind `prefix`.
  void WriteRandom(std::string_view prefix, uint64_t seed) {
    Random random(seed);
    for (int i = 1; i <= kSeedsPerTarget; ++i) {
      std::string bytes(prefix);
      for (int length = i * i; length > 0; --length) {
        bytes.push_back(static_cast<char>(random.Next()));
      }
      Write(bytes);
    }
  }

 private:
  const std::string folder_;
  int count_ = 0;
};

// Without their sums, which the target puts behind.
std::string Unsummed(std::string_view bytes) {
  return std::string(bytes.substr(0, bytes.size() - recovery::kSumBytes));
}

recovery::AskChange ChangeAsked() {
  const std::vector<NodeId> from = {NodeId(1), NodeId(2), NodeId(3)};
  const std::vector<NodeId> to = {NodeId(1), NodeId(2), NodeId(4)};
  return {7,
          {1, {3, 2, 2}, from, 2, {3, 3, 1}, to, {NodeId(2)}},
          {{NodeId(1), "127.0.0.1:7401"}, {NodeId(4), "[::1]:7404"}}};
}

recovery::ChangeState ChangeSaid() {
  return {7,           recovery::ChangeWord::kRefused, Epoch(9), Lsn(2), Lsn(8),
          {NodeId(4)}, absl::UnavailableError("x")};
}

// Messages between a node and clients of its memory.
void WriteClientMessages(SeedWriter& writer) {
  replication::Platform platform;
  platform.domain = replication::PersistenceDomain::kSystem;
  const recovery::ClientMessage messages[] = {
      recovery::ClientProof{{1, 2}, "masked"},
      recovery::ClientProved{},
      recovery::OpenMemory{"ring", false},
      recovery::MemoryOpened{fabric::RegionKey(1), 8, {}, 0, 0, 0},
      recovery::MemoryOpened{fabric::RegionKey(1), 8, platform, 3, 4, 64},
      recovery::ClientRefused{absl::NotFoundError("x")}};
  for (const recovery::ClientMessage& message : messages) {
    writer.Write("\xc1\4" + Unsummed(AsText(recovery::EncodeClientMessage(
                                {7, 8}, message))));
  }
  // Behind magic and version, which their choices put in front.
  writer.Write(
      "\xc1" + std::string(1, '\0') +
      Unsummed(recovery::EncodeClientHello({{1, 2}, {7, 8}, 3})).substr(8));
  writer.Write("\xc1\1" +
               Unsummed(recovery::EncodeClientWelcome({NodeId(1), 2, {3, 4}}))
                   .substr(8));
  writer.Write("\xc1\2" + Unsummed(recovery::EncodeClientRejection(
                                       absl::NotFoundError("x")))
                              .substr(8));
}

// Whole ones, each behind the choice that takes all bytes from the input.
void WriteMessages(SeedWriter& writer) {
  const quorum::Promise promise{Epoch(9), {NodeId(2), 3}};
  const EpochTable table = EpochTable::Empty({7, 8}).With(
      {Epoch(9), 1, Lsn(1), RingOffset(0), 0}, Lsn(1));
  const Configuration members{{1, 1, 1, {{NodeId(1), 1}}}};
  const recovery::Message messages[] = {
      recovery::Format{1 << 20, members, "log"},
      recovery::Formatted{},
      recovery::Prepare{promise, 7, Epoch(8)},
      recovery::Prepare{promise, 7, std::nullopt, true},
      recovery::Release{Epoch(8)},
      recovery::Promised{fabric::RegionKey(1), 1, fabric::RegionKey(2)},
      recovery::Refused{promise},
      recovery::OpenForRepair{Epoch(9), true, RingOffset(640)},
      recovery::RepairOpened{fabric::RegionKey(3)},
      recovery::Install{{Epoch(9), table, {}, {}, RingOffset(640)},
                        replication::SessionId(5),
                        4},
      recovery::Installed{},
      recovery::Failed{absl::DataLossError("x")},
      recovery::Challenge{{1, 2}},
      recovery::Challenged{{3, 4}, {}},
      recovery::Prove{},
      recovery::Proved{},
      recovery::Fetch{RingOffset(64), 4096},
      recovery::Fetched{RingOffset(64), {std::byte{1}, std::byte{2}}},
      recovery::Hear{recovery::Standing::kReady, 1000, 1, Epoch(9), 150, 500,
                     recovery::PrimaryWord::kHeard, Epoch(9), 7, 8},
      recovery::Heard{
          recovery::PrimaryWord::kSilent,
          promise,
          Epoch(9),
          Lsn(1),
          Lsn(8),
          {{promise.primary, recovery::Standing::kReady, 1, Epoch(9)}},
          recovery::Instruction{recovery::InstructionKind::kElect, NodeId(2),
                                7}},
      recovery::Instruct{{recovery::InstructionKind::kDrain, NodeId(2), 7}},
      recovery::Claim{promise, {}, ChangeSaid()},
      ChangeAsked(),
      ChangeSaid(),
      recovery::Mark{Epoch(9)},
      recovery::Remove{},
      recovery::AskDeletion{},
      recovery::DeletionState{Deletion::kMarked, members}};
  for (const recovery::Message& message : messages) {
    writer.Write("\1" +
                 Unsummed(AsText(recovery::EncodeMessage({7, 8}, message))));
  }
  // Behind magic and version, which their choices put in front.
  recovery::ServerHello server_hello{NodeId(2), 3, 1 << 20, Epoch(9), 1};
  server_hello.platform = {replication::PersistenceDomain::kHierarchy,
                           false,
                           replication::ReceiveBuffers::kPmem,
                           replication::Transport::kInfiniBand,
                           true,
                           true};
  writer.Write(
      "\5" + Unsummed(recovery::EncodeHello({{1, 2}, {7, 8}, promise.primary}))
                 .substr(8));
  writer.Write("\6" +
               Unsummed(recovery::EncodeServerHello(server_hello)).substr(8));
  recovery::StateReport report;
  report.configuration = members;
  report.ring_capacity = 1024;
  report.table = table;
  recovery::AddRecord(&report, {Epoch(9), RingOffset(0), 1, 1});
  recovery::AddVerdict(&report, recovery::Verdict::kTorn);
  writer.Write("\3" +
               Unsummed(AsText(recovery::EncodeStateReport({7, 8}, report))));
}

// Whole ones, each behind its kind, and behind the choice that puts its first
// line in front.
void WriteZnodes(SeedWriter& writer) {
  const quorum::PrimaryId process{NodeId(2), uint64_t{0x4f3a} << 48};
  const Epoch ballot = quorum::PackBallot({17, process});
  const std::string contents[] = {
      quorum::EncodeFormat(),
      quorum::EncodeBallot(ballot),
      quorum::EncodeNode({"log", {NodeId(2), 9, "a:1", ballot}}),
      quorum::EncodeMerits({Lsn(80), 3, ballot}),
      quorum::EncodePrimary({ballot, process, "a:1"}),
      quorum::EncodeMembers({4, 2, 2, {{NodeId(1), "a:1"}}})};
  uint8_t kind = 0;
  for (const std::string& content : contents) {
    writer.Write(std::string(1, static_cast<char>(kind)) + content);
    // 70 is a multiple of the number of kinds.
    writer.Write(std::string(1, static_cast<char>(70 + kind)) +
                 content.substr(content.find('\n') + 1));
    ++kind;
  }
  writer.Write(std::string(1, '\6') + quorum::CandidatePrefix(process, 5) +
               "0000000042");
  writer.Write(std::string(1, '\6') + quorum::PrimaryName(ballot));
}

// Whole ones, with each flag.
void WriteStoreRecords(SeedWriter& writer) {
  using namespace std::string_literals;
  using namespace std::string_view_literals;
  writer.Write(
      "\0AO\1\1\1\0\0\0\0\0\0\0\0\0\0\0"
      "\3\0\0\0\5\0\0\0keyvalue"sv);
  writer.Write("\0AO\1\2\0\0\0\0\7\0\0\0\0\0\0\0"sv);
  writer.Write("\1\0\1\0\1\7\0\0\0\0k\0\0\0\0\0\0\0"sv);
  for (char flags = 0; flags < 32; ++flags) {
    std::string bytes = "\2\1"s;   // one object
    bytes += "\1\2\3\4\5\6\7\0"s;  // its log time
    bytes += "\4name\6object"s;    // key and value
    bytes += {flags, 'l'};
    bytes += std::string(32, 'w');  // for the flags
    bytes += "\0\0"s;               // no damage, all of it
    writer.Write(bytes);
  }
}

void WriteAll(const std::string& folder) {
  using namespace std::string_view_literals;
  SeedWriter(folder, "fuzz_scan_arbitrary").WriteRandom("", 1);
  SeedWriter(folder, "fuzz_scan_mutated").WriteRandom("\1"sv, 2);
  // The first byte's lowest bit says: content by itself, or a whole region.
  uint64_t seed = 3;
  for (const char* target :
       {"fuzz_superline", "fuzz_epoch_table", "fuzz_watermark"}) {
    SeedWriter writer(folder, target);
    writer.WriteRandom("\0"sv, seed++);
    writer.WriteRandom("\1"sv, seed++);
  }
  SeedWriter primitives(folder, "fuzz_primitives");
  primitives.WriteRandom("\0"sv, seed++);
  primitives.WriteRandom("\2"sv, seed++);
  primitives.WriteRandom("\4"sv, seed++);
  SeedWriter reader(folder, "fuzz_reader");
  // The high half chooses a command or salvage, the low one the image.
  for (const char choice : {'\x00', '\x18', '\x20', '\x30', '\x40', '\xf0'}) {
    reader.WriteRandom({&choice, 1}, seed++);
  }
  SeedWriter command_line(folder, "fuzz_command_line");
  command_line.WriteRandom("\0"sv, seed++);
  command_line.WriteRandom("\2"sv, seed++);
  command_line.WriteRandom("\3"sv, seed++);
  // Framed lines, then len32, in pieces of three bytes.
  command_line.Write("\0\1\x40\2one\n\ntwo\r\nthree"sv);
  command_line.Write("\0\0\x40\2\3\0\0\0one\0\0\0\0\2\0\0\0xy"sv);
  // Words of the list: cleanup, an empty word, an unknown option.
  command_line.Write("\3\5\x16\x0b"sv);
  SeedWriter messages(folder, "fuzz_messages");
  // Which decoder, and how much is right at the front.
  for (const char choice : {'\0', '\1', '\2', '\3', '\4', '\5', '\6', '\7'}) {
    messages.WriteRandom({&choice, 1}, seed++);
  }
  WriteMessages(messages);
  WriteClientMessages(messages);
  SeedWriter znodes(folder, "fuzz_znodes");
  WriteZnodes(znodes);
  SeedWriter store(folder, "fuzz_store");
  // Anything, objects behind a header, and records that a store wrote.
  for (const char choice : {'\0', '\1', '\2'}) {
    store.WriteRandom({&choice, 1}, seed++);
  }
  WriteStoreRecords(store);
}

}  // namespace
}  // namespace alpheus::testing

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  alpheus::testing::WriteAll(argv[1]);
  return 0;
}
