// SPDX-License-Identifier: Apache-2.0
#include "api/wiring/node_tls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "log/base/status_macros.h"
#include "log/base/within_memory.h"
#include "quorum/members/certificates.h"
#include "quorum/members/peer_name.h"

namespace alpheus {
namespace {

using fabric::tcp::TlsSettings;

// No list is larger.
constexpr size_t kPemBytesMax = size_t{4} << 20;

absl::StatusOr<std::string> ReadPem(const std::string& path,
                                    absl::string_view what,
                                    ReadableBy readers) {
  return ReadConfigFile(path,
                        {.name = what,
                         .bytes_max = kPemBytesMax,
                         .readers = readers,
                         .if_exposed = "make a new one, and a certificate for "
                                       "it"});
}

quorum::NodeEncryption FilesOfNode(quorum::NodeEncryption files, NodeId node) {
  const std::string number =
      node == NodeId(0) ? "operator" : absl::StrCat(node.value);
  for (std::string* const file :
       {&files.authorities_file, &files.certificate_file, &files.key_file,
        &files.revoked_file}) {
    *file = absl::StrReplaceAll(*file, {{"{node}", number}});
  }
  return files;
}

}  // namespace

NodeTls::NodeTls(const quorum::NodeEncryption& files, Uuid cluster_id,
                 NodeId node, Say say, const Clock& clock,
                 const WallClock& wall_clock)
    : files_(FilesOfNode(files, node)),
      cluster_id_(cluster_id),
      node_(node),
      say_(std::move(say)),
      clock_(clock),
      wall_clock_(wall_clock) {}

absl::StatusOr<std::shared_ptr<NodeTls>> NodeTls::Load(
    const quorum::NodeEncryption& files, Uuid cluster_id, NodeId node, Say say,
    const Clock& clock, const WallClock& wall_clock) {
  std::shared_ptr<NodeTls> made(
      new NodeTls(files, cluster_id, node, std::move(say), clock, wall_clock));
  const MutexLock lock(made->mutex_);
  // A file that is replaced from here on has another stamp later.
  made->stamps_ = made->Stamps();
  ALPHEUS_ASSIGN_OR_RETURN(made->settings_, made->Read());
  if (made->settings_->is_own_revoked()) {  // NTL4
    return absl::FailedPreconditionError(
        absl::StrCat("certificate ", made->files_.certificate_file,
                     ": it is revoked, by revoked certificates ",
                     made->files_.revoked_file, ". Have a new one made"));
  }
  made->look_at_ = clock.NowNanos() + kLookNanos;
  made->Warn();
  return made;
}

absl::StatusOr<std::shared_ptr<const TlsSettings>> NodeTls::Read() const {
  fabric::tcp::TlsTexts texts;
  texts.authorities_name =
      absl::StrCat("authorities of the nodes ", files_.authorities_file);
  texts.certificate_name =
      absl::StrCat("certificate ", files_.certificate_file);
  texts.key_name = absl::StrCat("key of the certificate ", files_.key_file);
  texts.revoked_name =
      absl::StrCat("revoked certificates ", files_.revoked_file);
  ALPHEUS_ASSIGN_OR_RETURN(
      texts.authorities,
      ReadPem(files_.authorities_file, "authorities of the nodes",
              ReadableBy::kAnyone));
  ALPHEUS_ASSIGN_OR_RETURN(
      texts.certificate,
      ReadPem(files_.certificate_file, "certificate", ReadableBy::kAnyone));
  ALPHEUS_ASSIGN_OR_RETURN(
      texts.key,
      ReadPem(files_.key_file, "key of the certificate", ReadableBy::kOwner));
  if (!files_.revoked_file.empty()) {
    ALPHEUS_ASSIGN_OR_RETURN(
        texts.revoked, ReadPem(files_.revoked_file, "revoked certificates",
                               ReadableBy::kAnyone));
  }
  ALPHEUS_ASSIGN_OR_RETURN(std::shared_ptr<const TlsSettings> settings,
                           TlsSettings::Make(texts));
  // A node with an operator's certificate would be refused by the others.
  const absl::Status own =
      node_ == NodeId(0)
          ? quorum::CheckActsAs(settings->own_name(), cluster_id_, node_)
          : quorum::CheckIsNode(settings->own_name(), cluster_id_, node_);
  if (!own.ok()) {
    return absl::Status(
        own.code(), absl::StrCat(texts.certificate_name, ": ", own.message()));
  }
  ALPHEUS_RETURN_IF_ERROR(CheckDates(*settings));
  return settings;
}

absl::Status NodeTls::CheckDates(const TlsSettings& settings) const {
  const int64_t now_s = wall_clock_.NowSeconds();
  ALPHEUS_RETURN_IF_ERROR(
      quorum::CheckIsGood(settings.own_validity(), now_s,
                          absl::StrCat("certificate ", files_.certificate_file,
                                       ": it, or one behind it,"),
                          "Have a new one made"));
  return quorum::CheckIsGood(
      settings.revoked_validity(), now_s,
      absl::StrCat("revoked certificates ", files_.revoked_file, ": a list"),
      "Have its authority sign a new one");
}

std::vector<ConfigFileStamp> NodeTls::Stamps() const {
  std::vector<ConfigFileStamp> stamps;
  for (const std::string* const file :
       {&files_.authorities_file, &files_.certificate_file, &files_.key_file,
        &files_.revoked_file}) {
    if (!file->empty()) stamps.push_back(StampOf(*file));
  }
  return stamps;
}

void NodeTls::Tell(const std::string& sentence) const {
  if (say_ != nullptr) say_(absl::StrCat("encryption: ", sentence));
}

void NodeTls::Warn() {
  const int64_t now_s = wall_clock_.NowSeconds();
  if (now_s < warn_at_s_) return;
  std::vector<std::string> warnings;
  if (settings_->is_own_revoked()) {
    warnings.push_back(absl::StrCat("the certificate ", files_.certificate_file,
                                    " is revoked, by ", files_.revoked_file,
                                    ": others refuse it. Have a new one made"));
  }
  const int64_t end_s = settings_->own_validity().end_s;
  if (now_s >= end_s - kWarnBeforeSeconds) {
    warnings.push_back(absl::StrCat(
        "the certificate ", files_.certificate_file,
        now_s >= end_s ? " has expired at " : " expires at ", UtcText(end_s),
        ": others refuse it from then on. Put a new one in its place"));
  }
  const int64_t list_end_s = settings_->revoked_validity().end_s;
  if (now_s >= list_end_s) {  // FTL7
    warnings.push_back(absl::StrCat(
        "a list in ", files_.revoked_file, " has expired at ",
        UtcText(list_end_s),
        ": it is used on, but a process does not start with it. Have its "
        "authority sign a new one"));
  }
  for (const std::string& warning : warnings) Tell(warning);
  if (!warnings.empty()) warn_at_s_ = now_s + kWarnAgainSeconds;
}

void NodeTls::Look(bool reads_anyway) {
  look_at_ = clock_.NowNanos() + kLookNanos;
  std::vector<ConfigFileStamp> stamps = Stamps();
  if (stamps == stamps_ && !reads_anyway) {
    said_.clear();
    return Warn();
  }
  absl::StatusOr<std::shared_ptr<const TlsSettings>> read = Read();
  if (!read.ok()) {
    const std::string why(read.status().message());
    if (why != said_ || reads_anyway) {
      Tell(absl::StrCat("the files of before are kept: ", why));
    }
    said_ = why;
    return Warn();
  }
  settings_ = *std::move(read);
  stamps_ = std::move(stamps);
  said_.clear();
  warn_at_s_ = 0;
  Tell(absl::StrCat("its files were read again; the certificate ",
                    files_.certificate_file, " is good until ",
                    UtcText(settings_->own_validity().end_s)));
  Warn();
}

std::shared_ptr<const TlsSettings> NodeTls::Current() {
  const MutexLock lock(mutex_);
  if (clock_.NowNanos() >= look_at_) {
    // Without memory for new ones those of before stay (NTL1).
    WithinMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      Look(/*reads_anyway=*/false);
      return absl::OkStatus();
    }).IgnoreError();
  }
  return settings_;
}

void NodeTls::Reload() {
  const MutexLock lock(mutex_);
  Look(/*reads_anyway=*/true);
}

int64_t NodeTls::end_s() const {
  const MutexLock lock(mutex_);
  return settings_->own_validity().end_s;
}

}  // namespace alpheus
