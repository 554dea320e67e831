// SPDX-License-Identifier: Apache-2.0
#include "quorum/cluster/cluster_file.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "log/base/status_macros.h"
#include "log/pmem/config_file.h"
#include "quorum/arithmetic/ballot.h"
#include "quorum/cluster/table_reader.h"
#include "quorum/members/cluster_key.h"
#include "quorum/members/identity.h"
#include "quorum/members/uuid_text.h"

namespace alpheus::quorum {
namespace {

constexpr uint64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr size_t kServersMax = 16;
// Below that a pause of a machine ends sessions; servers bound it, too.
constexpr uint64_t kSessionTimeoutMsMin = 200;
constexpr uint64_t kSessionTimeoutMsMax = 600'000;

std::string_view Why(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

absl::StatusOr<Uuid> ReadClusterId(const TableReader& root) {
  ALPHEUS_RETURN_IF_ERROR(root.Require("cluster_id"));
  std::string text;
  ALPHEUS_RETURN_IF_ERROR(root.Read("cluster_id", text));
  const std::optional<Uuid> id = ParseUuid(text);
  if (!id.has_value() || id->is_zero()) {
    return root.ErrorOf(
        "cluster_id",
        absl::StrCat(
            "\"", text,
            "\" is not a cluster id. A cluster id is a UUID other than 0: "
            "write one that `cat /proc/sys/kernel/random/uuid` prints"));
  }
  return *id;
}

absl::StatusOr<std::optional<uint32_t>> ReadQuorum(const TableReader& root,
                                                   std::string_view key) {
  uint64_t size = 0;
  ALPHEUS_RETURN_IF_ERROR(root.ReadNumber(key, kMembersMax, size));
  if (size == 0) return std::optional<uint32_t>();
  return std::optional<uint32_t>(static_cast<uint32_t>(size));
}

absl::StatusOr<Address> ReadAddress(const TableReader& table,
                                    std::string_view key) {
  std::string text;
  ALPHEUS_RETURN_IF_ERROR(table.Read(key, text));
  absl::StatusOr<Address> address = ParseAddress(text);
  if (!address.ok()) return table.ErrorOf(key, Why(address.status()));
  return address;
}

absl::StatusOr<ClusterMember> ReadMember(const TableReader& table) {
  ALPHEUS_RETURN_IF_ERROR(
      table.CheckKeys({"node", "address", "may_be_primary", "clients"}));
  for (const char* key : {"node", "address"}) {
    ALPHEUS_RETURN_IF_ERROR(table.Require(key));
  }
  uint64_t node = 0;
  ALPHEUS_RETURN_IF_ERROR(table.ReadNumber("node", kBallotNodeMax, node));
  ClusterMember member{.node = NodeId(node), .address = {}};
  ALPHEUS_ASSIGN_OR_RETURN(member.address, ReadAddress(table, "address"));
  if (table.Has("clients")) {
    ALPHEUS_ASSIGN_OR_RETURN(member.clients, ReadAddress(table, "clients"));
  }
  ALPHEUS_RETURN_IF_ERROR(table.Read("may_be_primary", member.may_be_primary));
  return member;
}

absl::StatusOr<std::vector<ClusterMember>> ReadMembers(
    std::string_view file, const TableReader& root, const toml::table& table) {
  ALPHEUS_RETURN_IF_ERROR(root.Require("member"));
  const toml::array* list = table.get("member")->as_array();
  if (list == nullptr) {
    return root.ErrorOf("member",
                        "\"member\" is not a list of [[member]] tables");
  }
  if (list->empty() || list->size() > kMembersMax) {
    return root.ErrorOf("member",
                        absl::StrCat(list->size(), " members; a log has 1 to ",
                                     kMembersMax, " of them"));
  }
  std::vector<ClusterMember> members;
  for (const toml::node& entry : *list) {
    if (!entry.is_table()) {
      return root.ErrorAt(
          entry.source(),
          absl::StrCat("a member is ", AbslView(TypeName(entry.type())),
                       ", not a [[member]] table"));
    }
    const TableReader reader(file, *entry.as_table());
    ALPHEUS_ASSIGN_OR_RETURN(ClusterMember member, ReadMember(reader));
    members.push_back(std::move(member));
    // Checked here, where it is known which member is the wrong one.
    if (const absl::Status status = CheckMembers(members); !status.ok()) {
      return reader.Error(Why(status));
    }
  }
  return members;
}

absl::Status ReadFabric(const TableReader& root, ClusterFabric& fabric) {
  std::string name = "tcp";
  ALPHEUS_RETURN_IF_ERROR(root.Read("fabric", name));
  if (name != "tcp" && name != "verbs") {
    return root.ErrorOf("fabric",
                        absl::StrCat("fabric \"", name,
                                     "\" is unknown. Known are tcp and verbs"));
  }
  fabric = name == "verbs" ? ClusterFabric::kVerbs : ClusterFabric::kTcp;
  return absl::OkStatus();
}

absl::Status ReadKeyOptions(const TableReader& root, ClusterOptions& options) {
  ALPHEUS_RETURN_IF_ERROR(root.Read("key_file", options.key_file));
  ALPHEUS_RETURN_IF_ERROR(
      root.Read("insecure_without_key", options.insecure_without_key));
  if (root.Require("key_file").ok() && options.key_file.empty()) {
    return root.ErrorOf(
        "key_file", "\"key_file\" names no file. Name one, or leave it out");
  }
  if (options.key_file.empty() || !options.insecure_without_key) {
    return absl::OkStatus();
  }
  return root.ErrorOf("insecure_without_key",
                      "\"insecure_without_key\" is for clusters without a "
                      "\"key_file\". Leave one of the two out");
}

absl::StatusOr<std::vector<Address>> ReadServers(const TableReader& reader,
                                                 const toml::table& table) {
  ALPHEUS_RETURN_IF_ERROR(reader.Require("servers"));
  const toml::array* list = table.get("servers")->as_array();
  if (list == nullptr || list->empty() || list->size() > kServersMax) {
    return reader.ErrorOf("servers",
                          absl::StrCat("\"servers\" is not a list of 1 to ",
                                       kServersMax, " addresses"));
  }
  std::vector<Address> servers;
  for (const toml::node& entry : *list) {
    const auto* text = entry.as_string();
    absl::StatusOr<Address> server = absl::InvalidArgumentError(absl::StrCat(
        "a server is ", AbslView(TypeName(entry.type())), ", not a string"));
    if (text != nullptr) server = ParseAddress(text->get());
    if (!server.ok()) {
      return reader.ErrorAt(entry.source(), Why(server.status()));
    }
    servers.push_back(*std::move(server));
  }
  return servers;
}

absl::Status CheckIdentityKeys(const TableReader& reader,
                               const ZookeeperService& service) {
  if (reader.Require("identity_file").ok() && service.identity_file.empty()) {
    return reader.ErrorOf(
        "identity_file",
        "\"identity_file\" names no file. Name one, or leave it out");
  }
  if (!service.identity_file.empty() && service.insecure_without_identity) {
    return reader.ErrorOf("insecure_without_identity",
                          "\"insecure_without_identity\" is for clusters "
                          "without an \"identity_file\". Leave one of the two "
                          "out");
  }
  const size_t colon = service.admin.find(':');
  if (!service.admin.empty() && (colon == 0 || colon == std::string::npos ||
                                 colon + 1 == service.admin.size())) {
    return reader.ErrorOf("admin",
                          "\"admin\" is not name:digest, as ZooKeeper's "
                          "DigestAuthenticationProvider prints it");
  }
  return absl::OkStatus();
}

absl::StatusOr<ZookeeperService> ReadZookeeper(std::string_view file,
                                               const toml::table& table) {
  const TableReader reader(file, table);
  ALPHEUS_RETURN_IF_ERROR(reader.CheckKeys({"servers", "path", "identity_file",
                                            "insecure_without_identity",
                                            "admin", "session_timeout_ms"}));
  ZookeeperService service;
  ALPHEUS_ASSIGN_OR_RETURN(service.servers, ReadServers(reader, table));
  ALPHEUS_RETURN_IF_ERROR(reader.Read("path", service.path));
  if (const absl::Status path = CheckZnodePath(service.path); !path.ok()) {
    return reader.ErrorOf("path", Why(path));
  }
  ALPHEUS_RETURN_IF_ERROR(reader.Read("identity_file", service.identity_file));
  ALPHEUS_RETURN_IF_ERROR(reader.Read("insecure_without_identity",
                                      service.insecure_without_identity));
  ALPHEUS_RETURN_IF_ERROR(reader.Read("admin", service.admin));
  ALPHEUS_RETURN_IF_ERROR(CheckIdentityKeys(reader, service));
  uint64_t timeout_ms = service.session_timeout_ms;
  ALPHEUS_RETURN_IF_ERROR(
      reader.ReadNumber("session_timeout_ms", kInt64Max, timeout_ms));
  if (timeout_ms < kSessionTimeoutMsMin || timeout_ms > kSessionTimeoutMsMax) {
    return reader.ErrorOf(
        "session_timeout_ms",
        absl::StrCat("\"session_timeout_ms\" is ", timeout_ms, "; it must be ",
                     kSessionTimeoutMsMin, " to ", kSessionTimeoutMsMax));
  }
  service.session_timeout_ms = static_cast<uint32_t>(timeout_ms);
  return service;
}

// Reads which service keeps the membership. The table [zookeeper] is there
// exactly if that is ZooKeeper.
absl::StatusOr<std::optional<ZookeeperService>> ReadMembership(
    std::string_view file, const TableReader& root, const toml::table& table) {
  std::string name = "static";
  ALPHEUS_RETURN_IF_ERROR(root.Read("membership", name));
  if (name != "static" && name != "zookeeper") {
    return root.ErrorOf("membership",
                        absl::StrCat("membership \"", name,
                                     "\" is unknown. Known are static and "
                                     "zookeeper"));
  }
  const toml::node* found = table.get("zookeeper");
  if (name == "static") {
    if (found == nullptr) return std::optional<ZookeeperService>();
    return root.ErrorOf("zookeeper",
                        "[zookeeper] is there, and membership is \"static\". "
                        "Write membership = \"zookeeper\" above the first "
                        "table, or leave this one out");
  }
  if (found == nullptr || !found->is_table()) {
    return root.ErrorOf("zookeeper",
                        "membership is \"zookeeper\", and there is no table "
                        "[zookeeper] that says where it is");
  }
  ALPHEUS_ASSIGN_OR_RETURN(ZookeeperService service,
                           ReadZookeeper(file, *found->as_table()));
  return std::optional<ZookeeperService>(std::move(service));
}

absl::StatusOr<std::optional<NodeEncryption>> ReadEncryption(
    std::string_view file, const TableReader& root, const toml::table& table,
    ClusterFabric fabric) {
  const toml::node* found = table.get("encryption");
  if (found == nullptr) return std::optional<NodeEncryption>();
  if (!found->is_table()) {
    return root.ErrorOf("encryption",
                        "\"encryption\" is not a table [encryption]");
  }
  if (fabric != ClusterFabric::kTcp) {
    return root.ErrorOf("encryption",
                        "[encryption] is there, and RDMA adapters don't "
                        "encrypt. Use fabric = \"tcp\", or leave the table out "
                        "and keep strangers out of the adapters' network");
  }
  const TableReader reader(file, *found->as_table());
  ALPHEUS_RETURN_IF_ERROR(reader.CheckKeys(
      {"authorities_file", "certificate_file", "key_file", "revoked_file"}));
  NodeEncryption read;
  const std::pair<const char*, std::string*> files[] = {
      {"authorities_file", &read.authorities_file},
      {"certificate_file", &read.certificate_file},
      {"key_file", &read.key_file},
      {"revoked_file", &read.revoked_file}};
  for (const auto& [key, name] : files) {
    const bool may_miss = name == &read.revoked_file;
    if (may_miss && !reader.Has(key)) continue;
    ALPHEUS_RETURN_IF_ERROR(reader.Require(key));
    ALPHEUS_RETURN_IF_ERROR(reader.Read(key, *name));
    if (!name->empty()) continue;
    return reader.ErrorOf(
        key, absl::StrCat("\"", key, "\" names no file. Name one"));
  }
  return std::optional<NodeEncryption>(std::move(read));
}

// Checks the sizes once more, to name the key that is wrong.
absl::Status CheckSizes(const TableReader& root,
                        const ClusterOptions& options) {
  const auto count = static_cast<uint32_t>(options.members.size());
  absl::Status status = MakeQuorumSizes(count, options.write_quorum).status();
  if (!status.ok()) return root.ErrorOf("write_quorum", Why(status));
  status = MakeQuorumSizes(count, options.write_quorum, options.read_quorum)
               .status();
  if (!status.ok()) return root.ErrorOf("read_quorum", Why(status));
  return absl::OkStatus();
}

absl::StatusOr<ClusterConfiguration> ReadCluster(std::string_view file,
                                                 const toml::table& table) {
  const TableReader root(file, table);
  ALPHEUS_RETURN_IF_ERROR(root.CheckKeys(
      {"cluster_id", "configuration_id", "write_quorum", "read_quorum",
       "fabric", "key_file", "insecure_without_key", "membership", "zookeeper",
       "encryption", "member"}));
  ClusterOptions options;
  ALPHEUS_ASSIGN_OR_RETURN(options.cluster_id, ReadClusterId(root));
  ALPHEUS_RETURN_IF_ERROR(
      root.ReadNumber("configuration_id", kInt64Max, options.configuration_id));
  ALPHEUS_ASSIGN_OR_RETURN(options.write_quorum,
                           ReadQuorum(root, "write_quorum"));
  ALPHEUS_ASSIGN_OR_RETURN(options.read_quorum,
                           ReadQuorum(root, "read_quorum"));
  ALPHEUS_RETURN_IF_ERROR(ReadFabric(root, options.fabric));
  ALPHEUS_RETURN_IF_ERROR(ReadKeyOptions(root, options));
  ALPHEUS_ASSIGN_OR_RETURN(options.zookeeper,
                           ReadMembership(file, root, table));
  ALPHEUS_ASSIGN_OR_RETURN(options.encryption,
                           ReadEncryption(file, root, table, options.fabric));
  ALPHEUS_ASSIGN_OR_RETURN(options.members, ReadMembers(file, root, table));
  ALPHEUS_RETURN_IF_ERROR(CheckSizes(root, options));
  absl::StatusOr<ClusterConfiguration> cluster =
      MakeClusterConfiguration(std::move(options));
  if (!cluster.ok()) return root.ErrorOf("member", Why(cluster.status()));
  return cluster;
}

// Replaces members' hosts by their numbers, which fabrics take. `*reached_node`
// becomes a member that other machines reach, if there is one.
absl::Status ResolveMembers(const std::string& path, const HostLookup& look_up,
                            ClusterConfiguration& cluster,
                            std::optional<NodeId>* reached_node) {
  std::vector<ClusterMember> resolved;
  for (const ClusterMember& member : cluster.members) {
    absl::StatusOr<ResolvedAddress> found =
        ResolveAddress(member.address, look_up);
    absl::Status status = found.status();
    if (status.ok() && IsUnspecifiedNumber(found->address.host)) {
      status = absl::InvalidArgumentError(absl::StrCat(
          member.address.ToString(),
          ": this address means all addresses of a machine, and nobody can "
          "connect to it. Write the address by which others reach the node; "
          "--listen of alpheusd sets where the node listens"));
    }
    if (status.ok()) {
      ClusterMember one = member;
      one.address = found->address;
      resolved.push_back(std::move(one));
      status = CheckMembers(resolved);
      if (!found->is_loopback) *reached_node = member.node;
    }
    if (!status.ok()) {
      return {status.code(), absl::StrCat(path, ": node ", member.node.value,
                                          ": ", status.message())};
    }
  }
  cluster.members = std::move(resolved);
  return absl::OkStatus();
}

// Refuses a missing key, unless it is intended: without a key, any process that
// reaches a node may end its primary and overwrite its replica.
absl::Status CheckMayHaveNoKey(const ClusterConfiguration& cluster,
                               const std::string& path,
                               std::optional<NodeId> reached_node) {
  if (cluster.insecure_without_key || !reached_node) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": no key_file, and node ", reached_node->value, " at ",
      FindMember(cluster, *reached_node)->address.ToString(),
      " can be reached from other machines: anyone who reaches it could open "
      "the log. Make a key with `alpheus key new FILE`, copy it to all nodes "
      "and name it (key_file); or set insecure_without_key = true, if the "
      "network keeps unauthenticated clients out"));
}

absl::Status LoadKey(ClusterConfiguration& cluster, const std::string& path,
                     std::optional<NodeId> reached_node) {
  if (cluster.key_file.empty()) {
    return CheckMayHaveNoKey(cluster, path, reached_node);
  }
  cluster.key_file =
      (std::filesystem::path(path).parent_path() / cluster.key_file).string();
  ALPHEUS_ASSIGN_OR_RETURN(cluster.key, LoadClusterKey(cluster.key_file));
  return absl::OkStatus();
}

// Replaces servers' hosts by their numbers. One whose name leads nowhere is
// left out: a log is opened without ZooKeeper, too, and the name server may be
// away just then. `*reached` becomes a server that other machines reach, if
// there may be one.
absl::Status ResolveServers(const std::string& path, const HostLookup& look_up,
                            ZookeeperService& service,
                            std::optional<Address>* reached) {
  std::vector<Address> resolved;
  std::string left_out;
  for (const Address& server : service.servers) {
    const absl::StatusOr<ResolvedAddress> found =
        ResolveAddress(server, look_up);
    const absl::Status& status = found.status();
    if (found.ok()) {
      resolved.push_back(found->address);
    } else if (absl::IsNotFound(status) || absl::IsUnavailable(status)) {
      absl::StrAppend(&left_out, "; ", status.message());
    } else {
      return {status.code(),
              absl::StrCat(path, ": ZooKeeper: ", status.message())};
    }
    if (!found.ok() || !found->is_loopback) *reached = server;
  }
  if (!left_out.empty()) {
    service.warning = absl::StrCat(
        path, ": of ", service.servers.size(), " servers of ZooKeeper ",
        resolved.size(),
        " are used, as the names of the others lead nowhere. Names are looked "
        "up when a program starts: start it again once they do",
        left_out);
  }
  service.servers = std::move(resolved);
  return absl::OkStatus();
}

// Completes the service by its servers' numbers and the identity, which may be
// missing only where nobody else reaches the servers.
absl::Status CompleteService(const std::string& path, const HostLookup& look_up,
                             ZookeeperService& service) {
  std::optional<Address> reached;
  ALPHEUS_RETURN_IF_ERROR(ResolveServers(path, look_up, service, &reached));
  if (!service.identity_file.empty()) {
    service.identity_file =
        (std::filesystem::path(path).parent_path() / service.identity_file)
            .string();
    ALPHEUS_ASSIGN_OR_RETURN(service.identity,
                             LoadIdentity(service.identity_file));
    return absl::OkStatus();
  }
  if (!reached || service.insecure_without_identity) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": [zookeeper] has no identity_file, and its server ",
      reached->ToString(),
      " can be reached from other machines: anyone who reaches it could change "
      "the znodes. Write name:password into a file with mode 600 and name it "
      "(identity_file); or set insecure_without_identity = true"));
}

}  // namespace

