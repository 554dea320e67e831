// SPDX-License-Identifier: Apache-2.0
#include "bench/replicated/peers/etcd_cluster.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/byte_buffer.h>
#include <sched.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bench/replicated/peers/protobuf_fields.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::replicated {
namespace {

constexpr std::chrono::milliseconds kEtcdStartTimeout{30'000};
constexpr std::chrono::seconds kCallTimeout{5};

constexpr const char* kPut = "/etcdserverpb.KV/Put";
constexpr const char* kStatus = "/etcdserverpb.Maintenance/Status";
constexpr const char* kMoveLeader = "/etcdserverpb.Maintenance/MoveLeader";
// Fields of their messages.
constexpr uint32_t kHeader = 1;       // of all answers
constexpr uint32_t kMemberField = 2;  // of a header: who answers
constexpr uint32_t kRevision = 3;     // of a header
constexpr uint32_t kLeader = 4;       // of the answer of Status
constexpr uint32_t kKey = 1;          // of a put
constexpr uint32_t kValue = 2;        // of a put
constexpr uint32_t kTarget = 1;       // of a move of the leader

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

struct MemberPorts {
  uint16_t client = 0;
  uint16_t peer = 0;
};

std::string Url(uint16_t port) {
  return absl::StrCat("http://127.0.0.1:", port);
}

std::vector<std::string> MemberArguments(const std::string& folder,
                                         const std::vector<MemberPorts>& all,
                                         size_t member,
                                         const std::vector<std::string>& more) {
  std::vector<std::string> cluster;
  for (size_t i = 0; i < all.size(); ++i) {
    cluster.push_back(absl::StrCat("m", i, "=", Url(all[i].peer)));
  }
  const MemberPorts& ports = all[member];
  std::vector<std::string> arguments = {"--name",
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
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

class EtcdClient::Channel {
 public:
  explicit Channel(uint16_t port) : stub_(ChannelTo(port)) {}
  ~Channel() { queue_.Shutdown(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

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

EtcdClient::EtcdClient(uint16_t port)
    : channel_(std::make_unique<Channel>(port)) {}

EtcdClient::~EtcdClient() = default;

absl::StatusOr<uint64_t> EtcdClient::Put(std::string_view key,
                                         std::string_view value,
                                         Waiting waiting) {
  std::string request;
  AppendBytesField(kKey, key, &request);
  AppendBytesField(kValue, value, &request);
  ALPHEUS_ASSIGN_OR_RETURN(const std::string answer,
                           channel_->Call(kPut, request, waiting));
  ALPHEUS_ASSIGN_OR_RETURN(const std::string_view header,
                           BytesField(answer, kHeader));
  return NumberField(header, kRevision);
}

absl::StatusOr<EtcdStatus> EtcdClient::AskStatus() {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string answer,
                           channel_->Call(kStatus, "", Waiting::kBlock));
  ALPHEUS_ASSIGN_OR_RETURN(const std::string_view header,
                           BytesField(answer, kHeader));
  EtcdStatus status;
  ALPHEUS_ASSIGN_OR_RETURN(status.member, NumberField(header, kMemberField));
  ALPHEUS_ASSIGN_OR_RETURN(status.leader, NumberField(answer, kLeader));
  return status;
}

absl::Status EtcdClient::MoveLeader(uint64_t to) {
  std::string request;
  AppendNumberField(kTarget, to, &request);
  return channel_->Call(kMoveLeader, request, Waiting::kBlock).status();
}

absl::StatusOr<std::unique_ptr<EtcdCluster>> EtcdCluster::Start(
    const std::string& parent, int count,
    const std::vector<std::string>& more) {
  ALPHEUS_ASSIGN_OR_RETURN(std::string program,
                           FindProgram("etcd", "etcd-server"));
  std::unique_ptr<EtcdCluster> made(new EtcdCluster(std::move(program)));
  ALPHEUS_RETURN_IF_ERROR(
      StartPeers([&] { return made->StartMembers(parent, count, more); },
                 [&] {
                   made->End();
                   return absl::OkStatus();
                 }));
  return made;
}

void EtcdCluster::End() {
  clients_.clear();
  client_ports_.clear();
  members_.clear();
  folder_.reset();
}

absl::Status EtcdCluster::StartMembers(const std::string& parent, int count,
                                       const std::vector<std::string>& more) {
  ALPHEUS_ASSIGN_OR_RETURN(ScratchFolder folder, ScratchFolder::Make(parent));
  folder_.emplace(std::move(folder));
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
                           MemberArguments(folder_->path(), ports, i, more),
                           absl::StrCat(folder_->path(), "/m", i, ".log")));
    members_.push_back(std::move(member));
    clients_.push_back(std::make_unique<EtcdClient>(ports[i].client));
    client_ports_.push_back(ports[i].client);
  }
  return AwaitReady(members_, kEtcdStartTimeout, [&] { return FindLeader(); });
}

// All members agree on it.
absl::Status EtcdCluster::FindLeader() {
  uint64_t agreed = 0;
  ids_.clear();
  for (const auto& client : clients_) {
    ALPHEUS_ASSIGN_OR_RETURN(const EtcdStatus status, client->AskStatus());
    if (agreed == 0) agreed = status.leader;
    if (agreed == 0 || agreed != status.leader) {
      return absl::UnavailableError(
          absl::StrCat("etcd: member ", status.member, " names ", status.leader,
                       " as leader, another one ", agreed));
    }
    if (status.member == agreed) leader_ = ids_.size();
    ids_.push_back(status.member);
  }
  if (ids_[leader_] == agreed) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("etcd: leader ", agreed, " is none of its members"));
}

}  // namespace alpheus::bench::replicated
