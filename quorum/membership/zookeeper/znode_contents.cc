// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/zookeeper/znode_contents.h"

#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "quorum/members/address.h"
#include "quorum/members/log_id.h"

namespace alpheus::quorum {
namespace {

constexpr std::string_view kFirstWord = "alpheus";
constexpr size_t kHexDigits = 16;
// The service appends ten digits.
constexpr size_t kSequenceDigits = 10;
constexpr std::string_view kPrimaryPrefix = "primary-";
constexpr size_t kTextBytesMax = 512;

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

std::string Hex(uint64_t value) {
  return absl::StrCat(absl::Hex(value, absl::kZeroPad16));
}

// Takes the text up to `end`, and that one; all of it, if there is none.
std::string_view TakeUntil(char end, std::string_view& text) {
  const size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return taken;
}

std::optional<uint64_t> ParseDecimal(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) {
      return std::nullopt;
    }
    value = value * 10 + digit;
  }
  return value;
}

// All 16 digits, as Hex writes them.
std::optional<uint64_t> ParseHex(std::string_view text) {
  if (text.size() != kHexDigits) return std::nullopt;
  uint64_t value = 0;
  for (const char c : text) {
    uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a') + 10;
    } else {
      return std::nullopt;
    }
    value = value << 4 | digit;
  }
  return value;
}

std::string FirstLine(std::string_view kind) {
  return absl::StrCat(View(kFirstWord), " ", View(kind), " ",
                      kZnodeLayoutVersion, "\n");
}

void Append(std::string& text, std::string_view key, std::string_view value) {
  absl::StrAppend(&text, View(key), " ", View(value), "\n");
}

void AppendNumber(std::string& text, std::string_view key, uint64_t value) {
  absl::StrAppend(&text, View(key), " ", value, "\n");
}

// One content, split into keys and values; makes all errors of it.
class Content {
 public:
  static absl::StatusOr<Content> Parse(std::string_view text,
                                       std::string_view kind) {
    Content content(kind);
    if (text.size() > kZnodeBytesMax) return content.Error("it is too long");
    std::string_view left = text;
    std::string_view first = TakeUntil('\n', left);
    if (TakeUntil(' ', first) != kFirstWord || TakeUntil(' ', first) != kind) {
      return content.Error("its first line is of something else");
    }
    const std::optional<uint64_t> version = ParseDecimal(first);
    if (!version) return content.Error("its first line has no version");
    if (*version != kZnodeLayoutVersion) {
      return absl::UnimplementedError(
          absl::StrCat("znode with a ", View(kind), " has version ", *version,
                       "; this program knows version ", kZnodeLayoutVersion,
                       ". Bring it up to date"));
    }
    while (!left.empty()) {
      std::string_view line = TakeUntil('\n', left);
      const std::string_view key = TakeUntil(' ', line);
      content.values_.emplace_back(key, line);
    }
    return content;
  }

  absl::Status Error(std::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "znode is no ", View(kind_), ": ", View(what),
        ". Somebody else wrote it; delete it, and it is made again"));
  }

  absl::StatusOr<std::string_view> Text(std::string_view key) const {
    std::optional<std::string_view> found;
    for (const auto& [name, value] : values_) {
      if (name != key) continue;
      if (found) return Error(absl::StrCat(View(key), " is there twice"));
      found = value;
    }
    if (!found) return Error(absl::StrCat(View(key), " is missing"));
    if (found->size() > kTextBytesMax) {
      return Error(absl::StrCat(View(key), " is too long"));
    }
    return *found;
  }

  absl::StatusOr<uint64_t> Number(
      std::string_view key, uint64_t min = 0,
      uint64_t max = std::numeric_limits<uint64_t>::max()) const {
    ALPHEUS_ASSIGN_OR_RETURN(const std::string_view text, Text(key));
    const std::optional<uint64_t> value = ParseDecimal(text);
    if (!value || *value < min || *value > max) {
      return Error(
          absl::StrCat(View(key), " is no number from ", min, " to ", max));
    }
    return *value;
  }

  absl::StatusOr<uint64_t> HexNumber(std::string_view key) const {
    ALPHEUS_ASSIGN_OR_RETURN(const std::string_view text, Text(key));
    const std::optional<uint64_t> value = ParseHex(text);
    if (!value) {
      return Error(absl::StrCat(View(key), " has not 16 hexadecimal digits"));
    }
    return *value;
  }

  absl::StatusOr<PrimaryId> Process() const {
    PrimaryId process;
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t node,
                             Number("node", 1, kBallotNodeMax));
    process.node = NodeId(node);
    ALPHEUS_ASSIGN_OR_RETURN(process.incarnation, HexNumber("incarnation"));
    return process;
  }

  const std::vector<std::pair<std::string_view, std::string_view>>& values()
      const {
    return values_;
  }

 private:
  explicit Content(std::string_view kind) : kind_(kind) {}

  std::string_view kind_;
  std::vector<std::pair<std::string_view, std::string_view>> values_;
};

