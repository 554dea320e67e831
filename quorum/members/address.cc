// SPDX-License-Identifier: Apache-2.0
#include "quorum/members/address.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace alpheus::quorum {
namespace {

constexpr size_t kHostBytesMax = 253;  // RFC 1035, without the root's dot

absl::Status Refused(std::string_view text, const char* why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "address \"", absl::string_view(text.data(), text.size()), "\": ", why,
      R"(. Write "host:port", or "[host]:port" for an IPv6 number)"));
}

bool IsNameChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
         c == '-' || c == '_';
}

// Characters in brackets: an IPv6 number and its zone, loosely.
bool IsBracketChar(char c) { return IsNameChar(c) || c == ':' || c == '%'; }

// Returns 0 if the text is no port. No sign, no leading zero: each port has one
// form.
uint16_t ParsePort(std::string_view text) {
  uint16_t port = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [rest, error] = std::from_chars(begin, end, port);
  const bool is_port = error == std::errc() && rest == end && text[0] != '0';
  return is_port ? port : 0;
}

}  // namespace

std::string Address::ToString() const {
  return host.find(':') == std::string::npos
             ? absl::StrCat(host, ":", port)
             : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<Address> ParseAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return Refused(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const uint16_t port = ParsePort(text.substr(colon + 1));
  if (port == 0) return Refused(text, "the port is not 1 to 65535");
  const bool bracketed =
      host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty()) return Refused(text, "it has no host");
  if (host.size() > kHostBytesMax) return Refused(text, "the host is too long");
  if (!std::all_of(host.begin(), host.end(),
                   bracketed ? IsBracketChar : IsNameChar)) {
    return Refused(text,
                   "the host has a character that is not allowed in a host");
  }
  if (bracketed && host.find(':') == std::string_view::npos) {
    return Refused(text, "the host in brackets is not an IPv6 number");
  }
  return Address{
      absl::AsciiStrToLower(absl::string_view(host.data(), host.size())), port};
}

}  // namespace alpheus::quorum
