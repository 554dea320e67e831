// SPDX-License-Identifier: Apache-2.0
// cluster_cuts: the power of a whole cluster is cut at once, and as many
// members as an opening needs come back.
//
// Idea: a cluster (opening_world.h) runs, with a log on it that is written
// through the public calls. At points of that run the memory of each member
// becomes one of the images that the crash model allows, each by itself. A
// second cluster starts from these images, with some of the members only; what
// it opens is held against the oracle. While it opens the power may be cut
// again, in the same way. The run that is looked at goes on undisturbed.
//
// Properties that are checked (P-C1 to P-C4, P-C6, P-C8):
//   CC1. The opening succeeds with any OpeningQuorum of the members, not
//        counting those that a power cut caught in the middle of a repair that
//        overwrites valid records: for each of these one more, as far as there
//        are any.
//   CC2. An acknowledged record is there, at its LSN, with its bytes.
//   CC3. A record beyond was written by somebody, at its LSN, and is unbroken.
//   CC4. All later openings show the records that an opening has shown.
//   CC5. The log goes on, and those who came back later take part.
// Thread safety: one thread.
// References: protocol P-A4, P-B1; crash_model.h.
#ifndef ALPHEUS_TESTS_CRASH_CLUSTER_CUTS_H_
#define ALPHEUS_TESTS_CRASH_CLUSTER_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "log/base/random.h"
#include "tests/recovery/opening/opening_world.h"

namespace alpheus::testing {

// The records that may and those that must be found after a power cut. A record
// that an opening has shown counts as acknowledged; the others are forgotten.
struct ClusterOracle {
  // By LSN: the payload that was given to the log there last.
  std::map<uint64_t, std::string> written;
  uint64_t durable = 0;  // acknowledged up to here
  uint64_t cleaned = 0;  // all up to here: the head is at most behind it
  std::set<uint64_t> cleaned_beyond = {};
  uint64_t emptied = 0;  // and at least behind this

  // Cleaned, or aborted, which is as good.
  void Clean(uint64_t lsn);
  void CleanThrough(uint64_t lsn);
  bool IsCleaned(uint64_t lsn) const {
    return lsn <= cleaned || cleaned_beyond.contains(lsn);
  }
  // An opening ended with this record.
  void Show(uint64_t last);
  uint64_t Hash() const;
};

using Images = std::vector<std::vector<std::byte>>;

struct ClusterCutOptions {
  int members = 3;
  int write_quorum = 2;
  uint64_t seed = 1;
  uint64_t ring_capacity = 1024;
  uint64_t payload_bytes_max = 120;
  // Power cuts inside an opening that follows a power cut, so deep; each
  // opening is cut at about so many points.
  int depth = 1;
  int cuts_per_opening = 1;
  // All choices of members that come back, or one drawn by lot.
  bool all_choices = true;
};

// Judges images.
class ClusterCuts {
 public:
  struct Counts {
    uint64_t points = 0;    // at which the power was cut
    uint64_t cuts = 0;      // sets of images
    uint64_t openings = 0;  // that were judged
    uint64_t nested = 0;    // cuts inside openings
    uint64_t repaired = 0;  // openings with repairs
    uint64_t dropped = 0;   // openings without a record that was written
    uint64_t refused = 0;   // tries, for a higher promise
    uint64_t widened = 0;   // members more, for one that knows nothing
  };

  explicit ClusterCuts(const ClusterCutOptions& options)
      : options_(options), random_(options.seed) {}

  // Cuts the power of all now: every mix of none and all, if asked for, and so
  // many drawn ones. Images that were judged with this oracle are left out.
  void CutAt(OpeningWorld& world, const ClusterOracle& oracle, bool mixes,
             int drawn);

  // Images that a power cut now may leave; drawn by lot.
  Images Draw(OpeningWorld& world);

  // Opens an epoch by a primary on `host`, with the members that are up; the
  // oracle then knows what was shown.
  std::unique_ptr<OpeningWorld::Primary> Open(OpeningWorld& world, int host,
                                              ClusterOracle& oracle);
  // Appends a record, and has it acknowledged; whatever else is finished, too.
  absl::Status Append(OpeningWorld::Primary& primary, ClusterOracle& oracle);

  // A payload that no other has.
  std::string NextText();

  OpeningWorld::Options WorldOptions();
  Random& random() { return random_; }
  const Counts& counts() const { return counts_; }
  void Print() const;

 private:
  void Judge(const Images& images, const ClusterOracle& oracle, int depth);
  uint32_t WithEnoughThatKnow(const Images& images, uint32_t choice);
  void JudgeChoice(const Images& images, ClusterOracle oracle, uint32_t choice,
                   int depth);
  void MaybeCutAgain(OpeningWorld& world, const ClusterOracle& oracle,
                     bool is_fence, int depth);
  void JudgeAnswer(OpeningWorld& world, OpeningWorld::Primary& primary,
                   ClusterOracle& oracle);

  const ClusterCutOptions options_;
  Random random_;
  Counts counts_;
  uint64_t appended_ = 0;
  absl::flat_hash_set<uint64_t> seen_;
};

// While it lives, calls `at` before every fence of a member and after every
// event of the network.
class CutPoints {
 public:
  using At = std::function<void(bool is_fence)>;

  CutPoints(OpeningWorld& world, int members, const At& at);
  ~CutPoints();
  CutPoints(const CutPoints&) = delete;
  CutPoints& operator=(const CutPoints&) = delete;

 private:
  OpeningWorld& world_;
  const int members_;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_CRASH_CLUSTER_CUTS_H_