// A line would end inside it.
std::string WithoutLines(std::string_view text) {
  std::string clean(text.substr(0, kTextBytesMax));
  for (char& c : clean) {
    if (c == '\n') c = ' ';
  }
  return clean;
}

}  // namespace

std::string EncodeFormat() { return FirstLine("format"); }

absl::Status CheckFormat(std::string_view text) {
  return Content::Parse(text, "format").status();
}

std::string EncodeBallot(Epoch ballot) {
  std::string text = FirstLine("ballot");
  Append(text, "epoch", Hex(ballot.value));
  // For operators, who do not know how an epoch is packed.
  AppendNumber(text, "counter", BallotCounter(ballot));
  AppendNumber(text, "node", BallotNode(ballot).value);
  return text;
}

absl::StatusOr<Epoch> DecodeBallot(std::string_view text) {
  ALPHEUS_ASSIGN_OR_RETURN(const Content content,
                           Content::Parse(text, "ballot"));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t value, content.HexNumber("epoch"));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t counter,
                           content.Number("counter", 1, kBallotCounterMax));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t node,
                           content.Number("node", 1, kBallotNodeMax));
  const Epoch epoch(value);
  if (BallotCounter(epoch) != counter || BallotNode(epoch).value != node) {
    return content.Error("counter and node are not those of its epoch");
  }
  return epoch;
}

std::string EncodeNode(const RegisteredNode& node) {
  std::string text = FirstLine("node");
  AppendNumber(text, "node", node.registration.node.value);
  Append(text, "incarnation", Hex(node.registration.incarnation));
  Append(text, "log", WithoutLines(node.log_name));
  Append(text, "address", WithoutLines(node.registration.address));
  Append(text, "log_epoch", Hex(node.registration.log_epoch.value));
  return text;
}

absl::StatusOr<RegisteredNode> DecodeNode(std::string_view text) {
  ALPHEUS_ASSIGN_OR_RETURN(const Content content, Content::Parse(text, "node"));
  RegisteredNode node;
  ALPHEUS_ASSIGN_OR_RETURN(const PrimaryId process, content.Process());
  ALPHEUS_ASSIGN_OR_RETURN(const std::string_view log, content.Text("log"));
  ALPHEUS_ASSIGN_OR_RETURN(const std::string_view address,
                           content.Text("address"));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t epoch,
                           content.HexNumber("log_epoch"));
  node.log_name = log;
  node.registration = {process.node, process.incarnation, std::string(address),
                       Epoch(epoch)};
  return node;
}

std::string NodeName(const Registration& registration) {
  return absl::StrCat(registration.node.value, "-",
                      Hex(registration.incarnation));
}

std::string EncodeMerits(const Merits& merits) {
  std::string text = FirstLine("candidate");
  Append(text, "log_epoch", Hex(merits.log_epoch.value));
  AppendNumber(text, "persisted_lsn", merits.persisted.value);
  AppendNumber(text, "priority", merits.priority);
  return text;
}

absl::StatusOr<Merits> DecodeMerits(std::string_view text) {
  ALPHEUS_ASSIGN_OR_RETURN(const Content content,
                           Content::Parse(text, "candidate"));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t persisted,
                           content.Number("persisted_lsn"));
  ALPHEUS_ASSIGN_OR_RETURN(
      const uint64_t priority,
      content.Number("priority", 0, std::numeric_limits<uint32_t>::max()));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t log_epoch,
                           content.HexNumber("log_epoch"));
  return Merits{Lsn(persisted), static_cast<uint32_t>(priority),
                Epoch(log_epoch)};
}

