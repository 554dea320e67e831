// SPDX-License-Identifier: Apache-2.0
// token_file: which tokens may do what with which logs, from a TOML file that
// an operator wrote.
//
// Idea: the file has a digest of each token, and no token. A token is 32 random
// bytes, so nobody finds it from its digest; a slow digest, as for passwords,
// is not needed. The file is a secret all the same: a writer of it lets
// himself in.
//
//   [[token]]
//   name = "billing"
//   sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//   roles = ["append"]               # append, read, admin
//   logs = ["main"]                  # or ["*"]
//   expires = 2027-01-31T00:00:00Z   # else never
//   requests_per_second = 1000       # of requests to append; else any number
//   bytes_per_second = 10000000      # of their payloads; else any number
//
// Thread safety: pure functions, but for the files; these may block.
// References: docs/use/operating.md#tokens.
#ifndef ALPHEUS_API_GRPC_ACCESS_TOKEN_FILE_H_
#define ALPHEUS_API_GRPC_ACCESS_TOKEN_FILE_H_

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "api/grpc/access/rate_meter.h"
#include "log/base/random.h"
#include "quorum/members/cluster_key.h"

namespace alpheus::rpc {

enum class Role : uint8_t { kAppend = 1, kRead = 2, kAdmin = 4 };

// A set of roles, none at first.
class Roles {
 public:
  constexpr Roles() = default;
  constexpr Roles(Role role)  // NOLINT(google-explicit-constructor)
      : bits_(static_cast<uint8_t>(role)) {}

  friend constexpr Roles operator|(Roles a, Roles b) {
    a.bits_ |= b.bits_;
    return a;
  }
  constexpr bool Meets(Roles other) const { return (bits_ & other.bits_) != 0; }
  constexpr bool operator==(const Roles&) const = default;

  // Names, with "or" between them.
  std::string ToString() const;

 private:
  uint8_t bits_ = 0;
};

inline constexpr Roles kAnyRole =
    Roles(Role::kAppend) | Role::kRead | Role::kAdmin;

// Returns the role of that name. Errors: InvalidArgument.
absl::StatusOr<Role> ParseRole(std::string_view name);

// One token, as the file has it.
struct TokenEntry {
  std::string name;  // for people
  quorum::Digest sha256 = {};
  Roles roles;
  bool is_for_all_logs = false;
  std::set<std::string> logs;                               // otherwise
  int64_t expires_s = std::numeric_limits<int64_t>::max();  // since 1970
  Rates rates;  // of requests to append, at one node
};

// Parses a file of tokens; errors call it `name`. No token at all is a list,
// too: nobody is let in. Errors: InvalidArgument (not TOML; a key that is
// unknown, missing or of another type; a refused value; two tokens with one
// name, or with one digest).
absl::StatusOr<std::vector<TokenEntry>> ParseTokenFile(std::string_view text,
                                                       std::string_view name);
// Reads one. Errors: as ParseTokenFile and ReadConfigFile
// (log/pmem/config_file.h).
absl::StatusOr<std::vector<TokenEntry>> LoadTokenFile(const std::string& path);

// A token that nobody has had before, and its entry in the file.
struct NewToken {
  std::string token;
  std::string entry;
};
// `expires`: a date as TOML writes it; empty: never. `random` must be
// unpredictable (EntropyRandom). Errors: as ParseTokenFile of such an entry.
absl::StatusOr<NewToken> MakeToken(const std::string& name,
                                   const std::vector<std::string>& roles,
                                   const std::vector<std::string>& logs,
                                   const std::string& expires,
                                   RandomSource& random,
                                   const Rates& rates = {});
// Adds an entry to a file, or begins one, readable by the owner alone. A reader
// sees the file before or after. Errors: as LoadTokenFile, and those of the
// file with the entry; the system's for a file that can't be written. Nothing
// was changed then.
absl::Status AddToTokenFile(const std::string& path, const std::string& entry);

}  // namespace alpheus::rpc

#endif  // ALPHEUS_API_GRPC_ACCESS_TOKEN_FILE_H_
