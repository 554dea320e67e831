// SPDX-License-Identifier: Apache-2.0
// mutant: the fixes of known holes, each of which a test build can take out.
//
// Idea: a test is worth what it catches. Each hole of the protocol that was
// found has a fix in the code and a test of its invariant; a mutant is that fix
// taken out. `tools/dev mutants` switches them on one at a time and demands
// that the test of the very hole fails. mutants.inc lists them.
//
//   if (!IsMutant("kPadUnflushed")) pmem_.Flush(...);
//
// In an ordinary build IsMutant is the constant false: no code, no branch. In
// a build with the CMake option ALPHEUS_MUTANTS the environment variable
// ALPHEUS_MUTANT names the one that is on; an unknown name ends the program.
// Places name a mutant by a string, so that a new one is compiled where it is
// asked for, not everywhere; that the table has the name, .ci/lint.py checks.
//
// Thread safety: selected before any static object is made, then constant.
// References: docs/verify/testing.md, "Mutants".
#ifndef ALPHEUS_LOG_BASE_MUTANT_H_
#define ALPHEUS_LOG_BASE_MUTANT_H_

#include <cstdint>
#include <string_view>

namespace alpheus {

// The name of a mutant, as a number: FNV-1a, of 64 bits. mutant.cc sees to it
// that no two in the table are the same.
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

#if defined(ALPHEUS_MUTANTS)
namespace internal {
extern uint64_t selected_mutant;  // its hash; 0: none
}  // namespace internal

inline bool IsMutant(MutantName name) {
  return internal::selected_mutant == name.hash();
}
#else
constexpr bool IsMutant(MutantName /*name*/) { return false; }
#endif

}  // namespace alpheus

#endif  // ALPHEUS_LOG_BASE_MUTANT_H_
