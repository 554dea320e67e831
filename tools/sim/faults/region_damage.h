// SPDX-License-Identifier: Apache-2.0
// region_damage: what storage does to the bytes of a region that nobody has
// open.
//
// Thread safety: pure functions of images and a random source.
// References: protocol P-A8; design of the tests, section 1.
#ifndef ALPHEUS_TOOLS_SIM_FAULTS_REGION_DAMAGE_H_
#define ALPHEUS_TOOLS_SIM_FAULTS_REGION_DAMAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "log/base/ids.h"
#include "log/base/random.h"
#include "log/core/read/record_cursor.h"
#include "log/format/layout.h"
#include "quorum/members/configuration.h"

namespace alpheus::sim {

using RegionImage = std::vector<std::byte>;

// A record that a node would find there.
struct ImageRecord {
  Lsn lsn;
  Epoch epoch;
  size_t at = 0;     // bytes from region start
  size_t bytes = 0;  // in the ring, header included
  size_t said = 0;   // of these, header and payload

  bool operator==(const ImageRecord&) const = default;
};

// What a node would read of the region. Nothing if it could not.
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

// Who a region says that it belongs to.
struct RegionIdentity {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;
};
// An empty region. A configuration that does not name `incarnation` makes it a
// blank one.
RegionImage FormattedRegion(const RegionIdentity& identity,
                            uint64_t incarnation,
                            const Configuration& configuration,
                            const Layout& layout);

// As written by a program of another format version.
RegionImage OfAnotherFormat(RegionImage image);

// What happens to bytes.
enum class ByteDamage {
  kFlipBit,
  // A unit of 8, 64, 256 or 4096 bytes could not be read, and what clears that
  // leaves zeros, ones or anything there.
  kPoison,
  kLostLine,       // as it was in an older image, or zeros
  kMisdirectLine,  // lies elsewhere, too, or two changed places
  kMisdirectRecord,
};
// Damages the image somewhere. `log` is what was read of it, `older` an image
// of the same region. Most strike a record, some the bytes before the ring.
void Damage(ByteDamage damage, const ImageLog& log, const Layout& layout,
            const RegionImage& older, RandomSource& random, RegionImage& image);

// What the damaged image lacks of the log: by LSN, whether what is left of it
// proves that it was there. Nothing if the region can't be read any more, or
// its superline and epoch table would be taken for others than they were.
using Lacks = std::map<uint64_t, bool>;
std::optional<Lacks> LacksOf(const ImageLog& log, const RegionImage& before,
                             const RegionImage& after);

}  // namespace alpheus::sim

#endif  // ALPHEUS_TOOLS_SIM_FAULTS_REGION_DAMAGE_H_
