// SPDX-License-Identifier: Apache-2.0
// superline: identifies one replica of a log and holds the start of its
// records.
//
// Idea: Arcadia's superline (§4.1), a superblock, without the tail, which
// recovery finds by scanning. It lies in an atomic cell at the start of the
// region; the process that holds the region's lock is its only writer (P-S4).
//
// Invariants:
//   SUP1. promised_epoch >= log_epoch.
//   SUP2. log_epoch = e implies that this replica holds every record that was
//         durable before epoch e opened (P-H3).
//   SUP3. head_lsn goes back only where an epoch is installed with every record
//         from there on. Ring bytes from the head on are not reused before a
//         superline with a later head is persisted (P-L4).
//   SUP4. The epoch table with number `table_seq` holds; a table copy with
//         another number is an update that did not happen.
//   SUP5. head_offset <= ceiling <= head_offset + ring_capacity. No record that
//         the epoch table gives an owner was ever written at or after the
//         ceiling: it is raised, and persisted, before bytes beyond it are
//         written (P-A3.7).
//   SUP6. A mark of deletion is never taken back, and says what a later update
//         says of it or less (P-D2).
// Thread safety: values and pure functions.
// References: protocol P-A2; docs/formats/log.md#superline.
#ifndef ALPHEUS_LOG_FORMAT_SUPERLINE_H_
#define ALPHEUS_LOG_FORMAT_SUPERLINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/statusor.h"
#include "log/base/ids.h"

namespace alpheus {

// Version that is written. Earlier ones can be read too: lists of version 1
// lack the configuration that they were made from, and versions 1 and 2 have no
// ceiling; it is then a lap after the head. The first update of the superline
// makes it this version.
inline constexpr uint32_t kFormatVersion = 3;
// Version that is written of a replica that is marked as deleted, and of no
// other. Programs that know nothing of marks refuse it, and so they don't
// promise for it.
inline constexpr uint32_t kDeletionFormatVersion = 4;
inline constexpr uint64_t kSuperlineMagic = 0x315355454850'4c41u;  // "ALPHEUS1"
inline constexpr size_t kMembersMax = 16;

// One replica of the configuration.
struct Member {
  NodeId node;
  uint64_t incarnation = 0;  // random, drawn when the replica was formatted

  bool operator==(const Member&) const = default;
};

// Members that keep the log.
struct MemberList {
  uint64_t id = 1;              // grows with each change
  uint32_t replica_count = 1;   // N, 1 to kMembersMax
  uint32_t write_quorum = 1;    // W, 1 to N
  std::vector<Member> members;  // replica_count of them

  bool operator==(const MemberList&) const = default;
};

// Returns whether N and W are in their ranges.
bool HasPossibleSizes(const MemberList& list);

// Changed only through a new epoch (P-H18).
struct Configuration : MemberList {
  // List that it was made from, even if that list never took effect (OPQ7 of
  // opening_quorums.h). Empty: formatted so, or not known.
  std::optional<MemberList> made_from = std::nullopt;

  bool operator==(const Configuration&) const = default;
};

// Returns whether the list has this node with this incarnation.
bool Names(const MemberList& list, const Member& member);

// How far the deletion of the log has come at a replica. On media and on the
// wire; never renumber.
enum class Deletion : uint32_t {
  kNone = 0,
  kMarked = 1,   // it promises nothing any more; its records are kept
  kDecided = 2,  // the log is deleted for good; its records may go
};

struct Superline {
  Uuid cluster_id;
  Uuid log_id;
  NodeId node;               // this replica
  uint64_t incarnation = 0;  // of this replica
  uint64_t region_bytes = 0;
  uint64_t ring_offset = 0;     // bytes from region start
  uint64_t ring_capacity = 0;   // bytes, a multiple of a line
  uint64_t table_capacity = 0;  // entries
  Configuration configuration;
  Epoch promised_epoch;               // the fence: no older epoch may write
  NodeId promised_node;               // node that has the promise
  uint64_t promised_incarnation = 0;  // of the process that has it
  Epoch log_epoch;                    // last epoch installed here
  uint64_t table_seq = 0;             // number of the valid epoch table
  Lsn head_lsn{1};
  RingOffset head_offset;
  uint64_t head_chain = 0;  // chain value before the record at head
  bool repairing = false;   // in the middle of a destructive repair (P-H12)
  uint64_t unsafe_shutdown_count = 0;  // of the platform; 0: it has none
  RingOffset ceiling;  // nothing was written at or after it (SUP5)
  Deletion deletion = Deletion::kNone;

