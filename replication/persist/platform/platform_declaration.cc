// SPDX-License-Identifier: Apache-2.0
#include "replication/persist/platform/platform_declaration.h"

#include "absl/strings/str_cat.h"

namespace alpheus::replication {
namespace {

const char* TransportName(Transport transport) {
  switch (transport) {
    case Transport::kTcp:
      return "tcp";
    case Transport::kIwarp:
      return "iwarp";
    case Transport::kInfiniBand:
      return "infiniband";
  }
  return "?";
}

}  // namespace

std::vector<std::string> PlatformWarnings(const Platform& platform,
                                          const Shown& shown) {
  std::vector<std::string> warnings;
  const auto warn = [&warnings](const auto&... text) {
    warnings.push_back(absl::StrCat("platform: ", text...));
  };
  if (platform.domain != PersistenceDomain::kMemory && !shown.caches_persist) {
    warn(
        "caches are declared to be persistent (mhp, wsp), and this machine "
        "shows no sign of it (eADR); if they are not, records that were "
        "acknowledged can be lost. Declare dmp unless you know better");
  }
  if (platform.domain == PersistenceDomain::kSystem) {
    warn(
        "adapters are declared to keep what they have received (wsp), which "
        "no program can see; if they do not, records that were acknowledged "
        "can be lost. Declare mhp or dmp unless you know better");
  }
  if (!platform.ddio && shown.transport == Transport::kTcp) {
    warn(
        "adapters are declared to write past the caches (no-ddio), and this "
        "one is a program, which writes through them; it is planned for as "
        "with ddio. Declare ddio");
  }
  if (platform.transport > shown.transport) {
    warn("the transport is declared to be ", TransportName(platform.transport),
         ", and this node's adapter is ", TransportName(shown.transport),
         ", whose completions say less; if plans rest on them, records that "
         "were acknowledged can be lost. Declare ",
         TransportName(shown.transport));
  }
  if (platform.native_flush && !shown.native_flush) {
    warn(
        "the adapter is declared to have FLUSH (native-flush), and it has "
        "none: a read stands for it. Leave native-flush out");
  }
  if (platform.atomic_write && !shown.atomic_write) {
    warn(
        "the adapter is declared to have an atomic WRITE (atomic-write), and "
        "it has none: plans that need it do not run. Leave atomic-write out");
  }
  if (platform.receive_buffers == ReceiveBuffers::kPmem &&
      !shown.receives_into_pmem) {
    warn(
        "receive buffers are declared to be in persistent memory (pm), and "
        "this node has them in DRAM; what is only received is lost with the "
        "power. Declare dram");
  }
  return warnings;
}

std::string ReplicaWarning(const Platform& platform, ReplicaMedium medium) {
  if (medium == ReplicaMedium::kShadow) {
    const Platform served = WithoutPersistentMemory(platform);
    if (platform == served) return "";
    return absl::StrCat(
        "platform: ", PlatformToString(platform),
        " is declared, and peers' writes to this replica go to a copy in "
        "memory, which loses them with the power until they are copied: it is "
        "served as on ",
        PlatformToString(served),
        ". Keep it where the adapter can register it, on a device-DAX say, or "
        "declare that");
  }
  if (medium == ReplicaMedium::kPmem ||
      platform.domain == PersistenceDomain::kMemory) {
    return "";
  }
  return "platform: caches are declared to be persistent (mhp, wsp), and this "
         "replica is a plain file, whose pages are not: it is served as on "
         "dmp, by msync. Keep it on persistent memory, or declare dmp";
}

}  // namespace alpheus::replication
