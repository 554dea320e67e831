// SPDX-License-Identifier: Apache-2.0
#include "api/node/replica_file.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/bytes.h"
#include "log/base/mutex.h"
#include "log/base/status_macros.h"
#include "log/core/ring/format_region.h"
#include "log/core/ring/region_use.h"
#include "log/format/layout.h"

namespace alpheus {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

absl::Status CheckFormat(const ReplicaIdentity& identity,
                         const recovery::Format& format) {
  if (format.incarnation != 0) {
    const bool is_named =
        Names(format.configuration, {identity.node, format.incarnation});
    if (!is_named) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "log ", format.log_name, ": the configuration names node ",
        identity.node.value, " with incarnation ",
        absl::Hex(format.incarnation),
        " already: a replica that replaces another is blank. Nothing was "
        "formatted"));
  }
  const auto& members = format.configuration.members;
  const auto named =
      std::find_if(members.begin(), members.end(), [&](const Member& member) {
        return member.node == identity.node && member.incarnation != 0;
      });
  if (named != members.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "log ", format.log_name,
      ": the configuration of the new log has no "
      "incarnation for node ",
      identity.node.value, ". Format it with this cluster's own file"));
}

// Checks whether the adapter can register the bytes.
absl::Status TryToRegister(fabric::Fabric& fabric, std::span<std::byte> bytes) {
  ALPHEUS_ASSIGN_OR_RETURN(
      const fabric::RegionKey key,
      fabric.Register(bytes, fabric::RemoteAccess::kReadWrite));
  return fabric.Deregister(key);
}

// Gives the region a shadow if the adapter needs one. Returns the reason;
// empty: none. An adapter that can register neither reports that to those who
// ask for the replica.
absl::StatusOr<std::string> ShadowIfNeeded(fabric::Fabric* fabric,
                                           Region& region) {
  if (fabric == nullptr || region.medium() != RegionMedium::kPersistentMemory) {
    return std::string();
  }
  const absl::Status refused = TryToRegister(*fabric, region.medium_bytes());
  if (!absl::IsUnavailable(refused)) return std::string();
  const size_t bytes = region.medium_bytes().size();
  ALPHEUS_ASSIGN_OR_RETURN(Region memory,
                           Region::Anonymous(bytes, region.path()));
  if (!TryToRegister(*fabric, memory.bytes()).ok()) return std::string();
  region.UseShadow(std::move(memory));
  return absl::StrCat(region.path(), " can't be registered (",
                      refused.message(), "): peers' writes are received in ",
                      RoundUp(bytes, kMebibyte) / kMebibyte,
                      " MiB of memory, and copied to it before they are "
                      "acknowledged");
}

// Keeps a file's lock until the process ends.
void KeepForGood(std::unique_ptr<ReplicaFile> file) {
  static Mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<ReplicaFile>>();
  const MutexLock lock(mutex);
  kept->push_back(std::move(file));
}

}  // namespace

ReplicaFile::ReplicaFile(Region region, std::string shadow,
                         const ReplicaFileOptions& options)
    : region_(std::move(region)),
      shadow_(std::move(shadow)),
      options_(options),
      pmem_(NewPersistence(region_, options_)) {}

absl::StatusOr<std::unique_ptr<ReplicaFile>> ReplicaFile::On(
    Region region, const ReplicaFileOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(std::string shadow,
                           ShadowIfNeeded(options.fabric, region));
  return std::unique_ptr<ReplicaFile>(
      new ReplicaFile(std::move(region), std::move(shadow), options));
}

replication::ReplicaMedium ReplicaFile::medium() const {
  if (region_.medium() == RegionMedium::kFile)
    return replication::ReplicaMedium::kFile;
  return region_.is_shadowed() ? replication::ReplicaMedium::kShadow
                               : replication::ReplicaMedium::kPmem;
}

