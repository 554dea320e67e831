// SPDX-License-Identifier: Apache-2.0
// recovery_checker: judges what a power cut may have left of a tiny log.
//
// Idea: it recovers the image and holds the result against the oracle, then
// against itself: recovering again gives the same (P-C4), and a record appended
// after it is all that comes on top (P-H13). Nothing that the opened log is
// made of may be changed by a power cut (P-H7). The same holds of the images
// that a power cut inside the recovery leaves.
//
// Thread safety: one thread.
// References: design of the tests, section 1; protocol P-B1, P-H7, P-H9, P-H13.
#ifndef ALPHEUS_TESTS_SUPPORT_ORACLES_RECOVERY_CHECKER_H_
#define ALPHEUS_TESTS_SUPPORT_ORACLES_RECOVERY_CHECKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "log/pmem/crash_model.h"
#include "recovery/replica/local_opening.h"
#include "tests/support/oracles/crash_enumerator.h"
#include "tests/support/oracles/log_oracle.h"
#include "tests/support/fixtures/tiny_log.h"

namespace alpheus::testing {

class RecoveryChecker {
 public:
  struct Options {
    uint64_t seed = 1;
    // Crashes inside recovery: 0 none, 1 inside the first recovery, 2 inside
    // the recovery from that too. Of the images at each depth, one in so many
    // is recovered with crashes inside.
    int depth = 0;
    std::array<uint64_t, 2> crash_inside_one_in = {1, 1024};
    // Of the images of crashes inside recovery, one in so many is recovered
    // three times and appended to, as all others are; the rest once.
    uint64_t nested_repeat_one_in = 4;
    CrashEnumerator::Options nested;
  };
  struct Counts {
    uint64_t recoveries = 0;
    // Distinct images of crashes inside recovery, by depth.
    std::array<uint64_t, 2> nested_states{};
  };

  explicit RecoveryChecker(const Options& options);

  // Recovers `image` and holds it against the oracle. Empty, or what is wrong.
  std::string Check(std::span<const std::byte> image, uint64_t hash,
                    const LogOracle& oracle);

  // The same for what a kill of the process leaves now, memory kept, with
  // power cuts inside that recovery (P-H7). `hash` is any number of this point.
  std::string CheckAfterKill(const ModelPersistence& model, uint64_t hash,
                             const LogOracle& oracle);

  Counts counts() const;

 private:
  static constexpr int kLevels = 3;  // crashes inside recovery, plus one
  struct Level {
    // Recovered from the image, from what that left, and once more.
    std::array<std::unique_ptr<ModelPersistence>, 3> models;
    std::unique_ptr<CrashEnumerator> crashes;
  };

  // Recovers what models[0] of the level holds.
  std::string CheckAt(int level, uint64_t hash, const LogOracle& oracle,
                      bool crash_inside);
  std::string CheckCrashesInside(int level, ModelPersistence& model,
                                 const LogOracle& oracle);
  std::string CheckRepeats(int level, const OpenedEpoch& opened,
                           const RecoveredLog& first, uint64_t hash);
  std::string RecoverAgain(ModelPersistence& from, ModelPersistence& to,
                           const RecoveredLog& expected, const char* after,
                           OpenedEpoch* opened);
  // Appends a record; `expected` becomes what must be recovered from then on.
  std::string AppendOneMore(ModelPersistence& model, const OpenedEpoch& opened,
                            RecoveredLog* expected);
  bool CrashesInside(int level, uint64_t hash) const;
  ModelPersistence& Model(int level, int which, size_t bytes);

  const Options options_;
  StoppedClock clock_;
  SoloWaiter waiter_;
  std::array<Level, kLevels> levels_;
  std::string extra_payload_;
  uint64_t recoveries_ = 0;
  std::array<uint64_t, kLevels - 1> nested_states_{};
  uint64_t nonce_count_ = 0;
};

}  // namespace alpheus::testing

#endif  // ALPHEUS_TESTS_SUPPORT_ORACLES_RECOVERY_CHECKER_H_
