// SPDX-License-Identifier: Apache-2.0
// primary_search: which node is to be asked next whether it is the primary.
//
// Idea: a client knows the addresses of some nodes. A node that is asked says
// that it is the primary, or who is, as far as it knows. The client follows
// such hints first, each at most once in a round, and then asks the nodes that
// it knows, one after the other. When it has asked all in vain, it rests,
// longer and longer, for random times, so that many clients don't ask at once.
// It rests, too, before it asks a primary again that has answered no request.
//
//   asked a: "b is"   asked b: "not I"   asked c: unreachable   rest   asked a
//
// Invariants:
//   PSR1. Each known address is asked once in each round, whatever others say.
//   PSR2. A hint is followed once in a round. So two nodes that name each other
//         keep nobody busy.
//   PSR3. A rest lasts between half and all of a time that begins with
//         rest_min, doubles with each rest until a request is answered, and is
//         at most rest_max.
// Thread safety: one thread at a time.
// References: docs/design/service.md.
#ifndef ALPHEUS_API_CLIENT_LOCATE_PRIMARY_SEARCH_H_
#define ALPHEUS_API_CLIENT_LOCATE_PRIMARY_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace alpheus::client {

struct SearchTimes {
  int64_t rest_min_ns = 10'000'000;
  int64_t rest_max_ns = 1'000'000'000;
};

class PrimarySearch {
 public:
  // The next question.
  struct Step {
    std::string address;        // that is to be asked
    int64_t not_before_ns = 0;  // on the caller's clock
  };

  // `random` returns a number from 0 to below its argument. Requires: at least
  // one address.
  PrimarySearch(std::vector<std::string> addresses, const SearchTimes& times,
                std::function<uint64_t(uint64_t)> random);

  // Returns which node is to be asked, and when.
  Step Next(int64_t now_ns);
  // The node that was asked is not the primary, and names another one, or
  // nobody (empty).
  void NotPrimary(const std::string& hint);
  // The node that was asked is the primary. The next search begins with it.
  void Found();
  // The primary has answered a request: the next search need not rest.
  void Answered();

 private:
  void BeginRound();
  // Returns how long the next rest is.
  int64_t Rest();

  std::vector<std::string> addresses_;
  const SearchTimes times_;
  const std::function<uint64_t(uint64_t)> random_;
  std::string asked_;
  std::string hint_;
  size_t next_ = 0;              // of addresses_, in this round
  std::set<std::string> tried_;  // in this round
  int64_t rest_ns_ = 0;          // the last one; 0: none since an answer
  bool is_found_ = false;        // and has answered nothing
};

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_LOCATE_PRIMARY_SEARCH_H_
