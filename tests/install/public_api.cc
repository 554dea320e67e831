// SPDX-License-Identifier: Apache-2.0
// Names every function that the public C++ headers declare and do not define:
// it links only if the installed library exports them all.
#include <alpheus/atomicity.h>
#include <alpheus/candidate.h>
#include <alpheus/cluster_reader.h>
#include <alpheus/cluster_tail.h>
#include <alpheus/integrity.h>
#include <alpheus/log.h>
#include <alpheus/log_reader.h>
#include <alpheus/persistent_region.h>
#include <alpheus/remote_memory.h>

#include <cstdio>

namespace {

using alpheus::Candidate;
using alpheus::ClusterReader;
using alpheus::ClusterTail;
using alpheus::Log;
using alpheus::LogReader;
using alpheus::MemoryOffers;
using alpheus::PersistentRegion;
using alpheus::RemoteMemory;

// Volatile: the compiler can't know what is behind, so it must ask the library.
template <class... Functions>
bool Exist(Functions... functions) {
  const auto exists = [](auto function) {
    const volatile auto* place = &function;
    return *place != nullptr;
  };
  return (exists(functions) && ...);
}

using Bytes = std::span<const std::byte>;
using Options = alpheus::ForceOptions;
using Appended = absl::StatusOr<alpheus::Lsn>;

bool LogExists() {
  Appended (Log::*append)(Bytes, Options) = &Log::Append;
  Appended (Log::*append_text)(std::string_view, Options) = &Log::Append;
  Appended (Log::*append_parts)(std::span<const Bytes>, Options) = &Log::Append;
  return Exist(&Log::Format, &Log::Open, &Log::Close, &Log::Reserve, &Log::Copy,
               &Log::Complete, &Log::Force, append, append_text, append_parts,
               &Log::WaitDurable, &Log::durable_lsn, &Log::next_lsn,
               &Log::head_lsn, &Log::Exposed, &Log::payload_bytes_max,
               &Log::Cleanup, &Log::CleanupThrough, &Log::CleanupAll,
               &Log::Tail, &alpheus::LogTail::Next, &Log::ForEachRecovered,
               &Log::Recovered, &Log::report) &&
         Exist(&alpheus::Deadline::In, &alpheus::Reservation::Abort,
               &alpheus::Reservation::Detach,
               &alpheus::RecoveryReport::ToString);
}

bool CandidateExists() {
  return Exist(&Candidate::Stand, &Candidate::WaitForLog,
               &Candidate::must_give_back, &Candidate::WaitToGiveBack,
               &Candidate::GiveBack, &Candidate::Withdraw, &Candidate::Elect,
               &Candidate::Drain, &alpheus::PrimaryReport::ToString);
}

bool ReaderExists() {
  return Exist(&ClusterReader::Open, &ClusterReader::replicas,
               &ClusterReader::write_quorum, &ClusterReader::durable_lsn,
               &ClusterReader::ForEachDurable, &ClusterReader::reader,
               &ClusterTail::Open, &ClusterTail::Next, &ClusterTail::AskAgain,
               &ClusterTail::is_settled, &ClusterTail::durable_lsn,
               &ClusterTail::next_lsn, &ClusterTail::is_caught_up,
               &ClusterTail::node, &LogReader::Open, &LogReader::OpenForSalvage,
               &LogReader::info, &LogReader::ForEach,
               &LogReader::ForEachSalvageable, &LogReader::Verify,
               &alpheus::RecordStateName);
}

bool RegionExists() {
  std::span<std::byte> (PersistentRegion::*bytes)() = &PersistentRegion::bytes;
  Bytes (PersistentRegion::*const_bytes)() const = &PersistentRegion::bytes;
  return Exist(&PersistentRegion::Create, &PersistentRegion::Open,
               &PersistentRegion::Anonymous, bytes, const_bytes,
               &PersistentRegion::Persist, &alpheus::ReliableBytes,
               &alpheus::ReliableWrite, &alpheus::ReliableRead,
               &alpheus::AtomicBytes, &alpheus::AtomicWrite,
               &alpheus::AtomicRead);
}

bool RemoteMemoryExists() {
  return Exist(&RemoteMemory::Open, &RemoteMemory::region_bytes,
               &RemoteMemory::Read, &RemoteMemory::CompareAndSwap,
               &RemoteMemory::Update, &RemoteMemory::Persist,
               &RemoteMemory::Poll, &RemoteMemory::Wait, &RemoteMemory::counts,
               &MemoryOffers::Serve, &MemoryOffers::address,
               &MemoryOffers::OfferToRead, &MemoryOffers::OfferToUpdate,
               &MemoryOffers::Protect, &MemoryOffers::Withdraw,
               &MemoryOffers::ReloadTokens);
}

// Constructors, destructors and assignment have no address.
bool ObjectsLive() {
  auto region = PersistentRegion::Anonymous(4096);
  if (!region.ok()) return false;
  PersistentRegion moved = *std::move(region);
  *region = std::move(moved);
  auto log = Log::Open({.anonymous_bytes = 1 << 20});
  if (!log.ok() || !(*log)->Recovered().status().ok()) return false;
  // Without a cluster's id nobody is served, or served to.
  if (RemoteMemory::Open({}).ok() || MemoryOffers::Serve({}).ok()) return false;
  // Without a cluster file nobody stands.
  if (Candidate::Stand({}).ok()) return false;
  return !LogReader::Open("/nowhere").ok();
}

}  // namespace

int main() {
  const bool good = LogExists() && CandidateExists() && ReaderExists() &&
                    RegionExists() && RemoteMemoryExists() && ObjectsLive();
  std::puts(good ? "all public functions exist" : "something is missing");
  return good ? 0 : 1;
}
