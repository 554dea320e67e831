// SPDX-License-Identifier: Apache-2.0
#include "bench/remotelog/costs.h"

namespace alpheus::bench::remotelog {
namespace {

// Figures of others are rounded. "From memory": the publication is about this
// and the figure could not be looked up again; look it up before more than this
// comparison is built on it.

// Zambre et al., "Breaking Band: A Breakdown of High-performance
// Communication", ICPP 2019: ConnectX-4 and one switch, 100 Gb/s, but on
// ThunderX2 in place of the taxonomy's Xeon.
constexpr const char* kBreakingBand =
    "Zambre et al., Breaking Band, ICPP 2019 (ConnectX-4, EDR; ThunderX2), "
    "from memory";
// Neugebauer et al., "Understanding PCIe performance for end host networking",
// SIGCOMM 2018.
constexpr const char* kPcieBench =
    "Neugebauer et al., Understanding PCIe, SIGCOMM 2018 (Xeon E5): about 70 "
    "ns less where the line is in the cache, from memory";

constexpr Constant kConstants[] = {
    {"post", &Costs::post, "ns", Origin::kPublished,
     "processor: a work request made and posted, without the next line",
     kBreakingBand},
    {"post_block", &Costs::post_block, "ns", Origin::kPublished,
     "processor: each 64 bytes of it, stored into the adapter", kBreakingBand},
    {"pcie", &Costs::pcie, "ns", Origin::kPublished,
     "one way between adapter and root complex", kBreakingBand},
    {"adapter_gap", &Costs::adapter_gap, "ns", Origin::kAssumed,
     "adapter: between two packets of one connection", "guess"},
    {"wire", &Costs::wire, "ns", Origin::kPublished,
     "one way between adapters without a switch, their own work with it",
     kBreakingBand},
    {"network_switch", &Costs::network_switch, "ns", Origin::kPublished,
     "from port to port",
     "datasheet of the taxonomy's switch (SB7700), from memory"},
    {"gigabits", &Costs::gigabits, "Gb/s", Origin::kPaper, "the link",
     "taxonomy 4.2"},
    {"header_bytes", &Costs::header_bytes, "B", Origin::kPublished,
     "of a packet, beside what it carries",
     "InfiniBand's LRH 8, BTH 12, RETH 16, ICRC 4, VCRC 2"},
    {"inline_bytes", &Costs::inline_bytes, "B", Origin::kPublished,
     "up to here bytes are in the work request, and not fetched",
     "perftest, perftest_parameters.h: DEF_INLINE_WRITE"},
    {"root_complex", &Costs::root_complex, "ns", Origin::kPublished,
     "a write from root complex to cache; a read's both ways", kBreakingBand},
    {"without_ddio", &Costs::without_ddio, "ns", Origin::kPublished,
     "more than that, to memory in place of the cache", kPcieBench},
    {"poll", &Costs::poll, "ns", Origin::kPublished,
     "processor: a completion found and taken", kBreakingBand},
    {"handle", &Costs::handle, "ns", Origin::kAssumed,
     "responder's processor: what to do with a message", "guess"},
    {"load_cache", &Costs::load_cache, "ns", Origin::kAssumed,
     "a line from the last-level cache", "guess, usual for a Xeon E5"},
    {"load_memory", &Costs::load_memory, "ns", Origin::kAssumed,
     "a line from memory, also to own it", "guess, usual for a Xeon E5"},
    {"flush_line", &Costs::flush_line, "ns", Origin::kAssumed,
     "the instruction that writes a line back, without its fence", "guess"},
    {"fence", &Costs::fence, "ns", Origin::kOwn,
     "until a line that was written back is at the memory controller",
     "docs/design/architecture.md#the-cost-of-a-record: 97 ns of an append of "
     "64 B, DRAM"},
    {"post_receive", &Costs::post_receive, "ns", Origin::kAssumed,
     "processor: a receive buffer posted again, behind the ack", "guess"},
    {"apply", &Costs::apply, "ns", Origin::kAssumed,
     "responder's processor, behind the ack: a record found, summed, applied",
     "guess: a line from memory, 13 ns of checksum (own), the rest"},
    {"trim", &Costs::trim, "ns", Origin::kAssumed,
     "the same: applied records given back, with one fence", "guess"},
    {"trim_records", &Costs::trim_records, "", Origin::kAssumed,
     "records that are given back at once", "guess"},
};
static_assert(sizeof(Costs) == std::size(kConstants) * sizeof(double),
              "each has its source");

}  // namespace

const char* OriginName(Origin origin) {
  switch (origin) {
    case Origin::kPaper:
      return "paper";
    case Origin::kPublished:
      return "published";
    case Origin::kOwn:
      return "own";
    case Origin::kAssumed:
      return "assumed";
  }
  return "?";
}

std::span<const Constant> Constants() { return kConstants; }

}  // namespace alpheus::bench::remotelog
