// SPDX-License-Identifier: Apache-2.0
// chooser: from the answers of the replicas to the one log that is kept.
//
// Idea: the highest log epoch E among the answers ranks: it was installed only
// on logs that held everything durable before it (P-H3). Its epoch table says
// which epoch owns which LSN, so that records of older epochs can be merged
// with those of E without ever mixing histories (P-H8, P-H13). From the head on
// each LSN is judged by two tables: what each answer counts as, and what the
// counts decide.
//
// What an answer counts as at LSN k (the first row that fits; "-" is any;
// "owns" is: the record's epoch owns k in E's table):
//
//   verdict  repairing  log_epoch  k           epoch      counts as
//   have     -          E          -           owns       holder
//   have     -          E          -           other      contradiction
//   have     -          below E    < start(E)  owns       holder
//   have     -          below E    >= start(E) owns       silence
//   have     -          below E    -           other      nack
//   torn     -          -          -           -          nack
//   absent   -          -          -           -          nack
//   unknown  yes        below E    >= start(E) -          nack
//   unknown  -          -          -           -          silence
//   corrupt  -          below E    >= start(E) -          nack
//   corrupt  -          -          -           -          silence
//
// A blank replica that E's configuration names counts as a repairing one.
// A replica below E never acknowledged an LSN that E owns, whatever its ring is
// like: blank, repairing, or with a broken record there, which an opening
// leaves that was cut off while it wrote records of E over others beyond the
// chosen end. A record of E on a replica that never installed E is what a
// rejoin that was cut off left: neither held nor denied.
//
// What the counts decide (the first row that fits):
//
//   contradiction or two identities   error: DataLoss
//   holders >= 1                      keep k
//   nacks >= N - W + 1                the log ends before k
//   not all N answered                wait for more replicas
//   a corrupt one                     error: DataLoss
//   otherwise                         error: FailedPrecondition
//
// Invariants:
//   CH1. Every drop has N - W + 1 nacks of distinct, fenced replicas that are
//        not suspect, nor blank but where they never acknowledged (P-INV-2,
//        P-H16).
//   CH2. The end is at or behind that of every answer with log_epoch E
//        (P-INV-1).
//   CH3. The chain of what is kept is unbroken, from the head's value through
//        every start in E's table (P-INV-8).
//   CH4. What can't be decided is an error or a wait, never a shorter log (P-C6
//        of the protocol); an empty log is an end like any other (P-INV-10).
// Thread safety: pure.
// References: protocol P-A4.4, P-H1 to P-H4, P-H8 to P-H10, P-H12, P-H13, P-H16
// to P-H18, P-H25.
#ifndef ALPHEUS_RECOVERY_OPENING_CHOOSER_H_
#define ALPHEUS_RECOVERY_OPENING_CHOOSER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"
#include "log/core/read/record_cursor.h"
#include "log/format/epoch_table.h"
#include "log/format/superline.h"
#include "quorum/arithmetic/quorum.h"
#include "recovery/protocol/answer.h"

namespace alpheus {

// Answers by their index in the span that was given to Choose: a set of bits.
using AnswerSet = uint32_t;
constexpr bool Contains(AnswerSet set, size_t index) {
  return (set >> index & 1) != 0;
}

// Kept LSNs of one epoch that the same replicas hold.
struct KeptRun {
  Lsn first;
  Lsn end;  // behind the last one
  Epoch epoch;
  AnswerSet holders = 0;  // of the chosen identity; never empty

  bool operator==(const KeptRun&) const = default;
};

enum class Outcome {
  kChosen,
  kWait,  // more replicas must answer; `reason` says why
};

struct Decision {
  Outcome outcome = Outcome::kWait;
  std::string reason;           // of kWait
  Epoch epoch;                  // E
  EpochTable table;             // of E
  Configuration configuration;  // of E: names who is a member
  AnswerSet members = 0;  // answers of named incarnations, blank ones left out
  AnswerSet counts = 0;   // of these, all that are not suspect
  AnswerSet newcomers = 0;  // named, but blank: they never installed an epoch

  // Of kChosen:
  LogPosition head;
  LogPosition end;            // behind the last kept record
  std::vector<KeptRun> kept;  // unbroken from head to end
  AnswerSet nacks = 0;        // of end.lsn
};

// Of the highest log epoch among those that are not blank; nullptr if all are.
const Configuration* NewestConfiguration(std::span<const Answer> answers);

// Errors, each with node, epoch, LSN, what was seen and expected, and remedy:
//   InvalidArgument     sizes that are no quorums, two answers of one replica
//   FailedPrecondition  every replica answered and too few know; or another
//                       configuration holds
//   DataLoss            a record that was acknowledged can be read nowhere;
//                       answers contradict each other; the chain is broken
absl::StatusOr<Decision> Choose(const QuorumSizes& sizes,
                                std::span<const Answer> answers);

// The record of the chosen identity at an LSN of `run`.
const HeldRecord& RecordAt(std::span<const Answer> answers, const KeptRun& run,
                           Lsn lsn);

}  // namespace alpheus

#endif  // ALPHEUS_RECOVERY_OPENING_CHOOSER_H_