std::string CandidatePrefix(const PrimaryId& primary, uint64_t token) {
  return absl::StrCat(primary.node.value, "-", Hex(primary.incarnation), "-",
                      Hex(token), "-");
}

std::optional<CandidateName> ParseCandidateName(std::string_view name) {
  const std::optional<uint64_t> node = ParseDecimal(TakeUntil('-', name));
  const std::optional<uint64_t> incarnation = ParseHex(TakeUntil('-', name));
  const std::optional<uint64_t> token = ParseHex(TakeUntil('-', name));
  if (!node || *node < 1 || *node > kBallotNodeMax || !incarnation || !token ||
      name.size() != kSequenceDigits) {
    return std::nullopt;
  }
  uint64_t sequence = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return std::nullopt;
    sequence = sequence * 10 + static_cast<uint64_t>(c - '0');
  }
  return CandidateName{{NodeId(*node), *incarnation}, *token, sequence};
}

std::string EncodePrimary(const LivePrimary& primary) {
  std::string text = FirstLine("primary");
  Append(text, "epoch", Hex(primary.epoch.value));
  AppendNumber(text, "node", primary.primary.node.value);
  Append(text, "incarnation", Hex(primary.primary.incarnation));
  Append(text, "address", WithoutLines(primary.address));
  return text;
}

absl::StatusOr<LivePrimary> DecodePrimary(std::string_view text) {
  ALPHEUS_ASSIGN_OR_RETURN(const Content content,
                           Content::Parse(text, "primary"));
  LivePrimary primary;
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t epoch, content.HexNumber("epoch"));
  primary.epoch = Epoch(epoch);
  ALPHEUS_ASSIGN_OR_RETURN(primary.primary, content.Process());
  ALPHEUS_ASSIGN_OR_RETURN(const std::string_view address,
                           content.Text("address"));
  primary.address = address;
  return primary;
}

std::string PrimaryName(Epoch epoch) {
  return absl::StrCat(View(kPrimaryPrefix), Hex(epoch.value));
}

std::optional<Epoch> ParsePrimaryName(std::string_view name) {
  if (!name.starts_with(kPrimaryPrefix)) return std::nullopt;
  const std::optional<uint64_t> epoch =
      ParseHex(name.substr(kPrimaryPrefix.size()));
  if (!epoch) return std::nullopt;
  return Epoch(*epoch);
}

std::string EncodeMembers(const MembersCopy& members) {
  std::string text = FirstLine("members");
  AppendNumber(text, "configuration", members.configuration_id);
  AppendNumber(text, "write_quorum", members.write_quorum);
  AppendNumber(text, "read_quorum", members.read_quorum);
  for (const auto& [node, address] : members.members) {
    absl::StrAppend(&text, "member ", node.value, " ", WithoutLines(address),
                    "\n");
  }
  return text;
}

absl::StatusOr<MembersCopy> DecodeMembers(std::string_view text) {
  ALPHEUS_ASSIGN_OR_RETURN(const Content content,
                           Content::Parse(text, "members"));
  MembersCopy members;
  ALPHEUS_ASSIGN_OR_RETURN(members.configuration_id,
                           content.Number("configuration", 1));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t write_quorum,
                           content.Number("write_quorum", 1, kMembersMax));
  ALPHEUS_ASSIGN_OR_RETURN(const uint64_t read_quorum,
                           content.Number("read_quorum", 1, kMembersMax));
  members.write_quorum = static_cast<uint32_t>(write_quorum);
  members.read_quorum = static_cast<uint32_t>(read_quorum);
  for (const auto& [key, value] : content.values()) {
    if (key != "member") continue;
    std::string_view rest = value;
    const std::optional<uint64_t> node = ParseDecimal(TakeUntil(' ', rest));
    if (!node || *node < 1 || *node > kBallotNodeMax || rest.empty() ||
        rest.size() > kTextBytesMax || members.members.size() == kMembersMax) {
      return content.Error(
          absl::StrCat("a member has no node and address, or there are more "
                       "than ",
                       kMembersMax));
    }
    members.members.emplace_back(NodeId(*node), std::string(rest));
  }
  return members;
}

}  // namespace alpheus::quorum