absl::StatusOr<ClusterConfiguration> ParseClusterFile(std::string_view text,
                                                      std::string_view name) {
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) return ParseError(name, parsed.error());
  return ReadCluster(name, parsed.table());
}

absl::StatusOr<std::string> ReadClusterText(const std::string& path) {
  return ReadConfigFile(path, {.name = "cluster file",
                               .bytes_max = kClusterFileBytesMax,
                               .readers = ReadableBy::kAnyone});
}

absl::StatusOr<ClusterConfiguration> LoadClusterFile(
    const std::string& path, const HostLookup& look_up) {
  ALPHEUS_ASSIGN_OR_RETURN(const std::string text, ReadClusterText(path));
  return LoadClusterText(text, path, look_up);
}

absl::StatusOr<ClusterConfiguration> LoadClusterText(
    std::string_view text, const std::string& path, const HostLookup& look_up) {
  ALPHEUS_ASSIGN_OR_RETURN(ClusterConfiguration cluster,
                           ParseClusterFile(text, path));
  std::optional<NodeId> reached_node;
  ALPHEUS_RETURN_IF_ERROR(
      ResolveMembers(path, look_up, cluster, &reached_node));
  ALPHEUS_RETURN_IF_ERROR(LoadKey(cluster, path, reached_node));
  if (cluster.encryption) {
    const auto folder = std::filesystem::path(path).parent_path();
    for (std::string* const file :
         {&cluster.encryption->authorities_file,
          &cluster.encryption->certificate_file, &cluster.encryption->key_file,
          &cluster.encryption->revoked_file}) {
      if (file->empty()) continue;
      *file = (folder / *file).string();
    }
  }
  if (cluster.zookeeper) {
    ALPHEUS_RETURN_IF_ERROR(CompleteService(path, look_up, *cluster.zookeeper));
  }
  return cluster;
}

}  // namespace alpheus::quorum