ReplicaFile::Persistences ReplicaFile::NewPersistence(
    const Region& region, const ReplicaFileOptions& file) {
  if (region.medium() == RegionMedium::kFile) {
    return std::make_unique<MsyncPersistence>(region.path(), file.sync,
                                              region.alarm());
  }
  LibpmemPersistence::Options options;
  options.auto_flush = LibpmemPersistence::DetectAutoFlush();
  options.emulated_latency_ns = file.emulated_latency_ns;
  options.alarm = region.alarm();
  if (region.is_shadowed()) {
    return std::make_unique<ShadowPersistence>(
        region.bytes(),
        std::make_unique<PmemShadowedMedium>(region.medium_bytes(), options));
  }
  return std::make_unique<LibpmemPersistence>(options);
}

bool ReplicaFile::medium_failed() const {
  return std::visit([](const auto& pmem) { return !pmem->Error().ok(); },
                    pmem_);
}

void ReplicaFile::ForgetFailure() { pmem_ = NewPersistence(region_, options_); }

absl::StatusOr<std::unique_ptr<ReplicaFile>> ReplicaFile::Open(
    const std::string& path, const ReplicaFileOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(Region region, Region::OpenForWriting(path));
  return On(std::move(region), options);
}

absl::StatusOr<std::unique_ptr<ReplicaFile>> ReplicaFile::Create(
    const std::string& path, const ReplicaIdentity& identity,
    const recovery::Format& format, const ReplicaFileOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(CheckFormat(identity, format));
  // Sizes are checked before anything is created.
  ALPHEUS_ASSIGN_OR_RETURN(const Layout layout,
                           Layout::ForRegion(format.region_bytes));
  FormatIdentity format_identity;
  format_identity.cluster_id = identity.cluster_id;
  format_identity.log_id = identity.log_id;
  format_identity.node = identity.node;
  format_identity.configuration = format.configuration;
  format_identity.incarnation = format.incarnation;
  const auto write = [&](Region& region) {
    const Persistences pmem = NewPersistence(region, options);
    return std::visit(
        [&](const auto& backend) {
          return FormatRegion(*backend, region.bytes(), layout,
                              format_identity);
        },
        pmem);
  };
  const RegionContent content = {write, UseOfRegion, kTableOffset};
  ALPHEUS_ASSIGN_OR_RETURN(
      Region region, format.replaces == 0
                         ? Region::Create(path, format.region_bytes, content)
                         : Region::Replace(path, format.region_bytes, content));
  return On(std::move(region), options);
}

absl::StatusOr<std::unique_ptr<ReplicaFile>> ReplicaFile::CreateRemoved(
    const std::string& path, const Superline& of,
    const ReplicaFileOptions& options) {
  const auto write = [&](Region& region) {
    const Persistences pmem = NewPersistence(region, options);
    return std::visit(
        [&](const auto& backend) {
          return FormatRemoved(*backend, region.bytes(), of);
        },
        pmem);
  };
  const RegionContent content = {write, UseOfRemoved, kTableOffset};
  ALPHEUS_ASSIGN_OR_RETURN(
      Region region,
      Region::Replace(path, LayoutOfRemoved().region_bytes, content));
  return On(std::move(region), options);
}

void ReplicaFile::GiveUpSuspect(Region region,
                                const ReplicaIdentity& identity) {
  const ReplicaFileOptions options;
  std::unique_ptr<ReplicaFile> file(
      new ReplicaFile(std::move(region), /*shadow=*/"", options));
  const bool is_marked = file->Serve(identity, /*suspect=*/true).ok();
  if (!is_marked) KeepForGood(std::move(file));
}

absl::StatusOr<std::unique_ptr<recovery::ServedLog>> ReplicaFile::Serve(
    const ReplicaIdentity& identity, bool suspect) {
  recovery::LocalReplicaOptions options;
  options.suspect = suspect;
  options.name = region_.path();
  options.expected_cluster_id = identity.cluster_id;
  options.expected_log_id = identity.log_id;
  options.expected_node = identity.node;
  return std::visit(
      [&]<class P>(const std::unique_ptr<P>& pmem)
          -> absl::StatusOr<std::unique_ptr<recovery::ServedLog>> {
        ALPHEUS_ASSIGN_OR_RETURN(
            std::unique_ptr<recovery::LocalReplica<P>> replica,
            recovery::LocalReplica<P>::Open(*pmem, region_.bytes(), options));
        return std::make_unique<recovery::ServedReplica<P>>(*pmem,
                                                            std::move(replica));
      },
      pmem_);
}

}  // namespace alpheus
