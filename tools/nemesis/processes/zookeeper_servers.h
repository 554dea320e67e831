// SPDX-License-Identifier: Apache-2.0
// zookeeper_servers: servers of Apache ZooKeeper on this machine, alone or as
// an ensemble, to be killed, paused, started again and robbed of their data.
//
// Idea: it runs Debian's libzookeeper-java on a JRE without windows. Each
// server listens at a loopback address of its own and keeps its data in a
// directory of its own. Its tick is short, so that sessions may be short, too.
// The demonstration, the nemesis and tests use it.
//
// Thread safety: one thread.
#ifndef ALPHEUS_TOOLS_NEMESIS_PROCESSES_ZOOKEEPER_SERVERS_H_
#define ALPHEUS_TOOLS_NEMESIS_PROCESSES_ZOOKEEPER_SERVERS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "quorum/members/address.h"
#include "tools/nemesis/processes/child_process.h"

namespace alpheus::demo {

class ZookeeperServers {
 public:
  // Returns why there can be none on this machine; empty: there can.
  static std::string WhyMissing();

  // Makes `count` servers, an ensemble if there is more than one. None runs
  // yet. Requires: `directory` exists.
  ZookeeperServers(int count, const std::string& directory);
  // The same at these hosts.
  ZookeeperServers(const std::vector<std::string>& hosts,
                   const std::string& directory);

  std::vector<quorum::Address> addresses() const;
  int count() const { return static_cast<int>(servers_.size()); }

  // Starts a server (0, 1 and so on), or continues it. It answers some time
  // later. Does nothing if it runs. Errors: Unavailable.
  absl::Status Start(int index);
  absl::Status StartAll();
  // Does nothing if it does not run.
  void Kill(int index);
  // Requires: it runs.
  void Pause(int server);
  void Continue(int server);
  // Requires: it was killed.
  void LoseData(int server);
  // Returns a server's answer to one of ZooKeeper's words of four letters;
  // empty: none.
  std::string Ask(int server, const std::string& word) const;
  // Returns the sessions that a server knows, by its word `dump`.
  std::vector<uint64_t> Sessions(int server) const;
  // Ends a session as a second client with its id does. Returns false if the
  // server does not know it, knows it still in the end, or does not answer.
  // Requires: there are others.
  bool EndSession(int server, uint64_t session) const;
  // Returns the server that leads now, or nothing.
  std::optional<int> Leader() const;
  // Waits until each that runs answers, and an ensemble has a leader. Returns
  // false if that takes too long.
  bool AwaitAll() const;
  // Returns the last output of the servers, for the message of a failure.
  std::string Said() const;

 private:
  struct Server {
    std::string host;
    std::string directory;
    std::unique_ptr<ChildProcess> process;
    bool is_paused = false;
  };

  void WriteFiles(int index) const;
  // Runs a script of bash whose file 3 is the server. Returns its output;
  // empty: it took too long.
  std::string Talk(int server, const std::string& script,
                   int64_t nanos_max) const;

  std::vector<Server> servers_;
};

}  // namespace alpheus::demo

#endif  // ALPHEUS_TOOLS_NEMESIS_PROCESSES_ZOOKEEPER_SERVERS_H_
