// SPDX-License-Identifier: Apache-2.0
// node_tls: the certificate of this process, with which it encrypts what it
// sends to other processes of its cluster, and which is replaced while it runs.
//
// Idea: nobody tells a program that its files were replaced, so it looks by
// itself: when a connection begins, and once a second while its adapter turns.
// A look is a stat of each file. Only if one has changed are all read.
//
// Invariants:
//   NTL1. Settings are of one reading of all files, which fitted each other and
//         were good at that time. Else those of before stay in use: of files
//         that are half written, or not all replaced yet, nothing is taken.
//   NTL2. The operator is told of new files, and why files are of no use; the
//         same sentence once. Such files are read again at each look.
//   NTL3. Files are looked at once in kLookNanos, however many peers connect.
//   NTL4. A process whose own certificate is revoked does not start. One that
//         runs takes the list all the same: it may name others, too.
// Thread safety: all members by many threads; they may read files.
// References: docs/use/operating.md#encryption-between-nodes.
#ifndef ALPHEUS_API_WIRING_NODE_TLS_H_
#define ALPHEUS_API_WIRING_NODE_TLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/clock.h"
#include "log/base/ids.h"
#include "log/base/mutex.h"
#include "log/base/wall_clock.h"
#include "log/pmem/config_file.h"
#include "quorum/members/configuration.h"
#include "replication/fabric/tcp/tls.h"

namespace alpheus {

class NodeTls {
 public:
  // Gets one sentence for the operator; may be null. It is called with a lock
  // held, and must not call this object or an adapter.
  using Say = std::function<void(const std::string&)>;

  static constexpr int64_t kLookNanos = 500'000'000;
  // Before an own certificate expires the operator is told so often.
  static constexpr int64_t kWarnBeforeSeconds = int64_t{14} * 24 * 3'600;
  static constexpr int64_t kWarnAgainSeconds = int64_t{24} * 3'600;

  // Loads the files. `node`: of this process; 0: an operator. The clocks must
  // outlive the object. Errors: as ReadConfigFile (log/pmem/config_file.h; the
  // key is a secret) and TlsSettings::Make; PermissionDenied (the certificate
  // is of another process or cluster); FailedPrecondition (a certificate or a
  // list has expired, or is not good yet; NTL4).
  static absl::StatusOr<std::shared_ptr<NodeTls>> Load(
      const quorum::NodeEncryption& files, Uuid cluster_id, NodeId node,
      Say say = nullptr, const Clock& clock = Clock::Real(),
      const WallClock& wall_clock = WallClock::Real());

  // Returns with what connections that begin now are encrypted. Looks at the
  // files, if it is time (NTL3).
  std::shared_ptr<const fabric::tcp::TlsSettings> Current();

  // Reads the files at once, whether they have changed or not. Says what came
  // of it.
  void Reload();

  // Returns when the own certificate expires, in seconds since 1970.
  int64_t end_s() const;

 private:
  NodeTls(const quorum::NodeEncryption& files, Uuid cluster_id, NodeId node,
          Say say, const Clock& clock, const WallClock& wall_clock);

  absl::StatusOr<std::shared_ptr<const fabric::tcp::TlsSettings>> Read() const;
  absl::Status CheckDates(const fabric::tcp::TlsSettings& settings) const;
  std::vector<ConfigFileStamp> Stamps() const;
  void Look(bool reads_anyway) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Says what will stop working soon, or has.
  void Warn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell(const std::string& sentence) const;

  const quorum::NodeEncryption files_;
  const Uuid cluster_id_;
  const NodeId node_;
  const Say say_;
  const Clock& clock_;
  const WallClock& wall_clock_;

  mutable Mutex mutex_;
  std::shared_ptr<const fabric::tcp::TlsSettings> settings_
      ABSL_GUARDED_BY(mutex_);
  std::vector<ConfigFileStamp> stamps_ ABSL_GUARDED_BY(mutex_);  // of these
  int64_t look_at_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t warn_at_s_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string said_ ABSL_GUARDED_BY(mutex_);  // why files are of no use
};

}  // namespace alpheus

#endif  // ALPHEUS_API_WIRING_NODE_TLS_H_
