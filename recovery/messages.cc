// SPDX-License-Identifier: Apache-2.0
#include "recovery/messages.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/check.h"
#include "quorum/log_id.h"
#include "recovery/byte_stream.h"

namespace alpheus {
namespace {

// The first word of each; on the wire, never renumber.
constexpr uint32_t kHelloMagic = 0x45485041;      // "APHE" in memory
constexpr uint32_t kWelcomeMagic = 0x45575041;    // "APWE"
constexpr uint32_t kRejectionMagic = 0x45525041;  // "APRE"
constexpr uint32_t kMessageMagic = 0x534d5041;    // "APMS"
constexpr uint32_t kAnswerMagic = 0x4e415041;     // "APAN"

// What a message is; on the wire, never renumber.
enum class Kind : uint32_t {
  kFormat = 1,
  kFormatted = 2,
  kAskPromise = 3,
  kPromised = 4,
  kRefused = 5,
  kPrepare = 6,
  kPrepared = 7,
  kInstall = 8,
  kInstalled = 9,
  kFailed = 10,
  kView = 11,
  kViewed = 12,
  kRelease = 13,
  kReleased = 14,
};

constexpr size_t kWelcomeBytes = 56;
// Magic, version and code.
constexpr size_t kRejectionTextBytes = kHelloBytes - 12;
constexpr size_t kFailedTextBytes = 4096;
// Offsets stay below, so that what is added to them never goes round.
constexpr uint64_t kOffsetEnd = uint64_t{1} << 62;

// --- Parts of messages -------------------------------------------------------

std::string TakeText(ByteWriter& writer) {
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

Promise TakePromise(ByteReader& from) {
  Promise promise;
  promise.epoch = from.As<Epoch>();
  promise.primary.node = from.As<NodeId>();
  promise.primary.incarnation = from.U64();
  from.Expect(IsPromise(promise));
  return promise;
}

// All members, replica_count of them.
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

constexpr uint32_t kNativeFlush = 1;
constexpr uint32_t kAtomicWrite = 2;

// One byte for each axis, then what the adapter can do.
void Put(ByteWriter& to, const Platform& platform) {
  to.U32(static_cast<uint32_t>(platform.domain) |
         (platform.ddio ? 0U : 1U) << 8 |
         static_cast<uint32_t>(platform.receive_buffers) << 16 |
         static_cast<uint32_t>(platform.transport) << 24);
  to.U32((platform.native_flush ? kNativeFlush : 0) |
         (platform.atomic_write ? kAtomicWrite : 0));
}

Platform TakePlatform(ByteReader& from) {
  const uint32_t axes = from.U32();
  const uint32_t abilities = from.U32();
  const auto axis = [&](int index, auto max) {
    const uint32_t value = axes >> (8 * index) & 0xff;
    const bool is_known = from.Expect(value <= static_cast<uint32_t>(max));
    return static_cast<decltype(max)>(is_known ? value : 0);
  };
  Platform platform;
  platform.domain = axis(0, PersistenceDomain::kSystem);
  platform.ddio = !axis(1, true);
  platform.receive_buffers = axis(2, ReceiveBuffers::kPmem);
  platform.transport = axis(3, Transport::kInfiniBand);
  from.Expect(abilities <= (kNativeFlush | kAtomicWrite));
  platform.native_flush = (abilities & kNativeFlush) != 0;
  platform.atomic_write = (abilities & kAtomicWrite) != 0;
  return platform;
}

// --- Messages ----------------------------------------------------------------

Kind KindOf(const Message& message) {
  return static_cast<Kind>(message.index() + 1);
}
static_assert(std::is_same_v<std::variant_alternative_t<0, Message>, Format>);
static_assert(
    std::is_same_v<std::variant_alternative_t<2, Message>, AskPromise>);
static_assert(std::is_same_v<std::variant_alternative_t<7, Message>, Install>);
static_assert(std::is_same_v<std::variant_alternative_t<9, Message>, Failed>);
static_assert(std::is_same_v<std::variant_alternative_t<11, Message>, Viewed>);
static_assert(std::variant_size_v<Message> ==
              static_cast<size_t>(Kind::kReleased));

struct BodyWriter {
  ByteWriter& to;

  void operator()(const Format& format) const {
    ALPHEUS_CHECK(CheckLogName(format.log_name).ok(),
                  "names are checked before");
    to.U64(format.region_bytes);
    Put(to, format.configuration);
    to.Text(format.log_name);
  }
  void operator()(const Formatted& /*formatted*/) const {}
  void operator()(const AskPromise& ask) const { Put(to, ask.promise); }
  void operator()(const Promised& promised) const {
    to.Id(promised.answer_key);
    to.U64(promised.answer_bytes);
    to.Id(promised.ring_key);
  }
  void operator()(const Refused& refused) const { Put(to, refused.standing); }
  void operator()(const Prepare& prepare) const {
    to.Id(prepare.epoch);
    to.U32(prepare.set_repairing ? 1 : 0);
  }
  void operator()(const Prepared& prepared) const { to.Id(prepared.ring_key); }
  void operator()(const Install& install) const {
    const Installation& installation = install.installation;
    to.Id(installation.epoch);
    to.Id(install.session);
    to.U32(install.credits);
    Put(to, installation.head);
    Put(to, installation.end);
    Put(to, installation.table);
  }
  void operator()(const Installed& /*installed*/) const {}
  void operator()(const Failed& failed) const {
    ALPHEUS_CHECK(!failed.status.ok(), "who failed says how");
    to.U32(static_cast<uint32_t>(failed.status.code()));
    to.Text(FrontOf(failed.status, kFailedTextBytes));
  }
  void operator()(const View& /*view*/) const {}
  void operator()(const Viewed& viewed) const {
    to.Id(viewed.region_key);
    to.U64(viewed.region_bytes);
  }
  void operator()(const Release& /*release*/) const {}
  void operator()(const Released& /*released*/) const {}
};

absl::StatusCode TakeCode(ByteReader& from) {
  const uint32_t code = from.U32();
  from.Expect(code >= static_cast<uint32_t>(absl::StatusCode::kCancelled) &&
              code <=
                  static_cast<uint32_t>(absl::StatusCode::kUnauthenticated));
  return from.good() ? static_cast<absl::StatusCode>(code)
                     : absl::StatusCode::kUnknown;
}

Format TakeFormat(ByteReader& from) {
  Format format;
  format.region_bytes = from.U64();
  format.configuration = TakeConfiguration(from);
  format.log_name = from.Text(kLogNameBytesMax);
  from.Expect(CheckLogName(format.log_name).ok());
  return format;
}

Promised TakePromised(ByteReader& from) {
  Promised promised;
  promised.answer_key = from.As<RegionKey>();
  promised.answer_bytes = from.U64();
  promised.ring_key = from.As<RegionKey>();
  from.Expect(promised.answer_key != RegionKey() && promised.answer_bytes > 0 &&
              promised.ring_key != RegionKey());
  return promised;
}

Prepare TakePrepare(ByteReader& from) {
  Prepare prepare;
  prepare.epoch = from.As<Epoch>();
  const uint32_t set_repairing = from.U32();
  prepare.set_repairing = set_repairing == 1;
  from.Expect(prepare.epoch.value > 0 && set_repairing <= 1);
  return prepare;
}

Prepared TakePrepared(ByteReader& from) {
  const Prepared prepared{from.As<RegionKey>()};
  from.Expect(prepared.ring_key != RegionKey());
  return prepared;
}

Install TakeInstall(ByteReader& from, Uuid log_id) {
  Install install;
  install.installation.epoch = from.As<Epoch>();
  install.session = from.As<SessionId>();
  install.credits = from.U32();
  install.installation.head = TakePosition(from);
  install.installation.end = TakePosition(from);
  install.installation.table = TakeTable(from, log_id);
  from.Expect(install.installation.epoch.value > 0 && install.credits > 0);
  return install;
}

Failed TakeFailed(ByteReader& from) {
  const absl::StatusCode code = TakeCode(from);
  const std::string text = from.Text(kFailedTextBytes);
  return {absl::Status(code, text)};
}

Viewed TakeViewed(ByteReader& from) {
  Viewed viewed;
  viewed.region_key = from.As<RegionKey>();
  viewed.region_bytes = from.U64();
  from.Expect(viewed.region_key != RegionKey() && viewed.region_bytes > 0);
  return viewed;
}

Message TakeBody(Kind kind, ByteReader& from, Uuid log_id) {
  switch (kind) {
    case Kind::kFormat:
      return TakeFormat(from);
    case Kind::kFormatted:
      return Formatted{};
    case Kind::kAskPromise:
      return AskPromise{TakePromise(from)};
    case Kind::kPromised:
      return TakePromised(from);
    case Kind::kRefused:
      return Refused{TakePromise(from)};
    case Kind::kPrepare:
      return TakePrepare(from);
    case Kind::kPrepared:
      return TakePrepared(from);
    case Kind::kInstall:
      return TakeInstall(from, log_id);
    case Kind::kInstalled:
      return Installed{};
    case Kind::kFailed:
      return TakeFailed(from);
    case Kind::kView:
      return View{};
    case Kind::kViewed:
      return TakeViewed(from);
    case Kind::kRelease:
      return Release{};
    case Kind::kReleased:
      return Released{};
  }
  from.Expect(false);  // of another version, or nonsense
  return Installed{};
}

// --- Hello, Welcome, Rejection -----------------------------------------------

absl::Status NotA(const char* what, std::string_view bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("handshake: ", bytes.size(), " bytes are no ", what,
                   ". Another program, or damage on the way"));
}

// Magic and version, which mean the same in all versions.
absl::Status TakeStart(ByteReader& from, const char* what, uint32_t magic,
                       std::string_view bytes) {
  const bool is_magic = from.U32() == magic;
  const uint32_t version = from.U32();
  if (!from.Expect(is_magic)) return NotA(what, bytes);
  if (version == kProtocolVersion) return absl::OkStatus();
  // Its front must do, where it is cut as a rejection.
  return absl::UnimplementedError(absl::StrCat(
      "peer: protocol version ", version, ", here: version ", kProtocolVersion,
      ". Run programs of one version on all nodes"));
}

// --- Answers -----------------------------------------------------------------

constexpr uint32_t kBlank = 1;
constexpr uint32_t kSuspect = 2;
constexpr uint32_t kRepairing = 4;

constexpr size_t kRunBytes = 16;
constexpr size_t kHeldBytes = 24;

uint64_t LinesOf(const Answer& answer) {
  return answer.ring_capacity / kLineBytes;
}

// A1, and that no more LSNs are spoken of than the ring has lines.
std::vector<VerdictRun> TakeRuns(ByteReader& from, const Answer& answer) {
  std::vector<VerdictRun> runs;
  const uint64_t count = from.U64();
  if (!from.Holds(count, kRunBytes)) return runs;
  runs.reserve(count);
  Lsn next = answer.head.lsn;
  size_t held = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t verdict = from.U64();
    const uint64_t lsns = from.U64();
    const uint64_t said = next - answer.head.lsn;
    if (!from.Expect(verdict <= static_cast<uint64_t>(Verdict::kUnknown) &&
                     lsns >= 1 && lsns <= LinesOf(answer) - said)) {
      return {};
    }
    const auto as_verdict = static_cast<Verdict>(verdict);
    runs.push_back({next, next + lsns, as_verdict, held});
    next = next + lsns;
    if (as_verdict == Verdict::kHave) held += lsns;
  }
  return runs;
}

uint64_t RecordsIn(const std::vector<VerdictRun>& runs) {
  uint64_t records = 0;
  for (const VerdictRun& run : runs) {
    if (run.verdict == Verdict::kHave) records += run.end - run.first;
  }
  return records;
}

std::vector<HeldRecord> TakeHeld(ByteReader& from, const Answer& answer) {
  std::vector<HeldRecord> held;
  const uint64_t count = from.U64();
  if (!from.Expect(count == RecordsIn(answer.runs)) ||
      !from.Holds(count, kHeldBytes)) {
    return held;
  }
  held.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    HeldRecord record;
    record.epoch = from.As<Epoch>();
    record.offset = from.As<RingOffset>();
    record.header_checksum = from.U32();
    record.lines = from.U32();
    held.push_back(record);
  }
  return held;
}

