// SPDX-License-Identifier: Apache-2.0
#include "recovery/protocol/messages.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "log/base/mix.h"
#include "log/base/status_macros.h"
#include "log/core/ring/region_state.h"
#include "quorum/members/log_id.h"
#include "recovery/protocol/byte_stream.h"
#include "recovery/protocol/wire_parts.h"

namespace alpheus::recovery {

using fabric::RegionKey;
using quorum::Promise;

namespace {

// The first word of each; on the wire, never renumber.
constexpr uint32_t kHelloMagic = 0x45485041;        // "APHE" in memory
constexpr uint32_t kServerHelloMagic = 0x45575041;  // "APWE"
constexpr uint32_t kRejectionMagic = 0x45525041;    // "APRE"
constexpr uint32_t kMessageMagic = 0x534d5041;      // "APMS"

// Kinds of messages; on the wire, never renumber.
enum class Kind : uint32_t {
  kFormat = 1,
  kFormatted = 2,
  kPrepare = 3,
  kPromised = 4,
  kRefused = 5,
  kOpenForRepair = 6,
  kRepairOpened = 7,
  kInstall = 8,
  kInstalled = 9,
  kFailed = 10,
  kView = 11,
  kViewed = 12,
  kRelease = 13,
  kReleased = 14,
  kChallenge = 15,
  kChallenged = 16,
  kProve = 17,
  kProved = 18,
  kFollow = 19,
  kFollowed = 20,
  kScrub = 21,
  kScrubbed = 22,
  kClaim = 23,
  kWanted = 24,
  kFetch = 25,
  kFetched = 26,
  kChanged = 27,
  kAskCreation = 28,
  kCreated = 29,
  kHear = 30,
  kHeard = 31,
  kInstruct = 32,
  kAskChange = 33,
  kChangeState = 34,
  kMark = 35,
  kRemove = 36,
  kAskDeletion = 37,
  kDeletionState = 38,
};

// Flags of Followed; on the wire, never renumber.
constexpr uint32_t kIsRepairing = 1;
constexpr uint32_t kInSession = 2;
constexpr uint32_t kIsClaimed = 4;
constexpr uint32_t kHasEnd = 8;

// Magic and version.
constexpr size_t kStartBytes = 8;
constexpr size_t kServerHelloBytes = 56;
// The first version whose messages have sums.
constexpr uint32_t kSummedVersion = 8;
// Returns true for a version that no turned bit makes one without sums (MSG1).
constexpr bool KeepsItsSum(uint32_t version) {
  for (uint32_t bit = 1; bit != 0; bit <<= 1) {
    const uint32_t turned = version ^ bit;
    if (turned > 0 && turned < kSummedVersion) return false;
  }
  return true;
}
static_assert(KeepsItsSum(kProtocolVersion), "take the next one that does");
// Without magic, version, and code with its sum.
constexpr size_t kRejectionTextBytes = kHelloBytes - 12;
constexpr size_t kFailedTextBytes = 4096;

// --- Parts of messages -------------------------------------------------------

uint32_t FlagsOf(const Followed& followed) {
  return (followed.repairing ? kIsRepairing : 0) |
         (followed.in_session ? kInSession : 0) |
         (followed.is_claimed ? kIsClaimed : 0) |
         (followed.end.has_value() ? kHasEnd : 0);
}

std::string TextOf(ByteWriter& writer) {
  return std::string(AsText(writer.bytes()));
}

std::string_view FrontOf(const absl::Status& status, size_t bytes_max) {
  const absl::string_view text = status.message().substr(0, bytes_max);
  return {text.data(), text.size()};
}

bool IsPromise(const Promise& promise) {
  return promise.epoch.value > 0 && promise.primary.incarnation != 0;
}

void Put(ByteWriter& to, const Promise& promise) {
  to.Id(promise.epoch);
  to.Id(promise.primary.node);
  to.U64(promise.primary.incarnation);
}

Promise ReadPromise(ByteReader& from) {
  Promise promise;
  promise.epoch = from.As<Epoch>();
  promise.primary.node = from.As<NodeId>();
  promise.primary.incarnation = from.U64();
  from.Expect(IsPromise(promise));
  return promise;
}

void PutMaybeEpoch(ByteWriter& to, const std::optional<Epoch>& epoch) {
  to.U32(epoch.has_value() ? 1 : 0);
  to.Id(epoch.value_or(Epoch()));
}

void Put(ByteWriter& to, const Instruction& instruction) {
  to.U32(static_cast<uint32_t>(instruction.kind));
  to.Id(instruction.node);
  to.U64(instruction.id);
}

Instruction ReadInstruction(ByteReader& from) {
  Instruction instruction;
  const uint32_t kind = from.U32();
  const bool is_known =
      from.Expect(kind == static_cast<uint32_t>(InstructionKind::kElect) ||
                  kind == static_cast<uint32_t>(InstructionKind::kDrain));
  if (is_known) instruction.kind = static_cast<InstructionKind>(kind);
  instruction.node = from.As<NodeId>();
  instruction.id = from.U64();
  from.Expect(instruction.id != 0);
  return instruction;
}

PrimaryWord ReadPrimaryWord(ByteReader& from) {
  const uint32_t word = from.U32();
  const bool is_known =
      from.Expect(word <= static_cast<uint32_t>(PrimaryWord::kClaimed));
  return is_known ? static_cast<PrimaryWord>(word) : PrimaryWord::kGone;
}

Standing ReadStanding(ByteReader& from) {
  const uint32_t standing = from.U32();
  const bool is_known =
      from.Expect(standing <= static_cast<uint32_t>(Standing::kDrained));
  return is_known ? static_cast<Standing>(standing) : Standing::kNo;
}

void Put(ByteWriter& to, const Nonce& nonce) {
  to.U64(nonce.high);
  to.U64(nonce.low);
}

Nonce ReadNonce(ByteReader& from) {
  Nonce nonce;
  nonce.high = from.U64();
  nonce.low = from.U64();
  from.Expect(nonce != Nonce());
  return nonce;
}

quorum::Digest ReadDigest(ByteReader& from) {
  quorum::Digest digest{};
  std::ranges::copy(from.Raw(digest.size()), digest.begin());
  return digest;
}

void Put(ByteWriter& to, const ScrubCounts& counts) {
  to.U64(counts.records);
  to.U64(counts.bytes);
  to.U64(counts.damaged);
  to.U64(counts.repaired);
  to.U64(counts.unrepairable);
}

void Put(ByteWriter& to, const quorum::QuorumSizes& sizes) {
  to.U32(sizes.replica_count);
  to.U32(sizes.write_quorum);
  to.U32(sizes.read_quorum);
}

// QU1 (quorum.h). Sizes of no list have nothing to compare with.
quorum::QuorumSizes ReadQuorumSizes(ByteReader& from) {
  quorum::QuorumSizes sizes;
  sizes.replica_count = from.U32();
  sizes.write_quorum = from.U32();
  sizes.read_quorum = from.U32();
  const uint32_t n = sizes.replica_count;
  from.Expect(n >= 1 && n <= kMembersMax && sizes.write_quorum >= 1 &&
              sizes.write_quorum <= n && sizes.read_quorum >= 1 &&
              sizes.read_quorum <= n &&
              sizes.write_quorum + sizes.read_quorum > n);
  return sizes;
}

void Put(ByteWriter& to, const std::vector<NodeId>& nodes) {
  to.U32(static_cast<uint32_t>(nodes.size()));
  for (const NodeId node : nodes) to.Id(node);
}

std::vector<NodeId> ReadNodes(ByteReader& from) {
  const uint32_t count = from.U32();
  from.Expect(count <= kMembersMax);
  std::vector<NodeId> nodes;
  if (!from.Holds(count, sizeof(uint64_t))) return nodes;
  for (uint32_t i = 0; i < count; ++i) nodes.push_back(from.As<NodeId>());
  return nodes;
}

ScrubCounts ReadScrubCounts(ByteReader& from) {
  ScrubCounts counts;
  counts.records = from.U64();
  counts.bytes = from.U64();
  counts.damaged = from.U64();
  counts.repaired = from.U64();
  counts.unrepairable = from.U64();
  return counts;
}

// --- Messages ----------------------------------------------------------------

Kind KindOf(const Message& message) {
  return static_cast<Kind>(message.index() + 1);
}
static_assert(std::is_same_v<std::variant_alternative_t<0, Message>, Format>);
static_assert(std::is_same_v<std::variant_alternative_t<2, Message>, Prepare>);
static_assert(std::is_same_v<std::variant_alternative_t<7, Message>, Install>);
static_assert(std::is_same_v<std::variant_alternative_t<9, Message>, Failed>);
static_assert(std::is_same_v<std::variant_alternative_t<11, Message>, Viewed>);
static_assert(
    std::is_same_v<std::variant_alternative_t<14, Message>, Challenge>);
static_assert(std::variant_size_v<Message> ==
              static_cast<size_t>(Kind::kDeletionState));

struct BodyWriter {
  ByteWriter& to;

