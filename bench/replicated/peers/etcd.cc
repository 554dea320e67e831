// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/etcd.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/replicated/candidates/cluster_folder.h"
#include "bench/replicated/peers/peer_process.h"
#include "bench/replicated/peers/protobuf_fields.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr std::chrono::milliseconds kStartTimeout{30'000};
constexpr std::chrono::seconds kCallTimeout{5};

constexpr const char* kPut = "/etcdserverpb.KV/Put";
constexpr const char* kStatus = "/etcdserverpb.Maintenance/Status";
// Fields of their messages.
constexpr uint32_t kHeader = 1;    // of both answers
constexpr uint32_t kMember = 2;    // of a header: who answers
constexpr uint32_t kRevision = 3;  // of a header
constexpr uint32_t kLeader = 4;    // of the answer of Status
constexpr uint32_t kKey = 1;       // of a put
constexpr uint32_t kValue = 2;     // of a put

// A member takes a second to listen; asking for it again takes little. The
// least of it is also how long a connection may take.
constexpr int kConnectAgainMs = 100;
constexpr int kConnectTimeoutMs = 2'000;

std::shared_ptr<grpc::Channel> ChannelTo(uint16_t port) {
  grpc::ChannelArguments arguments;
  // The endpoint is on this machine, so a proxy that the environment names is
  // not used.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kConnectAgainMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kConnectAgainMs);
  return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                   grpc::InsecureChannelCredentials(),
                                   arguments);
}

class EtcdClient {
 public:
  explicit EtcdClient(uint16_t port) : stub_(ChannelTo(port)) {}
  ~EtcdClient() { queue_.Shutdown(); }
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  // The answer's bytes. Errors: Unavailable.
  absl::StatusOr<std::string> Call(const std::string& method,
                                   const std::string& request,
                                   Waiting waiting) {
    grpc::ClientContext context;
    // Nothing else polls the connection: it is made while calls wait for it.
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() +  // gRPC's own
                         kCallTimeout);
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    const auto call = stub_.PrepareUnaryCall(&context, method, sent, &queue_);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    AwaitOne(waiting);
    if (!status.ok()) {
      return absl::UnavailableError(
          absl::StrCat("etcd: ", method, ": ", status.error_message()));
    }
    std::vector<grpc::Slice> slices;
    if (!answer.Dump(&slices).ok()) {
      return absl::UnavailableError(
          absl::StrCat("etcd: ", method, ": the answer can't be read"));
    }
    std::string bytes;
    for (const grpc::Slice& one : slices) {
      bytes.append(reinterpret_cast<const char*>(one.begin()), one.size());
    }
    return bytes;
  }

 private:
  // Only one call is ever under way.
  void AwaitOne(Waiting waiting) {
    void* tag = nullptr;
    bool ok = false;
    if (waiting == Waiting::kBlock) {
      queue_.Next(&tag, &ok);
      return;
    }
    while (queue_.AsyncNext(&tag, &ok, gpr_time_0(GPR_CLOCK_MONOTONIC)) ==
           grpc::CompletionQueue::TIMEOUT) {
      sched_yield();
    }
  }

  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
};

struct MemberPorts {
  uint16_t client = 0;
  uint16_t peer = 0;
};

std::string Url(uint16_t port) {
  return absl::StrCat("http://127.0.0.1:", port);
}

std::vector<std::string> MemberArguments(const std::string& folder,
                                         const std::vector<MemberPorts>& all,
                                         size_t member) {
  std::vector<std::string> cluster;
  for (size_t i = 0; i < all.size(); ++i) {
    cluster.push_back(absl::StrCat("m", i, "=", Url(all[i].peer)));
  }
  const MemberPorts& ports = all[member];
  return {"--name",
          absl::StrCat("m", member),
          "--data-dir",
          absl::StrCat(folder, "/m", member),
          "--listen-client-urls",
          Url(ports.client),
          "--advertise-client-urls",
          Url(ports.client),
          "--listen-peer-urls",
          Url(ports.peer),
          "--initial-advertise-peer-urls",
          Url(ports.peer),
          "--initial-cluster",
          absl::StrJoin(cluster, ","),
          "--initial-cluster-state",
          "new",
          "--logger",
          "zap",
          "--log-level",
          "error"};
}

class EtcdCandidate final : public Candidate {
 public:
  EtcdCandidate(const Work& work, std::string program)
      : work_(work), program_(std::move(program)) {}