// Records lie one behind the other in the ring's lap from head on, and each
// epoch owns its LSN (T2).
bool AreHeldGood(const Answer& answer) {
  const RingOffset limit = answer.head.offset + answer.ring_capacity;
  RingOffset free = answer.head.offset;
  for (const VerdictRun& run : answer.runs) {
    if (run.verdict != Verdict::kHave) continue;
    for (Lsn lsn = run.first; lsn < run.end; lsn = lsn + 1) {
      const HeldRecord& record = answer.held[run.held + (lsn - run.first)];
      const EpochEntry* const owner = answer.table.Owner(lsn);
      const bool fits =
          record.lines > 0 && record.offset.value % kLineBytes == 0 &&
          record.offset >= free && record.offset < limit &&
          uint64_t{record.lines} * kLineBytes <= limit - record.offset;
      if (!fits || owner == nullptr || owner->epoch != record.epoch) {
        return false;
      }
      free = record.offset + uint64_t{record.lines} * kLineBytes;
    }
  }
  return true;
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  ByteWriter to;
  to.U32(kHelloMagic);
  to.U32(kProtocolVersion);
  to.Id(hello.cluster_id);
  to.Id(hello.log_id);
  to.Id(hello.primary.node);
  to.U64(hello.primary.incarnation);
  return TakeText(to);
}

