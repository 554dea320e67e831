// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/cluster_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/check.h"
#include "log/base/status_macros.h"
#include "log/pmem/config_file.h"
#include "log/pmem/new_file.h"

namespace alpheus::quorum {
namespace {

// Largest file: a key and white space. A file of another kind is larger.
constexpr size_t kKeyFileBytesMax = 4096;

std::optional<uint8_t> DigitOf(char c) {
  if (c >= '0' && c <= '9') return static_cast<uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

absl::Status NoKey(std::string_view name) {
  return absl::InvalidArgumentError(absl::StrCat(
      absl::string_view(name.data(), name.size()),
      ": not a cluster key. A cluster key is ", 2 * kClusterKeyBytes,
      " hexadecimal digits of a random number; `alpheus key new FILE` makes "
      "one"));
}

constexpr ConfigFileKind kKeyFile = {
    .name = "key file",
    .bytes_max = kKeyFileBytesMax,
    .readers = ReadableBy::kOwner,
    .if_missing =
        "It must be the same one as on all other nodes; `alpheus key new FILE` "
        "makes the first",
    .if_exposed = "make a new key for all nodes"};

// Rights for others would be refused, too.
absl::Status NotReadable(const absl::Status& refused, const std::string& path) {
  return absl::Status(
      refused.code(),
      absl::StrCat(
          refused.message(), ". Only the owner may read it: `chown ", geteuid(),
          " ", path,
          "`. Do not make a new key: the other nodes would not accept it"));
}

std::string DrawKeyText(RandomSource& random) {
  std::string text;
  for (size_t i = 0; i < kClusterKeyBytes / sizeof(uint64_t); ++i) {
    absl::StrAppend(&text, absl::Hex(random.Next(), absl::kZeroPad16));
  }
  return text + "\n";
}

}  // namespace

bool AreSame(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

ClusterKey::~ClusterKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

Digest ClusterKey::Sign(std::span<const std::byte> text) const {
  ALPHEUS_CHECK(is_set(), "a signer has a key");
  Digest digest{};
  unsigned int bytes = 0;
  const unsigned char* const signed_text =
      HMAC(EVP_sha256(), bytes_.data(), static_cast<int>(bytes_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &bytes);
  // A failed digest would be the same for everybody.
  ALPHEUS_CHECK(signed_text != nullptr && bytes == digest.size(),
                "libcrypto has HMAC and SHA-256");
  return digest;
}

bool ClusterKey::operator==(const ClusterKey& other) const {
  return is_set_ == other.is_set_ &&
         CRYPTO_memcmp(bytes_.data(), other.bytes_.data(), bytes_.size()) == 0;
}

absl::StatusOr<ClusterKey> ParseClusterKey(std::string_view text,
                                           std::string_view name) {
  const absl::string_view digits =
      absl::StripAsciiWhitespace({text.data(), text.size()});
  if (digits.size() != 2 * kClusterKeyBytes) return NoKey(name);
  std::array<std::byte, kClusterKeyBytes> bytes{};
  std::byte any{0};
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::optional<uint8_t> high = DigitOf(digits[2 * i]);
    const std::optional<uint8_t> low = DigitOf(digits[2 * i + 1]);
    if (!high || !low) return NoKey(name);
    bytes[i] = static_cast<std::byte>(*high << 4 | *low);
    any |= bytes[i];
  }
  if (any == std::byte{0}) return NoKey(name);
  ClusterKey key(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

absl::StatusOr<ClusterKey> LoadClusterKey(const std::string& path) {
  absl::StatusOr<std::string> text = ReadConfigFile(path, kKeyFile);
  if (absl::IsPermissionDenied(text.status())) {
    return NotReadable(text.status(), path);
  }
  if (!text.ok()) return text.status();
  absl::StatusOr<ClusterKey> key = ParseClusterKey(*text, path);
  OPENSSL_cleanse(text->data(), text->size());
  return key;
}

absl::Status MakeClusterKeyFile(const std::string& path, RandomSource& random) {
  // A file that was cut off is no key, and may be replaced.
  const auto use_of = [](std::span<std::byte> /*bytes*/, bool /*is_device*/) {
    return RegionUse::kNothing;
  };
  absl::StatusOr<NewFile> file = NewFile::Open(path, use_of, S_IRUSR | S_IWUSR);
  absl::Status made = file.status();
  if (made.ok()) {
    std::string text = DrawKeyText(random);
    made = WriteConfigFile(file->fd(), text, path, kKeyFile);
    OPENSSL_cleanse(text.data(), text.size());
    if (!made.ok()) return made;
    made = file->Publish();
  }
  if (made.ok()) return made;
  if (absl::IsAlreadyExists(made)) {
    return absl::AlreadyExistsError(absl::StrCat(
        "key file ", path,
        " is there already. Nothing was changed. A cluster has one key: if "
        "this "
        "is it, copy it to the other nodes. Name another file for another "
        "cluster's key, or for a new one"));
  }
  return absl::Status(
      made.code(), absl::StrCat("key file ", path,
                                " can't be made; what is there is left alone: ",
                                made.message()));
}

}  // namespace alpheus::quorum
