// SPDX-License-Identifier: Apache-2.0
#include "log/pmem/new_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "log/base/bytes.h"
#include "log/pmem/file_lock.h"
#include "tests/support/fixtures/temp_directory.h"

namespace alpheus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::KilledBySignal;
using Code = absl::StatusCode;

// The first letter of a file says what it holds.
RegionUse UseByLetter(std::span<std::byte> bytes, bool is_device) {
  EXPECT_FALSE(is_device);
  switch (std::to_integer<char>(bytes.front())) {
    case '0':
      return RegionUse::kNothing;
    case 'n':
      return RegionUse::kUnopened;
    default:
      return RegionUse::kUsed;
  }
}

using Opener = absl::StatusOr<NewFile> (*)(const std::string&,
                                           RegionUseFunction, unsigned);

// Both ways: without a name, and under the working name.
class NewFileTest : public ::testing::TestWithParam<Opener> {
 protected:
  absl::StatusOr<NewFile> Open() {
    return GetParam()(path_, UseByLetter, NewFile::kRegionMode);
  }
  // Made, published and closed.
  absl::Status Make(const std::string& text) {
    absl::StatusOr<NewFile> file = Open();
    if (!file.ok()) return file.status();
    Write(*file, text);
    return file->Publish();
  }
  static void Write(const NewFile& file, const std::string& text) {
    ASSERT_EQ(pwrite(file.fd(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
  }
  static void Put(const std::string& path, const std::string& text) {
    const auto bytes = AsBytes(text);
    testing::WriteFile(path, {bytes.begin(), bytes.end()});
  }
  static std::string Get(const std::string& path) {
    return std::string(AsText(testing::ReadFile(path)));
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_.path())) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  testing::TempDirectory directory_;
  const std::string path_ = directory_.File("file");
  const std::string working_ = NewFile::WorkingName(path_);
};

INSTANTIATE_TEST_SUITE_P(Ways, NewFileTest,
                         ::testing::Values(&NewFile::Open, &NewFile::OpenNamed),
                         [](const auto& way) {
                           return way.index == 0 ? "Unnamed" : "Named";
                         });

// NF1.
TEST_P(NewFileTest, NameIsThereOnceTheFileIsWhole) {
  auto file = Open();
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(std::filesystem::exists(path_));
  Write(*file, "whole");
  EXPECT_EQ(Get(file->open_path()), "whole");
  ASSERT_TRUE(file->Publish().ok());
  EXPECT_EQ(Get(path_), "whole");
  EXPECT_THAT(Names(), ElementsAre("file"));
  EXPECT_TRUE(
      IsLockedByWriter(FileDescriptor(open(path_.c_str(), O_RDONLY)).get()));
}

TEST_P(NewFileTest, FileThatIsNotPublishedIsGone) {
  {
    auto file = Open();
    ASSERT_TRUE(file.ok()) << file.status();
    Write(*file, "half");
  }
  EXPECT_THAT(Names(), IsEmpty());
}

// Goal: whatever the moment at which the process is killed, the next making
// succeeds, and leaves one file.
TEST_P(NewFileTest, KilledMakingIsInNobodysWay) {
  for (const char* const text : {"", "0 half", "new and whole"}) {
    EXPECT_EXIT(
        {
          auto file = Open();
          if (file.ok() && *text != '\0') Write(*file, text);
          raise(SIGKILL);
        },
        KilledBySignal(SIGKILL), "");
    EXPECT_FALSE(std::filesystem::exists(path_));
    const absl::Status made = Make("whole");
    EXPECT_TRUE(made.ok()) << made;
    EXPECT_EQ(Get(path_), "whole");
    EXPECT_THAT(Names(), ElementsAre("file"));
    std::filesystem::remove(path_);
  }
}

// NF2.
TEST_P(NewFileTest, FileThatIsThereIsNeverReplaced) {
  Put(path_, "theirs");
  EXPECT_EQ(Open().status().code(), Code::kAlreadyExists);
  std::filesystem::remove(path_);
  auto file = Open();
  ASSERT_TRUE(file.ok()) << file.status();
  Write(*file, "ours");
  Put(path_, "theirs");
  EXPECT_EQ(file->Publish().code(), Code::kAlreadyExists);
  EXPECT_EQ(Get(path_), "theirs");
}

TEST_P(NewFileTest, LinkThatLeadsNowhereIsNeverReplaced) {
  std::filesystem::create_symlink("nowhere", path_);
  EXPECT_EQ(Open().status().code(), Code::kAlreadyExists);
  EXPECT_THAT(Names(), ElementsAre("file"));
}

TEST_P(NewFileTest, MissingFolderIsNamed) {
  const std::string path = directory_.File("nowhere/file");
  const absl::Status status =
      GetParam()(path, UseByLetter, NewFile::kRegionMode).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(directory_.File("nowhere") + ". Make it first"),
                    Not(HasSubstr("alpheus format"))));
}

