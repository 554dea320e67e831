// SPDX-License-Identifier: Apache-2.0
// cluster_key: the secret that all nodes and primaries of a cluster have, and
// the only door to libcrypto.
//
// Idea: 32 random bytes in a file that only its owner reads. The key is never
// sent: its holders sign what was said on a connection
// (recovery/protocol/handshake.h). Keys and digests are compared in constant
// time, and a key is wiped from memory when it is destroyed.
//
// Thread safety: values and pure functions; files are read and written by
// LoadClusterKey and MakeClusterKeyFile, which may block.
// References: RFC 2104 (HMAC), FIPS 180-4 (SHA-256);
// docs/use/operating.md#security.
#ifndef ALPHEUS_QUORUM_MEMBERS_CLUSTER_KEY_H_
#define ALPHEUS_QUORUM_MEMBERS_CLUSTER_KEY_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "log/base/random.h"

namespace alpheus::quorum {

inline constexpr size_t kClusterKeyBytes = 32;
inline constexpr size_t kDigestBytes = 32;

using Digest = std::array<std::byte, kDigestBytes>;

// Returns true if both are equal, in a time that depends on neither.
bool AreSame(const Digest& a, const Digest& b);

class ClusterKey {
 public:
  // No key: nothing is signed, and no proof is asked for.
  ClusterKey() = default;
  explicit ClusterKey(const std::array<std::byte, kClusterKeyBytes>& bytes)
      : is_set_(true), bytes_(bytes) {}
  ClusterKey(const ClusterKey&) = default;
  ClusterKey& operator=(const ClusterKey&) = default;
  ~ClusterKey();

  bool is_set() const { return is_set_; }
  // Returns the HMAC-SHA256 of `text`. Requires: is_set().
  Digest Sign(std::span<const std::byte> text) const;

  bool operator==(const ClusterKey& other) const;

 private:
  bool is_set_ = false;
  std::array<std::byte, kClusterKeyBytes> bytes_{};
};

// Parses 64 hexadecimal digits, white space around them aside, as `openssl rand
// -hex 32` prints them. Errors call the file `name`, and never show the text.
// Errors: InvalidArgument (anything else; 0, which no random source draws).
absl::StatusOr<ClusterKey> ParseClusterKey(std::string_view text,
                                           std::string_view name);

// Reads a key file. Errors: as ParseClusterKey and, for a secret,
// ReadConfigFile (log/pmem/config_file.h).
absl::StatusOr<ClusterKey> LoadClusterKey(const std::string& path);

// Draws a key and writes it into a new file, readable by the owner alone and
// persisted on return. `random` must be unpredictable (EntropyRandom). Errors:
// AlreadyExists; the system's for a file that can't be made or written, of
// which nothing is left.
absl::Status MakeClusterKeyFile(const std::string& path, RandomSource& random);

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERS_CLUSTER_KEY_H_
