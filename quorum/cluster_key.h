// SPDX-License-Identifier: Apache-2.0
// cluster_key: the secret that all nodes and primaries of a cluster have, and
// the only door to libcrypto.
//
// Idea: 32 random bytes in a file that only its owner reads. Nobody sends them:
// who has them signs what was said on a connection (recovery/handshake.h). Keys
// and digests are compared in a time that tells nothing of them, and a key is
// wiped from memory when it goes.
//
// Thread safety: values and pure functions; files are read and written by
// LoadClusterKey and MakeClusterKeyFile, which may block.
// References: RFC 2104 (HMAC), FIPS 180-4 (SHA-256);
// docs/use/operating.md#security.
#ifndef ALPHEUS_QUORUM_CLUSTER_KEY_H_
#define ALPHEUS_QUORUM_CLUSTER_KEY_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/random.h"

namespace alpheus {

inline constexpr size_t kClusterKeyBytes = 32;
inline constexpr size_t kDigestBytes = 32;

using Digest = std::array<std::byte, kDigestBytes>;

// Whether both are the same, in a time that depends on neither.
bool AreSame(const Digest& a, const Digest& b);

class ClusterKey {
 public:
  // None: nothing is signed, nothing is asked for.
  ClusterKey() = default;
  explicit ClusterKey(const std::array<std::byte, kClusterKeyBytes>& bytes)
      : is_set_(true), bytes_(bytes) {}
  ClusterKey(const ClusterKey&) = default;
  ClusterKey& operator=(const ClusterKey&) = default;
  ~ClusterKey();

  bool is_set() const { return is_set_; }
  // HMAC-SHA256. Requires: it is set.
  Digest Sign(std::span<const std::byte> text) const;

  bool operator==(const ClusterKey& other) const;

 private:
  bool is_set_ = false;
  std::array<std::byte, kClusterKeyBytes> bytes_{};
};

// 64 hexadecimal digits, white space around them aside: as `openssl rand -hex
// 32` prints them. `name` stands in errors for the file; the text never does.
// Errors: InvalidArgument (something else; 0, which nobody draws).
absl::StatusOr<ClusterKey> ParseClusterKey(std::string_view text,
                                           std::string_view name);

// Errors: as ParseClusterKey; FailedPrecondition (others than the owner may
// read or write the file, or it is no file); what the system says of a file
// that can't be opened or read.
absl::StatusOr<ClusterKey> LoadClusterKey(const std::string& path);

// Draws a key and writes it into a new file, for the owner alone, persisted
// when it returns. `random` must be one that nobody foresees (EntropyRandom).
// Errors: AlreadyExists; what the system says of a file that can't be made or
// written, of which nothing is left.
absl::Status MakeClusterKeyFile(const std::string& path, RandomSource& random);

}  // namespace alpheus

#endif  // ALPHEUS_QUORUM_CLUSTER_KEY_H_