absl::StatusOr<Hello> DecodeHello(std::string_view bytes) {
  ByteReader from(AsBytes(bytes));
  if (absl::Status s = TakeStart(from, "hello", kHelloMagic, bytes); !s.ok()) {
    return s;
  }
  Hello hello;
  hello.cluster_id = from.AsUuid();
  hello.log_id = from.AsUuid();
  hello.primary.node = from.As<NodeId>();
  hello.primary.incarnation = from.U64();
  from.Expect(!hello.log_id.is_zero() && hello.primary.incarnation != 0);
  if (!from.IsDone()) return NotA("hello", bytes);
  return hello;
}

std::string EncodeWelcome(const Welcome& welcome) {
  ByteWriter to;
  to.U32(kWelcomeMagic);
  to.U32(kProtocolVersion);
  to.Id(welcome.node);
  to.U64(welcome.incarnation);
  to.U64(welcome.ring_capacity);
  to.Id(welcome.promised);
  to.U64(welcome.configuration_id);
  Put(to, welcome.platform);
  static_assert(kWelcomeBytes <= kHelloBytes);
  return TakeText(to);
}

absl::StatusOr<Welcome> DecodeWelcome(std::string_view bytes) {
  ByteReader from(AsBytes(bytes));
  if (absl::Status s = TakeStart(from, "welcome", kWelcomeMagic, bytes);
      !s.ok()) {
    return s;
  }
  Welcome welcome;
  welcome.node = from.As<NodeId>();
  welcome.incarnation = from.U64();
  welcome.ring_capacity = from.U64();
  welcome.promised = from.As<Epoch>();
  welcome.configuration_id = from.U64();
  welcome.platform = TakePlatform(from);
  // There is a replica, or there is none.
  from.Expect((welcome.incarnation == 0) == (welcome.ring_capacity == 0));
  from.Expect(welcome.ring_capacity % kLineBytes == 0 &&
              welcome.ring_capacity <= kOffsetEnd);
  if (!from.IsDone()) return NotA("welcome", bytes);
  return welcome;
}

