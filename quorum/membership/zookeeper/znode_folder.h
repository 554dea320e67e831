// SPDX-License-Identifier: Apache-2.0
// znode_folder: the children of one znode with their contents, kept up to date.
//
// Idea: pure. It says what to read next, and takes the answers and notices. It
// reads the list of children with a watch, then each child that is not known,
// with a watch, too. A notice comes late and once, and the next read sets the
// watch again: so the last change is always seen.
//
//   nothing known --list--> names --get, each--> current
//        ^                    ^                     |
//        |  "list changed"    |  "child changed"    |
//        \--------------------+---------------------/
//
// Invariants:
//   ZF1. While is_current(), a watch tells of every later change.
//   ZF2. It asks for nothing while it is current.
// Thread safety: one thread.
// References: znodes.h.
#ifndef ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_FOLDER_H_
#define ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_FOLDER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "quorum/membership/zookeeper/znodes.h"

namespace alpheus::quorum {

class ZnodeFolder {
 public:
  struct Child {
    std::string data;
    int32_t version = 0;
    uint64_t owner = 0;  // session; 0: it is persistent

    bool operator==(const Child&) const = default;
  };
  using Children = std::map<std::string, Child, std::less<>>;

  explicit ZnodeFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;

  // Reads all again, after a lost connection. Children stay.
  void Doubt();
  // Reads the list again: a child was made or deleted.
  void DoubtList() { is_listed_ = false; }
  void DoubtChild(std::string_view name) { unread_.emplace(name); }
  // Forgets all, for a new session.
  void Forget();

  // Takes a notice of a change. Returns whether it concerns the folder.
  bool OnChanged(std::string_view path);

  bool is_current() const { return is_listed_ && unread_.empty(); }
  // Returns what to read; nothing: it is current.
  std::optional<ZnodeRequest> Next() const;
  // Takes the answer to a request of Next. Returns false if the folder itself
  // is missing.
  bool OnAnswer(const ZnodeRequest& request, const ZnodeEvent& answer);

  // Returns the children as they were read last.
  const Children& children() const { return children_; }
  const Child* Find(std::string_view name) const;
  // Returns whether children changed since the last call.
  bool TakeChange() { return std::exchange(has_changed_, false); }

 private:
  void OnList(const ZnodeEvent& answer);
  std::string_view NameIn(std::string_view path) const;

  const std::string path_;
  bool is_listed_ = false;
  bool has_changed_ = false;
  std::set<std::string, std::less<>> unread_;
  Children children_;
};

}  // namespace alpheus::quorum

#endif  // ALPHEUS_QUORUM_MEMBERSHIP_ZOOKEEPER_ZNODE_FOLDER_H_