  void operator()(const Format& format) const {
    ALPHEUS_CHECK(quorum::CheckLogName(format.log_name).ok(),
                  "names are checked before");
    to.U64(format.region_bytes);
    Put(to, format.configuration);
    to.U64(format.incarnation);
    to.U64(format.replaces);
    to.Text(format.log_name);
  }
  void operator()(const Formatted& /*formatted*/) const {}
  void operator()(const Prepare& ask) const {
    Put(to, ask.promise);
    to.U64(ask.configuration_id);
    PutMaybeEpoch(to, ask.promised_max);
    to.U32(ask.from_head ? 1 : 0);
  }
  void operator()(const Promised& promised) const {
    to.Id(promised.report_key);
    to.U64(promised.report_bytes);
    to.Id(promised.ring_key);
  }
  void operator()(const Refused& refused) const { Put(to, refused.current); }
  void operator()(const OpenForRepair& open) const {
    to.Id(open.epoch);
    to.U32(open.set_repairing ? 1 : 0);
    to.Id(open.ceiling);
  }
  void operator()(const RepairOpened& opened) const { to.Id(opened.ring_key); }
  void operator()(const Install& install) const {
    const Installation& installation = install.installation;
    to.Id(installation.epoch);
    to.Id(install.session);
    to.U32(install.credits);
    Put(to, installation.head);
    Put(to, installation.end);
    to.Id(installation.ceiling);
    Put(to, installation.configuration);
    Put(to, installation.table);
    to.U32(install.heartbeat_ms);
  }
  void operator()(const Installed& /*installed*/) const {}
  void operator()(const Failed& failed) const {
    ALPHEUS_CHECK(!failed.status.ok(), "Failed needs an error");
    to.U32(static_cast<uint32_t>(failed.status.code()));
    to.Text(FrontOf(failed.status, kFailedTextBytes));
  }
  void operator()(const View& /*view*/) const {}
  void operator()(const Viewed& viewed) const {
    to.Id(viewed.region_key);
    to.U64(viewed.region_bytes);
    for (const uint64_t count : viewed.rejects) to.U64(count);
    Put(to, viewed.scrubbed);
  }
  void operator()(const Release& release) const {
    PutMaybeEpoch(to, release.promised_max);
  }
  void operator()(const Released& /*released*/) const {}
  void operator()(const Challenge& challenge) const {
    Put(to, challenge.nonce);
  }
  void operator()(const Challenged& challenged) const {
    Put(to, challenged.nonce);
    to.Raw(challenged.proof);
  }
  void operator()(const Prove& prove) const { to.Raw(prove.proof); }
  void operator()(const Proved& /*proved*/) const {}
  void operator()(const Follow& follow) const { to.Id(follow.table_epoch); }
  void operator()(const Followed& followed) const {
    to.Id(followed.log_epoch);
    to.U32(FlagsOf(followed));
    to.U32(followed.replica_count);
    to.U32(followed.write_quorum);
    to.U64(followed.configuration_id);
    Put(to, followed.promised);
    Put(to, followed.head);
    to.Id(followed.persisted_lsn);
    to.Id(followed.durable_lsn);
    to.U64(followed.end.value_or(RingOffset()).value);
    to.U64(static_cast<uint64_t>(followed.certificate_end_s));
    Put(to, followed.table);
  }
  void operator()(const Scrub& scrub) const { to.U32(scrub.start ? 1 : 0); }
  void operator()(const Scrubbed& scrubbed) const {
    to.U64(scrubbed.passes);
    to.U32(scrubbed.is_running ? 1 : 0);
    to.U32(scrubbed.is_empty ? 1 : 0);
    Put(to, scrubbed.total);
    Put(to, scrubbed.pass);
    to.U64(scrubbed.unrepairable.size());
    for (const LsnRun& run : scrubbed.unrepairable) {
      to.Id(run.first);
      to.Id(run.end);
    }
  }
  void operator()(const Claim& suspended) const {
    Put(to, suspended.promise);
    (*this)(suspended.scrubbed);
    (*this)(suspended.change_state);
  }
  void operator()(const Wanted& wanted) const { Put(to, wanted.promise); }
  void operator()(const Fetch& fetch) const {
    to.Id(fetch.from);
    to.U32(fetch.bytes);
  }
  void operator()(const Fetched& fetched) const {
    to.Id(fetched.from);
    to.U32(static_cast<uint32_t>(fetched.bytes.size()));
    to.Raw(fetched.bytes);
  }
  void operator()(const Changed& /*changed*/) const {}
  void operator()(const Mark& mark) const { to.Id(mark.epoch); }
  void operator()(const Remove& /*remove*/) const {}
  void operator()(const AskDeletion& /*ask*/) const {}
  void operator()(const DeletionState& state) const {
    to.U32(static_cast<uint32_t>(state.deletion));
    Put(to, state.configuration);
  }
  void operator()(const AskCreation& /*ask*/) const {}
  void operator()(const Created& created) const {
    Put(to, created.configuration);
    to.U32(created.is_used ? 1 : 0);
  }
  void operator()(const Hear& hear) const {
    to.U32(static_cast<uint32_t>(hear.standing));
    to.U64(hear.stood_ns);
    to.U32(hear.priority);
    to.Id(hear.holds);
    to.U64(hear.silence_ns);
    to.U64(hear.wait_ns);
    to.U32(static_cast<uint32_t>(hear.known_word));
    to.Id(hear.known_epoch);
    to.U64(hear.known_instruction);
    to.U64(hear.known_candidates);
  }
  void operator()(const Heard& heard) const {
    to.U32(static_cast<uint32_t>(heard.word));
    Put(to, heard.promised);
    to.Id(heard.log_epoch);
    to.Id(heard.head_lsn);
    to.Id(heard.persisted_lsn);
    to.U32(static_cast<uint32_t>(heard.candidates.size()));
    for (const CandidateState& state : heard.candidates) {
      to.Id(state.candidate.node);
      to.U64(state.candidate.incarnation);
      to.U32(static_cast<uint32_t>(state.standing));
      to.U32(state.priority);
      to.Id(state.holds);
    }
    to.U32(heard.instruction.has_value() ? 1 : 0);
    if (heard.instruction.has_value()) Put(to, *heard.instruction);
    to.U64(heard.configuration_id);
  }
  void operator()(const Instruct& instruct) const {
    Put(to, instruct.instruction);
  }
  void operator()(const AskChange& asked_change) const {
    const MembersChange& change = asked_change.change;
    to.U64(asked_change.id);
    to.U64(change.from_id);
    Put(to, change.from);
    Put(to, change.from_nodes);
    to.U64(change.to_id);
    Put(to, change.to);
    Put(to, change.to_nodes);
    Put(to, change.replaced);
    to.U32(static_cast<uint32_t>(asked_change.peers.size()));
    for (const PeerAddress& peer : asked_change.peers) {
      to.Id(peer.node);
      to.Text(peer.address);
    }
  }
  void operator()(const ChangeState& change_state) const {
    to.U64(change_state.id);
    to.U32(static_cast<uint32_t>(change_state.word));
    to.Id(change_state.epoch);
    to.Id(change_state.head_lsn);
    to.Id(change_state.next_lsn);
    Put(to, change_state.missing);
    to.U32(static_cast<uint32_t>(change_state.why.code()));
    to.Text(FrontOf(change_state.why, kFailedTextBytes));
  }
};

// Returns true for the code of an error.
bool IsCode(uint32_t code) {
  return code >= static_cast<uint32_t>(absl::StatusCode::kCancelled) &&
         code <= static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
}

absl::StatusCode ReadCode(ByteReader& from) {
  const uint32_t code = from.U32();
  from.Expect(IsCode(code));
  return from.good() ? static_cast<absl::StatusCode>(code)
                     : absl::StatusCode::kUnknown;
}

Format ReadFormat(ByteReader& from) {
  Format format;
  format.region_bytes = from.U64();
  format.configuration = ReadConfiguration(from);
  format.incarnation = from.U64();
  format.replaces = from.U64();
  format.log_name = from.Text(quorum::kLogNameBytesMax);
  from.Expect(quorum::CheckLogName(format.log_name).ok());
  return format;
}

Promised ReadPromised(ByteReader& from) {
  Promised promised;
  promised.report_key = from.As<RegionKey>();
  promised.report_bytes = from.U64();
  promised.ring_key = from.As<RegionKey>();
  from.Expect(promised.report_key != RegionKey() && promised.report_bytes > 0 &&
              promised.ring_key != RegionKey());
  return promised;
}

// Reads an offset at which a line begins.
RingOffset ReadLineOffset(ByteReader& from) {
  const auto offset = from.As<RingOffset>();
  from.Expect(offset.value < kOffsetEnd && offset.value % kLineBytes == 0);
  return offset;
}

OpenForRepair ReadOpenForRepair(ByteReader& from) {
  OpenForRepair open;
  open.epoch = from.As<Epoch>();
  const uint32_t set_repairing = from.U32();
  open.set_repairing = set_repairing == 1;
  open.ceiling = ReadLineOffset(from);
  from.Expect(open.epoch.value > 0 && set_repairing <= 1);
  return open;
}

RepairOpened ReadRepairOpened(ByteReader& from) {
  const RepairOpened opened{from.As<RegionKey>()};
  from.Expect(opened.ring_key != RegionKey());
  return opened;
}

Install ReadInstall(ByteReader& from, Uuid log_id) {
  Install install;
  install.installation.epoch = from.As<Epoch>();
  install.session = from.As<replication::SessionId>();
  install.credits = from.U32();
  install.installation.head = ReadPosition(from);
  install.installation.end = ReadPosition(from);
  install.installation.ceiling = ReadLineOffset(from);
  install.installation.configuration = ReadConfiguration(from);
  install.installation.table = ReadTable(from, log_id);
  install.heartbeat_ms = from.U32();
  from.Expect(install.installation.epoch.value > 0 && install.credits > 0);
  return install;
}

Failed ReadFailed(ByteReader& from) {
  const absl::StatusCode code = ReadCode(from);
  const std::string text = from.Text(kFailedTextBytes);
  return {absl::Status(code, text)};
}

bool ReadFlag(ByteReader& from) {
  const uint32_t flag = from.U32();
  return from.Expect(flag <= 1) && flag == 1;
}

std::optional<Epoch> ReadMaybeEpoch(ByteReader& from) {
  const bool is_set = ReadFlag(from);
  const auto epoch = from.As<Epoch>();
  from.Expect(is_set || epoch == Epoch());
  if (!is_set) return std::nullopt;
  return epoch;
}

Prepare ReadPrepare(ByteReader& from) {
  Prepare ask;
  ask.promise = ReadPromise(from);
  ask.configuration_id = from.U64();
  ask.promised_max = ReadMaybeEpoch(from);
  ask.from_head = ReadFlag(from);
  from.Expect(ask.configuration_id > 0);
  return ask;
}

Challenged ReadChallenged(ByteReader& from) {
  Challenged challenged;
  challenged.nonce = ReadNonce(from);
  challenged.proof = ReadDigest(from);
  return challenged;
}

Viewed ReadViewed(ByteReader& from) {
  Viewed viewed;
  viewed.region_key = from.As<RegionKey>();
  viewed.region_bytes = from.U64();
  for (uint64_t& count : viewed.rejects) count = from.U64();
  viewed.scrubbed = ReadScrubCounts(from);
  from.Expect(viewed.region_key != RegionKey() && viewed.region_bytes > 0);
  return viewed;
}

Followed ReadFollowed(ByteReader& from, Uuid log_id) {
  Followed followed;
  followed.log_epoch = from.As<Epoch>();
  const uint32_t flags = from.U32();
  followed.repairing = (flags & kIsRepairing) != 0;
  followed.in_session = (flags & kInSession) != 0;
  followed.is_claimed = (flags & kIsClaimed) != 0;
  followed.replica_count = from.U32();
  followed.write_quorum = from.U32();
  followed.configuration_id = from.U64();
  followed.promised.epoch = from.As<Epoch>();
  followed.promised.primary.node = from.As<NodeId>();
  followed.promised.primary.incarnation = from.U64();
  followed.head = ReadPosition(from);
  followed.persisted_lsn = from.As<Lsn>();
  followed.durable_lsn = from.As<Lsn>();
  const uint64_t end = from.U64();
  const bool has_end = (flags & kHasEnd) != 0;
  if (has_end) followed.end = RingOffset(end);
  followed.certificate_end_s = static_cast<int64_t>(from.U64());
  followed.table = ReadTable(from, log_id);
  from.Expect(flags < 2 * kHasEnd && followed.configuration_id > 0 &&
              end < kOffsetEnd && end % kLineBytes == 0 &&
              followed.certificate_end_s >= 0 &&
              (has_end ? end >= followed.head.offset.value : end == 0) &&
              followed.write_quorum >= 1 &&
              followed.write_quorum <= followed.replica_count &&
              followed.replica_count <= kMembersMax &&
              followed.persisted_lsn.value <= kLsnMax &&
              followed.durable_lsn.value <= kLsnMax);
  return followed;
}

Scrubbed ReadScrubbed(ByteReader& from) {
  Scrubbed scrubbed;
  scrubbed.passes = from.U64();
  scrubbed.is_running = ReadFlag(from);
  scrubbed.is_empty = ReadFlag(from);
  scrubbed.total = ReadScrubCounts(from);
  scrubbed.pass = ReadScrubCounts(from);
  const uint64_t count = from.U64();
  from.Expect(count <= kScrubbedRunsMax);
  if (!from.Holds(count, 2 * sizeof(uint64_t))) return scrubbed;
  for (uint64_t i = 0; i < count; ++i) {
    LsnRun run;
    run.first = from.As<Lsn>();
    run.end = from.As<Lsn>();
    from.Expect(run.first < run.end && run.end.value <= kLsnMax);
    scrubbed.unrepairable.push_back(run);
  }
  return scrubbed;
}

RingOffset ReadLine(ByteReader& from) {
  const auto line = from.As<RingOffset>();
  from.Expect(line.value < kOffsetEnd && line.value % kLineBytes == 0);
  return line;
}

Fetch ReadFetch(ByteReader& from) {
  Fetch fetch;
  fetch.from = ReadLine(from);
  fetch.bytes = from.U32();
  from.Expect(fetch.bytes > 0 && fetch.bytes <= kFetchBytesMax);
  return fetch;
}

Fetched ReadFetched(ByteReader& from) {
  Fetched fetched;
  fetched.from = ReadLine(from);
  const uint32_t count = from.U32();
  from.Expect(count <= kFetchBytesMax);
  const std::span<const std::byte> bytes = from.Raw(count);
  fetched.bytes.assign(bytes.begin(), bytes.end());
  return fetched;
}

Created ReadCreated(ByteReader& from) {
  Created created;
  created.configuration = ReadConfiguration(from);
  created.is_used = ReadFlag(from);
  return created;
}

Mark ReadMark(ByteReader& from) {
  const Mark mark{from.As<Epoch>()};
  from.Expect(mark.epoch.value > 0);
  return mark;
}

DeletionState ReadDeletionState(ByteReader& from) {
  DeletionState state;
  const uint32_t word = from.U32();
  from.Expect(word <= static_cast<uint32_t>(Deletion::kDecided));
  state.deletion = static_cast<Deletion>(word);
  state.configuration = ReadConfiguration(from);
  return state;
}

Hear ReadHear(ByteReader& from) {
  Hear hear;
  hear.standing = ReadStanding(from);
  hear.stood_ns = from.U64();
  hear.priority = from.U32();
  hear.holds = from.As<Epoch>();
  hear.silence_ns = from.U64();
  hear.wait_ns = from.U64();
  hear.known_word = ReadPrimaryWord(from);
  hear.known_epoch = from.As<Epoch>();
  hear.known_instruction = from.U64();
  hear.known_candidates = from.U64();
  from.Expect(hear.silence_ns <= kHearNanosMax &&
              hear.wait_ns <= kHearNanosMax);
  return hear;
}

Heard ReadHeard(ByteReader& from) {
  Heard heard;
  heard.word = ReadPrimaryWord(from);
  heard.promised.epoch = from.As<Epoch>();
  heard.promised.primary.node = from.As<NodeId>();
  heard.promised.primary.incarnation = from.U64();
  heard.log_epoch = from.As<Epoch>();
  heard.head_lsn = from.As<Lsn>();
  heard.persisted_lsn = from.As<Lsn>();
  const uint32_t count = from.U32();
  from.Expect(count <= kCandidatesMax && heard.head_lsn.value <= kLsnMax &&
              heard.persisted_lsn.value <= kLsnMax);
  constexpr size_t kStateBytes = 32;
  if (!from.Holds(count, kStateBytes)) return heard;
  for (uint32_t i = 0; i < count; ++i) {
    CandidateState state;
    state.candidate.node = from.As<NodeId>();
    state.candidate.incarnation = from.U64();
    state.standing = ReadStanding(from);
    state.priority = from.U32();
    state.holds = from.As<Epoch>();
    from.Expect(state.candidate.incarnation != 0 &&
                state.standing != Standing::kNo);
    heard.candidates.push_back(state);
  }
  if (ReadFlag(from)) heard.instruction = ReadInstruction(from);
  heard.configuration_id = from.U64();
  return heard;
}

// Whether an opening can make the change is judged by who is asked to
// (CheckChange of opening_quorums.h).
AskChange ReadAskChange(ByteReader& from) {
  AskChange asked_change;
  asked_change.id = from.U64();
  MembersChange& change = asked_change.change;
  change.from_id = from.U64();
  change.from = ReadQuorumSizes(from);
  change.from_nodes = ReadNodes(from);
  change.to_id = from.U64();
  change.to = ReadQuorumSizes(from);
  change.to_nodes = ReadNodes(from);
  change.replaced = ReadNodes(from);
  const uint32_t count = from.U32();
  from.Expect(asked_change.id != 0 && count <= 2 * kMembersMax);
  constexpr size_t kPeerBytes = 12;  // at least
  if (!from.Holds(count, kPeerBytes)) return asked_change;
  for (uint32_t i = 0; i < count; ++i) {
    PeerAddress peer;
    peer.node = from.As<NodeId>();
    peer.address = from.Text(kAddressBytesMax);
    asked_change.peers.push_back(std::move(peer));
  }
  return asked_change;
}

ChangeState ReadChangeState(ByteReader& from) {
  ChangeState change_state;
  change_state.id = from.U64();
  const uint32_t word = from.U32();
  const bool is_known =
      from.Expect(word <= static_cast<uint32_t>(ChangeWord::kCutOff));
  if (is_known) change_state.word = static_cast<ChangeWord>(word);
  change_state.epoch = from.As<Epoch>();
  change_state.head_lsn = from.As<Lsn>();
  change_state.next_lsn = from.As<Lsn>();
  change_state.missing = ReadNodes(from);
  const uint32_t code = from.U32();
  const std::string text = from.Text(kFailedTextBytes);
  from.Expect((code == 0 ? text.empty() : IsCode(code)) &&
              change_state.head_lsn.value <= kLsnMax &&
              change_state.next_lsn.value <= kLsnMax);
  if (from.good() && code != 0) {
    change_state.why = absl::Status(static_cast<absl::StatusCode>(code), text);
  }
  return change_state;
}

Message ReadBody(Kind kind, ByteReader& from, Uuid log_id) {
  switch (kind) {
    case Kind::kFormat:
      return ReadFormat(from);
    case Kind::kFormatted:
      return Formatted{};
    case Kind::kPrepare:
      return ReadPrepare(from);
    case Kind::kPromised:
      return ReadPromised(from);
    case Kind::kRefused:
      return Refused{ReadPromise(from)};
    case Kind::kOpenForRepair:
      return ReadOpenForRepair(from);
    case Kind::kRepairOpened:
      return ReadRepairOpened(from);
    case Kind::kInstall:
      return ReadInstall(from, log_id);
    case Kind::kInstalled:
      return Installed{};
    case Kind::kFailed:
      return ReadFailed(from);
    case Kind::kView:
      return View{};
    case Kind::kViewed:
      return ReadViewed(from);
    case Kind::kRelease:
      return Release{ReadMaybeEpoch(from)};
    case Kind::kReleased:
      return Released{};
    case Kind::kChallenge:
      return Challenge{ReadNonce(from)};
    case Kind::kChallenged:
      return ReadChallenged(from);
    case Kind::kProve:
      return Prove{ReadDigest(from)};
    case Kind::kProved:
      return Proved{};
    case Kind::kFollow:
      return Follow{from.As<Epoch>()};
    case Kind::kFollowed:
      return ReadFollowed(from, log_id);
    case Kind::kScrub:
      return Scrub{ReadFlag(from)};
    case Kind::kScrubbed:
      return ReadScrubbed(from);
    case Kind::kClaim: {
      const Promise promise = ReadPromise(from);
      Claim claim{promise, ReadScrubbed(from)};
      claim.change_state = ReadChangeState(from);
      return claim;
    }
    case Kind::kWanted:
      return Wanted{ReadPromise(from)};
    case Kind::kFetch:
      return ReadFetch(from);
    case Kind::kFetched:
      return ReadFetched(from);
    case Kind::kChanged:
      return Changed{};
    case Kind::kAskCreation:
      return AskCreation{};
    case Kind::kCreated:
      return ReadCreated(from);
    case Kind::kHear:
      return ReadHear(from);
    case Kind::kHeard:
      return ReadHeard(from);
    case Kind::kInstruct:
      return Instruct{ReadInstruction(from)};
    case Kind::kAskChange:
      return ReadAskChange(from);
    case Kind::kChangeState:
      return ReadChangeState(from);
    case Kind::kMark:
      return ReadMark(from);
    case Kind::kRemove:
      return Remove{};
    case Kind::kAskDeletion:
      return AskDeletion{};
    case Kind::kDeletionState:
      return ReadDeletionState(from);
  }
  from.Expect(false);  // another version, or no message
  return Installed{};
}

// --- Hello, ServerHello, Rejection
// -----------------------------------------------

absl::Status NotA(const char* what, std::string_view bytes) {
  return absl::InvalidArgumentError(absl::StrCat(
      "handshake: ", bytes.size(), " bytes are not a ", what,
      ". Another program sent them, or they were damaged on the way"));
}

// Returns the bytes after magic and version, which mean the same in all
// versions. Their sum holds, if that version has one (MSG1).
absl::StatusOr<ByteReader> ReadStart(const char* what, uint32_t magic,
                                     std::string_view bytes) {
  ByteReader start(AsBytes(bytes));
  const bool is_magic = start.U32() == magic;
  const uint32_t version = start.U32();
  if (!start.good()) return NotA(what, bytes);
  const bool is_old = is_magic && version > 0 && version < kSummedVersion;
  std::span<const std::byte> rest = AsBytes(bytes);
  if (!is_old) {
    ALPHEUS_ASSIGN_OR_RETURN(rest, ReadSummed(absl::StrCat("a ", what).c_str(),
                                              magic, Uuid(), rest));
  }
  if (!is_magic) return NotA(what, bytes);
  if (version != kProtocolVersion) {
    // A rejection cuts the text, so that its front must be enough.
    return absl::UnimplementedError(absl::StrCat(
        "peer: protocol version ", version, ", here: version ",
        kProtocolVersion, ". Run programs of one version on all nodes"));
  }
  return ByteReader(rest.subspan(kStartBytes));
}

// Returns the rejection without a sum, as it is summed and as all versions read
// it.
ByteWriter RejectionOf(uint32_t version, uint32_t code, std::string_view text) {
  ByteWriter to;
  to.U32(kRejectionMagic);
  to.U32(version);
  to.U32(code);
  to.Raw(AsBytes(text));
  return to;
}

absl::Status RefusedUnsaid() {
  return absl::UnavailableError(
      "the replica refused the connection and did not say why");
}

// Three bytes of the sum of the rest, beside the code, which needs one byte.
uint32_t RejectionSumOf(ByteWriter bytes) {
  PutSum(bytes, kRejectionMagic, Uuid());
  ByteReader sum(std::span(bytes.bytes()).last(kSumBytes));
  return sum.U32() << 8;
}

}  // namespace

replication::SessionId NewSession(RandomSource& random) {
  for (;;) {
    const replication::SessionId session(random.Next());
    if (session != replication::SessionId()) return session;
  }
}

std::string EncodeHello(const Hello& hello) {
  ByteWriter to;
  to.U32(kHelloMagic);
  to.U32(kProtocolVersion);
  to.Id(hello.cluster_id);
  to.Id(hello.log_id);
  to.U64(hello.primary.incarnation);
  const uint64_t node = hello.primary.node.value;
  ALPHEUS_CHECK(node <= std::numeric_limits<uint32_t>::max(),
                "nodes have 16 bits (ballot.h)");
  to.U32(static_cast<uint32_t>(node));
  PutSum(to, kHelloMagic, Uuid());
  return TextOf(to);
}

absl::StatusOr<Hello> DecodeHello(std::string_view bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(ByteReader from,
                           ReadStart("hello", kHelloMagic, bytes));
  Hello hello;
  hello.cluster_id = from.AsUuid();
  hello.log_id = from.AsUuid();
  hello.primary.incarnation = from.U64();
  hello.primary.node = NodeId(from.U32());
  from.Expect(!hello.log_id.is_zero() && hello.primary.incarnation != 0);
  if (!from.IsDone()) return NotA("hello", bytes);
  return hello;
}

std::string EncodeServerHello(const ServerHello& server_hello) {
  ByteWriter to;
  to.U32(kServerHelloMagic);
  to.U32(kProtocolVersion);
  to.Id(server_hello.node);
  to.U64(server_hello.incarnation);
  to.U64(server_hello.ring_capacity);
  to.Id(server_hello.promised);
  to.U64(server_hello.configuration_id);
  Put(to, server_hello.platform);
  PutSum(to, kServerHelloMagic, Uuid());
  static_assert(kServerHelloBytes <= kHelloBytes);
  return TextOf(to);
}

absl::StatusOr<ServerHello> DecodeServerHello(std::string_view bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(ByteReader from,
                           ReadStart("server hello", kServerHelloMagic, bytes));
  ServerHello server_hello;
  server_hello.node = from.As<NodeId>();
  server_hello.incarnation = from.U64();
  server_hello.ring_capacity = from.U64();
  server_hello.promised = from.As<Epoch>();
  server_hello.configuration_id = from.U64();
  server_hello.platform = ReadPlatform(from);
  // Either both are 0 (no replica) or neither is.
  from.Expect((server_hello.incarnation == 0) ==
              (server_hello.ring_capacity == 0));
  from.Expect(server_hello.ring_capacity % kLineBytes == 0 &&
              server_hello.ring_capacity <= kOffsetEnd);
  if (!from.IsDone()) return NotA("server hello", bytes);
  return server_hello;
}

std::string EncodeRejection(const absl::Status& why, RejectionSum sum) {
  ALPHEUS_CHECK(!why.ok(), "a rejection needs a reason");
  const auto code = static_cast<uint32_t>(why.code());
  const std::string_view text = FrontOf(why, kRejectionTextBytes);
  ByteWriter to = RejectionOf(kProtocolVersion, code, text);
  if (sum == RejectionSum::kNone) return TextOf(to);
  ByteWriter summed =
      RejectionOf(kProtocolVersion, code | RejectionSumOf(to), text);
  return TextOf(summed);
}

absl::Status DecodeRejection(std::string_view bytes) {
  ByteReader from(AsBytes(bytes));
  const bool is_magic = from.U32() == kRejectionMagic;
  const uint32_t version = from.U32();
  const uint32_t word = from.U32();
  if (!is_magic || !from.good() || bytes.size() > kHelloBytes) {
    return RefusedUnsaid();
  }
  const std::string_view text = bytes.substr(kHelloBytes - kRejectionTextBytes);
  const bool is_summed = version == kProtocolVersion;
  const uint32_t code = is_summed ? word & 0xff : word;
  if (is_summed &&
      word != (code | RejectionSumOf(RejectionOf(version, code, text)))) {
    return absl::UnavailableError(
        "the replica refused the connection, and its reason was damaged on the "
        "way. Try again");
  }
  if (!IsCode(code)) return RefusedUnsaid();
  return {static_cast<absl::StatusCode>(code),
          absl::string_view(text.data(), text.size())};
}

absl::Status RequestChanged() {
  return absl::UnavailableError(
      "the request was damaged on the way, and was not carried out. Try again; "
      "if it happens again, check the network and the memory of both hosts");
}

uint64_t DigestOf(std::span<const CandidateState> candidates) {
  uint64_t digest = 0;
  for (const CandidateState& state : candidates) {
    uint64_t mixed =
        Mix(state.candidate.node.value, state.candidate.incarnation);
    mixed = Mix(mixed, static_cast<uint64_t>(state.standing));
    mixed = Mix(mixed, state.priority);
    digest += Mix(mixed, state.holds.value);
  }
  return digest;
}

std::vector<std::byte> EncodeMessage(Uuid log_id, const Message& message) {
  ByteWriter to;
  to.U32(kMessageMagic);
  to.U32(static_cast<uint32_t>(KindOf(message)));
  std::visit(BodyWriter{to}, message);
  PutSum(to, kMessageMagic, log_id);
  ALPHEUS_CHECK(to.bytes().size() <= kMessageBytesMax,
                "a full epoch table fits");
  return to.Take();
}

absl::StatusOr<Message> DecodeMessage(Uuid log_id,
                                      std::span<const std::byte> bytes) {
  const absl::Status none = absl::InvalidArgumentError(
      absl::StrCat(bytes.size(), " bytes came that are not a message"));
  if (bytes.size() > kMessageBytesMax) return none;
  ALPHEUS_ASSIGN_OR_RETURN(
      const std::span<const std::byte> summed,
      ReadSummed("a message", kMessageMagic, log_id, bytes));
  ByteReader from(summed);
  from.Expect(from.U32() == kMessageMagic);
  const auto kind = static_cast<Kind>(from.U32());
  Message message = ReadBody(kind, from, log_id);
  if (!from.IsDone()) return none;
  return message;
}

}  // namespace alpheus::recovery
