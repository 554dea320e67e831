// SPDX-License-Identifier: Apache-2.0
// mutant: the switch between the mutants that are woven into a build.
//
// Idea: a test is worth what it catches. Each hole of the protocol that was
// found has a fix in the code and a test of its invariant; a mutant is that fix
// taken out. `tools/dev mutants` switches them on one at a time and demands
// that the test of the very hole fails. tests/mutants lists them; weave.py,
// beside this file, writes them into copies of the sources:
//
//   { if (::alpheus::IsMutant("kPadUnflushed")) {} else { pmem_.Flush(...); } }
//
// Only a build with the CMake option ALPHEUS_MUTANTS has such copies and this
// file. There the environment variable ALPHEUS_MUTANT names the one that is on;
// an unknown name ends the program. Places name a mutant by a string, so that a
// new one is compiled where it is, not everywhere.
//
// Thread safety: selected before any static object is made, then constant.
// References: docs/verify/testing.md, "Mutants".
#ifndef ALPHEUS_TOOLS_MUTANTS_MUTANT_H_
#define ALPHEUS_TOOLS_MUTANTS_MUTANT_H_

#include <cstdint>
#include <string_view>

namespace alpheus {

// The name of a mutant, as a number: FNV-1a, of 64 bits. mutant.cc sees to it
// that no two in the tables are the same.
class MutantName {
 public:
  // Implicit, for IsMutant("kName").
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval MutantName(const char* name) : hash_(Hash(name)) {}

  static constexpr uint64_t Hash(std::string_view name) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    return hash;
  }

  constexpr uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_;
};

namespace internal {
extern uint64_t selected_mutant;  // its hash; 0: none
}  // namespace internal

inline bool IsMutant(MutantName name) {
  return internal::selected_mutant == name.hash();
}

}  // namespace alpheus

#endif  // ALPHEUS_TOOLS_MUTANTS_MUTANT_H_