  bool operator==(const Superline&) const = default;
};

struct MemberFormat {
  uint64_t node;
  uint64_t incarnation;
};

// Content of the cell on media; version 1 ends before from_id, version 2 before
// ceiling.
struct SuperlineFormat {
  uint32_t format_version;  // 0..4
  // Bit 0 repairing; of version 4 alone, bits 1 and 2: Deletion, not 0.
  uint32_t flags;                          // 4..8
  uint64_t cluster_id[2];                  // 8..24    high, low
  uint64_t log_id[2];                      // 24..40   high, low
  uint64_t node;                           // 40..48
  uint64_t incarnation;                    // 48..56
  uint64_t region_bytes;                   // 56..64
  uint64_t ring_offset;                    // 64..72
  uint64_t ring_capacity;                  // 72..80
  uint64_t table_capacity;                 // 80..88
  uint64_t promised_epoch;                 // 88..96
  uint64_t promised_node;                  // 96..104
  uint64_t promised_incarnation;           // 104..112
  uint64_t log_epoch;                      // 112..120
  uint64_t table_seq;                      // 120..128
  uint64_t head_lsn;                       // 128..136
  uint64_t head_offset;                    // 136..144
  uint64_t head_chain;                     // 144..152
  uint64_t unsafe_shutdown_count;          // 152..160
  uint64_t configuration_id;               // 160..168
  uint32_t replica_count;                  // 168..172
  uint32_t write_quorum;                   // 172..176
  MemberFormat members[kMembersMax];       // 176..432   the first replica_count
  uint64_t from_id;                        // 432..440
  uint32_t from_replica_count;             // 440..444   0: not known, or none
  uint32_t from_write_quorum;              // 444..448
  MemberFormat from_members[kMembersMax];  // 448..704
  uint64_t ceiling;                        // 704..712
};
inline constexpr size_t kSuperlineBytesOfVersion1 = 432;
inline constexpr size_t kSuperlineBytesOfVersion2 = 704;
static_assert(std::is_trivially_copyable_v<SuperlineFormat>);
static_assert(sizeof(SuperlineFormat) == 712);
static_assert(offsetof(SuperlineFormat, format_version) == 0);
static_assert(offsetof(SuperlineFormat, flags) == 4);
static_assert(offsetof(SuperlineFormat, cluster_id) == 8);
static_assert(offsetof(SuperlineFormat, log_id) == 24);
static_assert(offsetof(SuperlineFormat, node) == 40);
static_assert(offsetof(SuperlineFormat, incarnation) == 48);
static_assert(offsetof(SuperlineFormat, region_bytes) == 56);
static_assert(offsetof(SuperlineFormat, ring_offset) == 64);
static_assert(offsetof(SuperlineFormat, ring_capacity) == 72);
static_assert(offsetof(SuperlineFormat, table_capacity) == 80);
static_assert(offsetof(SuperlineFormat, promised_epoch) == 88);
static_assert(offsetof(SuperlineFormat, promised_node) == 96);
static_assert(offsetof(SuperlineFormat, promised_incarnation) == 104);
static_assert(offsetof(SuperlineFormat, log_epoch) == 112);
static_assert(offsetof(SuperlineFormat, table_seq) == 120);
static_assert(offsetof(SuperlineFormat, head_lsn) == 128);
static_assert(offsetof(SuperlineFormat, head_offset) == 136);
static_assert(offsetof(SuperlineFormat, head_chain) == 144);
static_assert(offsetof(SuperlineFormat, unsafe_shutdown_count) == 152);
static_assert(offsetof(SuperlineFormat, configuration_id) == 160);
static_assert(offsetof(SuperlineFormat, replica_count) == 168);
static_assert(offsetof(SuperlineFormat, write_quorum) == 172);
static_assert(offsetof(SuperlineFormat, members) == 176);
static_assert(offsetof(SuperlineFormat, from_id) == kSuperlineBytesOfVersion1);
static_assert(offsetof(SuperlineFormat, from_replica_count) == 440);
static_assert(offsetof(SuperlineFormat, from_write_quorum) == 444);
static_assert(offsetof(SuperlineFormat, from_members) == 448);
static_assert(offsetof(SuperlineFormat, ceiling) == kSuperlineBytesOfVersion2);

std::vector<std::byte> EncodeSuperline(const Superline& superline);

// Returns the version of a content of any version; 0 if it is too short to have
// one.
uint32_t FormatVersionOf(std::span<const std::byte> content);

// Errors: Unimplemented (another format version, named in the message);
// DataLoss (a size or a value that no superline of that version has).
absl::StatusOr<Superline> DecodeSuperline(std::span<const std::byte> content);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_FORMAT_SUPERLINE_H_
