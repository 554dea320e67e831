// SPDX-License-Identifier: Apache-2.0
// Is a folder current only while watches tell of every change (ZF1), and does
// it then ask for nothing (ZF2)?
#include "quorum/membership/zookeeper/znode_folder.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "log/base/random.h"

namespace alpheus::quorum {
namespace {

ZnodeEvent Names(std::vector<std::string> names) {
  ZnodeEvent event;
  event.names = std::move(names);
  return event;
}

ZnodeEvent Data(const std::string& data, int32_t version = 0) {
  ZnodeEvent event;
  event.data = data;
  event.version = version;
  event.owner = 7;
  return event;
}

ZnodeEvent Without(ZnodeOutcome outcome) {
  ZnodeEvent event;
  event.outcome = outcome;
  return event;
}

// ZF2.
TEST(ZnodeFolderTest, ItIsListedThenEachChildIsRead) {
  ZnodeFolder folder("/f");
  ASSERT_EQ(folder.Next()->call, ZnodeCall::kList);
  EXPECT_EQ(folder.Next()->path, "/f");
  EXPECT_TRUE(folder.Next()->watch);
  EXPECT_TRUE(folder.OnAnswer(*folder.Next(), Names({"b", "a"})));
  EXPECT_FALSE(folder.is_current());
  EXPECT_EQ(folder.Next()->path, "/f/a");
  EXPECT_TRUE(folder.Next()->watch);
  folder.OnAnswer(*folder.Next(), Data("A", 3));
  EXPECT_EQ(folder.Next()->path, "/f/b");
  folder.OnAnswer(*folder.Next(), Without(ZnodeOutcome::kNone));
  EXPECT_TRUE(folder.is_current());
  EXPECT_EQ(folder.Next(), std::nullopt);
  ASSERT_EQ(folder.children().size(), 1u);
  EXPECT_EQ(*folder.Find("a"), (ZnodeFolder::Child{"A", 3, 7}));
  EXPECT_EQ(folder.Find("b"), nullptr);
  EXPECT_TRUE(folder.TakeChange());
  EXPECT_FALSE(folder.TakeChange());
}

TEST(ZnodeFolderTest, AnUnknownOutcomeIsAskedForAgain) {
  ZnodeFolder folder("/f");
  folder.OnAnswer(*folder.Next(), Without(ZnodeOutcome::kUnknown));
  EXPECT_EQ(folder.Next()->call, ZnodeCall::kList);
  folder.OnAnswer(*folder.Next(), Names({"a"}));
  folder.OnAnswer(*folder.Next(), Without(ZnodeOutcome::kUnknown));
  EXPECT_EQ(folder.Next()->path, "/f/a");
}

TEST(ZnodeFolderTest, AFolderThatIsMissingHasNoChildren) {
  ZnodeFolder folder("/f");
  folder.OnAnswer(*folder.Next(), Names({"a"}));
  folder.OnAnswer(*folder.Next(), Data("A"));
  folder.TakeChange();
  folder.DoubtList();
  EXPECT_FALSE(folder.OnAnswer(*folder.Next(), Without(ZnodeOutcome::kNone)));
  EXPECT_TRUE(folder.children().empty());
  EXPECT_TRUE(folder.TakeChange());
  EXPECT_FALSE(folder.is_current());
}

TEST(ZnodeFolderTest, NoticesOfOthersAreNotItsOwn) {
  ZnodeFolder folder("/f");
  folder.OnAnswer(*folder.Next(), Names({}));
  EXPECT_FALSE(folder.OnChanged("/g"));
  EXPECT_FALSE(folder.OnChanged("/folder/a"));
  EXPECT_FALSE(folder.OnChanged("/f/"));
  EXPECT_TRUE(folder.is_current());
  EXPECT_TRUE(folder.OnChanged("/f"));
  EXPECT_FALSE(folder.is_current());
}

// A znode that is made again under its name is another one.
TEST(ZnodeFolderTest, AChildThatIsMadeAgainIsReadAgain) {
  ZnodeFolder folder("/f");
  folder.OnAnswer(*folder.Next(), Names({"a"}));
  folder.OnAnswer(*folder.Next(), Data("A"));
  folder.TakeChange();
  EXPECT_TRUE(folder.OnChanged("/f/a"));
  EXPECT_TRUE(folder.OnChanged("/f"));
  folder.OnAnswer(*folder.Next(), Names({"a"}));
  folder.OnAnswer(*folder.Next(), Data("A"));
  EXPECT_FALSE(folder.TakeChange());
  folder.OnChanged("/f/a");
  folder.OnAnswer(*folder.Next(), Data("B"));
  EXPECT_TRUE(folder.TakeChange());
}

// ZF1 and ZF2, against a service with one-shot watches, whatever changes when.
TEST(ZnodeFolderTest, WhatItShowsWhenAllIsToldIsWhatIsThere) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    ZnodeFolder folder("/f");
    std::map<std::string, std::string> there;
    std::set<std::string> watched;
    std::vector<std::string> notices;
    const auto tell = [&](const std::string& path) {
      if (watched.erase(path) != 0) notices.push_back(path);
    };
    for (int step = 0; step < 200; ++step) {
      const bool may_change = step < 120;
      const std::string name(1, static_cast<char>('a' + random.Below(4)));
      if (may_change && random.Below(3) == 0) {
        const bool is_made_again = random.Below(2) == 0;
        if (there.erase(name) == 0 || is_made_again) {
          there[name] = std::to_string(step);
        }
        tell("/f/" + name);
        tell("/f");
      } else if (!notices.empty() && random.Below(2) == 0) {
        folder.OnChanged(notices.front());
        notices.erase(notices.begin());
      } else if (const auto request = folder.Next()) {
        ZnodeEvent answer;
        if (request->call == ZnodeCall::kList) {
          for (const auto& [child, data] : there) answer.names.push_back(child);
        } else if (const auto found = there.find(request->path.substr(3));
                   found != there.end()) {
          answer = Data(found->second);
        } else {
          answer.outcome = ZnodeOutcome::kNone;
        }
        if (answer.outcome == ZnodeOutcome::kDone) {
          watched.insert(request->path);
        }
        folder.OnAnswer(*request, answer);
      }
    }
    ASSERT_TRUE(notices.empty()) << "seed " << seed;
    ASSERT_TRUE(folder.is_current()) << "seed " << seed;
    std::map<std::string, std::string> shown;
    for (const auto& [name, child] : folder.children()) {
      shown[name] = child.data;
    }
    EXPECT_EQ(shown, there) << "seed " << seed;
  }
}

}  // namespace
}  // namespace alpheus::quorum
