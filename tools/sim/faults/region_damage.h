// SPDX-License-Identifier: Apache-2.0
// region_damage: damage by storage to the bytes of a region that nobody has
// open.
//
// Thread safety: pure functions of images and a random source.
// References: protocol P-A8; docs/verify/simulation.md, "Faults".
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_REGION_DAMAGE_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_REGION_DAMAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/core/read/record_cursor.h"
#include "log/format/layout.h"
#include "quorum/members/configuration.h"
#include "tools/sim/world/lacks.h"

namespace alpheus::sim {

using RegionImage = std::vector<std::byte>;

// Record that a node would find there.
struct ImageRecord {
  Lsn lsn;
  Epoch epoch;
  size_t at = 0;     // bytes from region start
  size_t bytes = 0;  // size in the ring, header included
  size_t said = 0;   // of these, header and payload

  bool operator==(const ImageRecord&) const = default;
};

// Log that a node would read in the region. Nothing if it could not.
struct ImageLog {
  Epoch promised;
  Epoch log_epoch;
  LogPosition head;
  bool repairing = false;
  Lsn proven;                        // by watermark and epoch
  std::vector<ImageRecord> records;  // by LSN

  bool operator==(const ImageLog&) const = default;
};
std::optional<ImageLog> ReadImage(const RegionImage& image);

// Identity in a region.
struct RegionIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
};
// Returns an empty region; a blank one if the configuration does not name
// `incarnation`.
RegionImage FormattedRegion(const RegionIdentity& identity,
                            uint64_t incarnation,
                            const Configuration& configuration,
                            const Layout& layout);

// Returns the image as a program of another format version would write it.
RegionImage OfAnotherFormat(RegionImage image);

// Kind of damage to bytes.
enum class ByteDamage {
  kFlipBit,
  // A unit of 8, 64, 256 or 4096 bytes could not be read; clearing that leaves
  // zeros, ones or anything there.
  kPoison,
  kLostLine,       // as it was in an older image, or zeros
  kMisdirectLine,  // copied elsewhere, or two swapped
  kMisdirectRecord,
};
// Damages the image somewhere. `log` was read from it; `older` is an earlier
// image of the same region. Most damage hits a record, some the bytes before
// the ring.
void Damage(ByteDamage damage, const ImageLog& log, const Layout& layout,
            const RegionImage& older, RandomSource& random, RegionImage& image);

// Returns the records that the damaged image lacks. Nothing if the region can't
// be read any more, or its superline and epoch table would pass for other ones.
std::optional<Lacks> LacksOf(const ImageLog& log, const RegionImage& before,
                             const RegionImage& after);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_REGION_DAMAGE_H_
