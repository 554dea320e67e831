// SPDX-License-Identifier: Apache-2.0
// Fuzzes the contents of znodes: each decoder over arbitrary and nearly right
// text, and the names of candidates and primaries. A text that is accepted is
// written back as one that reads the same (ZC1 of znode_contents.h).
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "quorum/arithmetic/ballot.h"
#include "quorum/membership/zookeeper/znode_contents.h"
#include "tests/fuzz/compare.h"
#include "tests/fuzz/fuzz_input.h"

namespace alpheus::testing {
namespace {

using namespace quorum;  // NOLINT(google-build-using-namespace)

// The kinds of contents, in the order of FuzzOne.
constexpr std::string_view kKinds[] = {"format",    "ballot",  "node",
                                       "candidate", "primary", "members"};

std::string TakeText(FuzzInput& input) {
  const auto bytes = input.Take(512);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T, class Decode, class Encode>
void ExpectReadsTheSame(const std::string& text, const Decode& decode,
                        const Encode& encode) {
  const absl::StatusOr<T> first = decode(text);
  if (!first.ok()) return;
  const std::string written = encode(*first);
  const absl::StatusOr<T> second = decode(written);
  ExpectTrue(second.ok(), "what was written is read");
  ExpectTrue(*first == *second, "what was written is the same");
  ExpectTrue(encode(*second) == written, "it is written the same way again");
}

void FuzzContents(uint8_t kind, const std::string& text) {
  switch (kind) {
    case 0:
      (void)CheckFormat(text);  // any outcome, and no crash
      break;
    case 1: {
      ExpectReadsTheSame<Epoch>(text, DecodeBallot, EncodeBallot);
      const absl::StatusOr<Epoch> ballot = DecodeBallot(text);
      if (!ballot.ok()) break;
      ExpectTrue(BallotCounter(*ballot) >= 1 &&
                     BallotCounter(*ballot) <= kBallotCounterMax,
                 "a ballot has a counter within its limits");
      ExpectTrue(BallotNode(*ballot).value >= 1, "a ballot has a node");
      break;
    }
    case 2:
      ExpectReadsTheSame<RegisteredNode>(text, DecodeNode, EncodeNode);
      break;
    case 3:
      ExpectReadsTheSame<Merits>(text, DecodeMerits, EncodeMerits);
      break;
    case 4:
      ExpectReadsTheSame<LivePrimary>(text, DecodePrimary, EncodePrimary);
      break;
    case 5: {
      ExpectReadsTheSame<MembersCopy>(text, DecodeMembers, EncodeMembers);
      const absl::StatusOr<MembersCopy> members = DecodeMembers(text);
      if (members.ok()) {
        ExpectTrue(members->members.size() <= kMembersMax,
                   "no more members than a log has");
      }
      break;
    }
    default: {
      if (const auto epoch = ParsePrimaryName(text)) {
        ExpectTrue(PrimaryName(*epoch) == text,
                   "a primary's name is written the same way again");
      }
      const auto name = ParseCandidateName(text);
      if (!name) break;
      const std::string prefix = CandidatePrefix(name->primary, name->token);
      ExpectTrue(std::string_view(text).starts_with(prefix),
                 "a candidate's name begins as it is written");
    }
  }
}

void FuzzOne(FuzzInput& input) {
  const uint8_t choice = input.Byte();
  const uint8_t kind = choice % 7;
  std::string text = TakeText(input);
  // The first line is right, mostly: the lines behind it are to be reached.
  if (choice >= 64 && kind < 6) {
    text = "alpheus " + std::string(kKinds[kind]) + " 1\n" + text;
  }
  FuzzContents(kind, text);
}

}  // namespace
}  // namespace alpheus::testing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  alpheus::testing::FuzzInput input(data, bytes);
  alpheus::testing::FuzzOne(input);
  return 0;
}