  std::string name() const override { return kEtcdName; }
  bool is_counted() const override { return false; }

  absl::Status Begin(uint64_t payload_bytes, Waiting waiting) override {
    waiting_ = waiting;
    payload_.assign(payload_bytes, 'Z');
    revision_ = 0;
    puts_ = 0;
    return StartPeers([&] { return StartMembers(); }, [&] { return End(); });
  }

  absl::Status Append() override {
    std::string request;
    AppendBytesField(kKey, absl::StrCat("log/", ++puts_), &request);
    AppendBytesField(kValue, payload_, &request);
    ALPHEUS_ASSIGN_OR_RETURN(const std::string answer,
                             leader_->Call(kPut, request, waiting_));
    ALPHEUS_ASSIGN_OR_RETURN(const std::string_view header,
                             BytesField(answer, kHeader));
    ALPHEUS_ASSIGN_OR_RETURN(const uint64_t revision,
                             NumberField(header, kRevision));
    if (revision > std::exchange(revision_, revision)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "etcd: put ", puts_, " made no new revision, still ", revision));
  }

  absl::Status End() override {
    leader_ = nullptr;
    clients_.clear();
    members_.clear();
    folder_.reset();
    return absl::OkStatus();
  }

 private:
  absl::Status StartMembers() {
    ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder,
                             ScratchFolder::Make(work_.folder));
    folder_.emplace(std::move(folder));
    const int count = work_.backups + 1;
    ALPHEUS_ASSIGN_OR_RETURN(const std::vector<uint16_t> free,
                             FreePorts(2 * count));
    std::vector<MemberPorts> ports;
    for (size_t i = 0; i < free.size(); i += 2) {
      ports.push_back({.client = free[i], .peer = free[i + 1]});
    }
    for (size_t i = 0; i < ports.size(); ++i) {
      ALPHEUS_ASSIGN_OR_RETURN(
          PeerProcess member,
          PeerProcess::Start(program_,
                             MemberArguments(folder_->path(), ports, i),
                             absl::StrCat(folder_->path(), "/m", i, ".log")));
      members_.push_back(std::move(member));
      clients_.push_back(std::make_unique<EtcdClient>(ports[i].client));
    }
    return AwaitReady(members_, kStartTimeout, [&] { return FindLeader(); });
  }

  // All members agree on it.
  absl::Status FindLeader() {
    uint64_t agreed = 0;
    leader_ = nullptr;
    for (const auto& client : clients_) {
      ALPHEUS_ASSIGN_OR_RETURN(const std::string answer,
                               client->Call(kStatus, "", Waiting::kBlock));
      ALPHEUS_ASSIGN_OR_RETURN(const std::string_view header,
                               BytesField(answer, kHeader));
      ALPHEUS_ASSIGN_OR_RETURN(const uint64_t member,
                               NumberField(header, kMember));
      ALPHEUS_ASSIGN_OR_RETURN(const uint64_t leader,
                               NumberField(answer, kLeader));
      if (agreed == 0) agreed = leader;
      if (agreed == 0 || agreed != leader) {
        return absl::UnavailableError(
            absl::StrCat("etcd: member ", member, " names ", leader,
                         " as leader, another one ", agreed));
      }
      if (member == leader) leader_ = client.get();
    }
    if (leader_ != nullptr) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("etcd: leader ", agreed, " is none of its members"));
  }

  const Work work_;
  const std::string program_;
  Waiting waiting_ = Waiting::kBlock;
  std::string payload_;
  uint64_t revision_ = 0;
  uint64_t puts_ = 0;
  std::optional<ScratchFolder> folder_;
  std::vector<PeerProcess> members_;
  std::vector<std::unique_ptr<EtcdClient>> clients_;
  EtcdClient* leader_ = nullptr;  // one of clients_
};

}  // namespace

MakeCandidate Etcd() {
  return [](const Work& work) -> absl::StatusOr<std::unique_ptr<Candidate>> {
    if (work.copies() != (work.backups + 1) / 2 + 1 || work.batch != 1) {
      return absl::NotFoundError(
          absl::StrCat("waits for the majority of its members, one record at a "
                       "time, not for ",
                       work.copies(), " of ", work.backups + 1,
                       " in batches of ", work.batch));
    }
    ALPHEUS_ASSIGN_OR_RETURN(std::string program,
                             FindProgram("etcd", "etcd-server"));
    return std::make_unique<EtcdCandidate>(work, std::move(program));
  };
}

}  // namespace alpheus::bench::replicated