std::string EncodeRejection(const absl::Status& why) {
  ALPHEUS_CHECK(!why.ok(), "who rejects says why");
  ByteWriter to;
  to.U32(kRejectionMagic);
  to.U32(kProtocolVersion);
  to.U32(static_cast<uint32_t>(why.code()));
  to.Raw(AsBytes(FrontOf(why, kRejectionTextBytes)));
  return TakeText(to);
}

absl::Status DecodeRejection(std::string_view bytes) {
  ByteReader from(AsBytes(bytes));
  const bool is_magic = from.U32() == kRejectionMagic;
  from.U32();  // of any version
  const absl::StatusCode code = TakeCode(from);
  if (!is_magic || !from.good() || bytes.size() > kHelloBytes) {
    return absl::UnavailableError(
        "the replica refused the connection and did not say why");
  }
  const std::string_view text = bytes.substr(kHelloBytes - kRejectionTextBytes);
  return absl::Status(code, absl::string_view(text.data(), text.size()));
}

std::vector<std::byte> EncodeMessage(const Message& message) {
  ByteWriter to;
  to.U32(kMessageMagic);
  to.U32(static_cast<uint32_t>(KindOf(message)));
  std::visit(BodyWriter{to}, message);
  ALPHEUS_CHECK(to.bytes().size() <= kMessageBytesMax,
                "a full epoch table fits");
  return to.Take();
}