class ReplacingFileTest : public NewFileTest {};
INSTANTIATE_TEST_SUITE_P(Replacing, ReplacingFileTest,
                         ::testing::Values(&NewFile::OpenToReplace));

// NF1, NF2. Goal: whenever the process is killed, the name leads to the old
// file or to the new one, whole, and the next making succeeds.
TEST_P(ReplacingFileTest, KilledReplacementLeavesOneOfTheTwo) {
  for (const char* const text : {"", "0 half", "new and whole"}) {
    Put(path_, "old");
    EXPECT_EXIT(
        {
          auto file = Open();
          if (file.ok() && *text != '\0') Write(*file, text);
          raise(SIGKILL);
        },
        KilledBySignal(SIGKILL), "");
    EXPECT_EQ(Get(path_), "old");
    const absl::Status made = Make("whole");
    EXPECT_TRUE(made.ok()) << made;
    EXPECT_EQ(Get(path_), "whole");
    EXPECT_THAT(Names(), ElementsAre("file"));
  }
  EXPECT_EXIT(
      {
        EXPECT_TRUE(Make("new").ok());
        raise(SIGKILL);
      },
      KilledBySignal(SIGKILL), "");
  EXPECT_EQ(Get(path_), "new");
}

TEST_P(ReplacingFileTest, OldFileStaysUntilTheNewOneIsPublished) {
  Put(path_, "old");
  {
    auto file = Open();
    ASSERT_TRUE(file.ok()) << file.status();
    Write(*file, "new");
    EXPECT_EQ(Get(path_), "old");
  }
  EXPECT_THAT(Names(), ElementsAre("file"));
  EXPECT_EQ(Get(path_), "old");
}

// The place of a file elsewhere, which a link names, stays where it is.
TEST_P(ReplacingFileTest, LinkLeadsToTheNewFile) {
  std::filesystem::create_directory(directory_.File("far"));
  Put(directory_.File("far/there"), "old");
  std::filesystem::create_symlink("far/there", path_);
  ASSERT_TRUE(Make("new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path_));
  EXPECT_EQ(Get(path_), "new");
}

TEST_P(ReplacingFileTest, NothingIsReplacedWhereNothingIs) {
  EXPECT_EQ(Open().status().code(), Code::kNotFound);
}

class NewNamedFileTest : public NewFileTest {};
INSTANTIATE_TEST_SUITE_P(Named, NewNamedFileTest,
                         ::testing::Values(&NewFile::OpenNamed));

// NF3: two processes make one file.
TEST_P(NewNamedFileTest, FileThatIsBeingMadeIsLeftAlone) {
  auto first = Open();
  ASSERT_TRUE(first.ok()) << first.status();
  Write(*first, "0 half");
  const absl::Status second = Open().status();
  EXPECT_EQ(second.code(), Code::kFailedPrecondition);
  EXPECT_THAT(std::string(second.message()), HasSubstr("making this file"));
  ASSERT_TRUE(first->Publish().ok());
  EXPECT_EQ(Get(path_), "0 half");
}

// NF3: somebody gave a log the working name.
TEST_P(NewNamedFileTest, LogUnderTheWorkingNameIsLeftAlone) {
  Put(working_, "used");
  const absl::Status status = Open().status();
  EXPECT_EQ(status.code(), Code::kAlreadyExists);
  EXPECT_THAT(std::string(status.message()), HasSubstr(working_));
  EXPECT_EQ(Get(working_), "used");
}

// NF3: where files can't be renamed, a process was killed between the two
// names.
TEST_P(NewNamedFileTest, SecondNameOfAFileIsRemovedWhateverItHolds) {
  const std::string moved = directory_.File("moved");
  Put(moved, "used");
  std::filesystem::create_hard_link(moved, working_);
  const absl::Status made = Make("whole");
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_EQ(Get(moved), "used");
  EXPECT_THAT(Names(), ElementsAre("file", "moved"));
}

TEST_P(NewNamedFileTest, FolderUnderTheWorkingNameIsLeftAlone) {
  std::filesystem::create_directory(working_);
  EXPECT_FALSE(Open().ok());
  EXPECT_THAT(Names(), ElementsAre("file.alpheus-new"));
}

}  // namespace
}  // namespace alpheus
