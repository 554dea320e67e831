// SPDX-License-Identifier: Apache-2.0
#include "quorum/membership/zookeeper/znode_folder.h"

#include "absl/strings/str_cat.h"

namespace alpheus::quorum {

std::string ZnodeFolder::PathOf(std::string_view name) const {
  return absl::StrCat(path_, "/", absl::string_view(name.data(), name.size()));
}

// Empty: it is not inside the folder.
std::string_view ZnodeFolder::NameIn(std::string_view path) const {
  if (path.size() <= path_.size() + 1 || !path.starts_with(path_) ||
      path[path_.size()] != '/') {
    return {};
  }
  return path.substr(path_.size() + 1);
}

void ZnodeFolder::Doubt() {
  is_listed_ = false;
  for (const auto& [name, child] : children_) unread_.insert(name);
}

void ZnodeFolder::Forget() {
  is_listed_ = false;
  unread_.clear();
  has_changed_ |= !children_.empty();
  children_.clear();
}

bool ZnodeFolder::OnChanged(std::string_view path) {
  if (path == path_) {
    is_listed_ = false;
    return true;
  }
  const std::string_view name = NameIn(path);
  if (name.empty()) return false;
  unread_.emplace(name);
  return true;
}

std::optional<ZnodeRequest> ZnodeFolder::Next() const {
  ZnodeRequest request;
  request.watch = true;
  if (!is_listed_) {
    request.call = ZnodeCall::kList;
    request.path = path_;
    return request;
  }
  if (unread_.empty()) return std::nullopt;
  request.call = ZnodeCall::kGet;
  request.path = PathOf(*unread_.begin());
  return request;
}

bool ZnodeFolder::OnAnswer(const ZnodeRequest& request,
                           const ZnodeEvent& answer) {
  if (request.call == ZnodeCall::kList) {
    if (answer.outcome == ZnodeOutcome::kNone) {
      Forget();
      return false;
    }
    if (answer.outcome == ZnodeOutcome::kDone) OnList(answer);
    return true;
  }
  const std::string name(NameIn(request.path));
  if (answer.outcome == ZnodeOutcome::kDone) {
    unread_.erase(name);
    Child child{answer.data, answer.version, answer.owner};
    const auto found = children_.find(name);
    if (found != children_.end() && found->second == child) return true;
    children_[name] = std::move(child);
    has_changed_ = true;
  } else if (answer.outcome == ZnodeOutcome::kNone) {
    unread_.erase(name);
    has_changed_ |= children_.erase(name) != 0;
    // It set no watch. If it is made again, the list's watch tells.
  }
  return true;
}

void ZnodeFolder::OnList(const ZnodeEvent& answer) {
  is_listed_ = true;
  const std::set<std::string, std::less<>> names(answer.names.begin(),
                                                 answer.names.end());
  has_changed_ |= std::erase_if(children_, [&](const auto& child) {
                    return !names.contains(child.first);
                  }) != 0;
  std::erase_if(unread_,
                [&](const std::string& name) { return !names.contains(name); });
  for (const std::string& name : names) {
    if (!children_.contains(name)) unread_.insert(name);
  }
}

const ZnodeFolder::Child* ZnodeFolder::Find(std::string_view name) const {
  const auto found = children_.find(name);
  return found == children_.end() ? nullptr : &found->second;
}

}  // namespace alpheus::quorum