std::optional<Message> DecodeMessage(Uuid log_id,
                                     std::span<const std::byte> bytes) {
  if (bytes.size() > kMessageBytesMax) return std::nullopt;
  ByteReader from(bytes);
  from.Expect(from.U32() == kMessageMagic);
  const auto kind = static_cast<Kind>(from.U32());
  Message message = TakeBody(kind, from, log_id);
  if (!from.IsDone()) return std::nullopt;
  return message;
}

uint64_t AnswerBytesMax(uint64_t ring_capacity) {
  const uint64_t lines = ring_capacity / kLineBytes;
  return kMessageBytesMax + lines * (kRunBytes + kHeldBytes);
}

std::vector<std::byte> EncodeAnswer(const Answer& answer) {
  ByteWriter to;
  to.Reserve(kMessageBytesMax + answer.runs.size() * kRunBytes +
             answer.held.size() * kHeldBytes);
  to.U32(kAnswerMagic);
  to.U32(kProtocolVersion);
  to.Id(answer.node);
  to.U64(answer.incarnation);
  Put(to, answer.configuration);
  to.U64(answer.ring_capacity);
  to.Id(answer.log_epoch);
  to.Id(answer.promised_before);
  Put(to, answer.head);
  to.Id(answer.proven_lsn);
  to.U32((answer.blank ? kBlank : 0) | (answer.suspect ? kSuspect : 0) |
         (answer.repairing ? kRepairing : 0));
  Put(to, answer.table);
  to.U64(answer.runs.size());
  for (const VerdictRun& run : answer.runs) {
    to.U64(static_cast<uint64_t>(run.verdict));
    to.U64(run.end - run.first);
  }
  to.U64(answer.held.size());
  for (const HeldRecord& record : answer.held) {
    to.Id(record.epoch);
    to.Id(record.offset);
    to.U32(record.header_checksum);
    to.U32(record.lines);
  }
  return to.Take();
}

std::optional<Answer> DecodeAnswer(Uuid log_id,
                                   std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  from.Expect(from.U32() == kAnswerMagic);
  from.Expect(from.U32() == kProtocolVersion);
  Answer answer;
  answer.node = from.As<NodeId>();
  answer.incarnation = from.U64();
  answer.configuration = TakeConfiguration(from);
  answer.ring_capacity = from.U64();
  from.Expect(answer.ring_capacity <= kOffsetEnd &&
              answer.ring_capacity % kLineBytes == 0);
  answer.log_epoch = from.As<Epoch>();
  answer.promised_before = from.As<Epoch>();
  answer.head = TakePosition(from);
  answer.proven_lsn = from.As<Lsn>();
  const uint32_t flags = from.U32();
  from.Expect(flags <= (kBlank | kSuspect | kRepairing));
  answer.blank = (flags & kBlank) != 0;
  answer.suspect = (flags & kSuspect) != 0;
  answer.repairing = (flags & kRepairing) != 0;
  answer.table = TakeTable(from, log_id);
  // Whoever adds to LSNs never goes round.
  if (!from.Expect(answer.head.lsn.value < kOffsetEnd &&
                   answer.proven_lsn < answer.head.lsn + LinesOf(answer))) {
    return std::nullopt;
  }
  answer.runs = TakeRuns(from, answer);
  if (!from.good()) return std::nullopt;
  answer.held = TakeHeld(from, answer);
  if (!from.IsDone() || !AreHeldGood(answer)) return std::nullopt;
  return answer;
}

}  // namespace alpheus
