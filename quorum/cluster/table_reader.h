// SPDX-License-Identifier: Apache-2.0
// table_reader: reads tables of a TOML file that an operator wrote, and the
// only door to toml++.
//
// Idea: a typing error is refused, not guessed at: an unknown key, an
// unexpected type, a number out of range. Every error names file, line and
// column. For sources only: the library is all inline, and slow to compile.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_QUORUM_CLUSTER_TABLE_READER_H_
#define ALPHEUS_QUORUM_CLUSTER_TABLE_READER_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "log/base/status_macros.h"

// The package's shared library throws. The headers alone do not, and nothing is
// linked.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace alpheus::quorum {

inline absl::string_view AbslView(std::string_view text) {
  return {text.data(), text.size()};
}

// Returns the error of text that is not TOML.
inline absl::Status ParseError(std::string_view file,
                               const toml::parse_error& error) {
  const toml::source_position at = error.source().begin;
  return absl::InvalidArgumentError(
      absl::StrCat(AbslView(file), ":", at.line, ":", at.column,
                   ": not valid TOML: ", AbslView(error.description())));
}

// Returns the type of a value, as an operator would call it.
inline std::string_view TypeName(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

template <class T>
inline constexpr toml::node_type kTypeOf =
    std::is_same_v<T, bool>              ? toml::node_type::boolean
    : std::is_same_v<T, std::string>     ? toml::node_type::string
    : std::is_same_v<T, toml::date_time> ? toml::node_type::date_time
                                         : toml::node_type::integer;

// One table of the file; makes all errors of the file.
class TableReader {
 public:
  TableReader(std::string_view file, const toml::table& table)
      : file_(file), table_(table) {}

  absl::Status ErrorAt(const toml::source_region& place,
                       std::string_view what) const {
    // An empty file has no place.
    const auto line = std::max<uint32_t>(place.begin.line, 1);
    const auto column = std::max<uint32_t>(place.begin.column, 1);
    return absl::InvalidArgumentError(absl::StrCat(
        AbslView(file_), ":", line, ":", column, ": ", AbslView(what)));
  }

  absl::Status Error(std::string_view what) const {
    return ErrorAt(table_.source(), what);
  }

  // Returns an error at the value of `key`, or at the table if it has none.
  absl::Status ErrorOf(std::string_view key, std::string_view what) const {
    const toml::node* node = table_.get(key);
    return node == nullptr ? Error(what) : ErrorAt(node->source(), what);
  }

  absl::Status CheckKeys(std::initializer_list<std::string_view> known) const {
    for (const auto& [key, value] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) {
        continue;
      }
      std::string what = absl::StrCat("unknown key \"", AbslView(key.str()),
                                      "\". Known here are");
      for (const std::string_view name : known) {
        absl::StrAppend(&what, " ", AbslView(name));
      }
      return ErrorAt(key.source(), what);
    }
    return absl::OkStatus();
  }

  bool Has(std::string_view key) const { return table_.contains(key); }

  absl::Status Require(std::string_view key) const {
    if (Has(key)) return absl::OkStatus();
    return Error(absl::StrCat("key \"", AbslView(key), "\" is missing"));
  }

  // Sets `value` if the key is there, which must then be of its type.
  template <class T>
  absl::Status Read(std::string_view key, T& value) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return absl::OkStatus();
    const auto* found = node->as<T>();
    if (found == nullptr) {
      return ErrorAt(node->source(),
                     absl::StrCat("\"", AbslView(key), "\" is ",
                                  AbslView(TypeName(node->type())), ", not ",
                                  AbslView(TypeName(kTypeOf<T>))));
    }
    value = found->get();
    return absl::OkStatus();
  }

  // Sets `number` if the key is there, which must then be 1 to `max`.
  absl::Status ReadNumber(std::string_view key, uint64_t max,
                          uint64_t& number) const {
    if (!table_.contains(key)) return absl::OkStatus();
    int64_t value = 0;
    ALPHEUS_RETURN_IF_ERROR(Read(key, value));
    if (value < 1 || static_cast<uint64_t>(value) > max) {
      return ErrorOf(key, absl::StrCat("\"", AbslView(key), "\" is ", value,
                                       "; it must be 1 to ", max));
    }
    number = static_cast<uint64_t>(value);
    return absl::OkStatus();
  }

 private:
  std::string_view file_;
  const toml::table& table_;
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_CLUSTER_TABLE_READER_H_
