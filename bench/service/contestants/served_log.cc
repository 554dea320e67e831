// SPDX-License-Identifier: Apache-2.0
#include "bench/service/contestants/served_log.h"

#include <unistd.h>

#include <functional>
#include <map>
#include <utility>

#include "api/client/grpc/log_client.h"
#include "bench/service/contestants/cleaner.h"
#include "bench/service/grpc/bare_stream.h"
#include "log/base/status_macros.h"

namespace alpheus::bench::service {
namespace {

absl::StatusOr<uint64_t> LsnOf(const absl::StatusOr<client::Appended>& answer) {
  if (!answer.ok()) return answer.status();
  return answer->place ? answer->place->lsn : 0;
}

class ClientAppender final : public Appender {
 public:
  explicit ClientAppender(std::unique_ptr<client::LogClient> client)
      : client_(std::move(client)) {}

  absl::StatusOr<uint64_t> Append(const std::string& payload) override {
    return LsnOf(client_->Append({.parts = {payload}}));
  }
  absl::Status Begin(const std::string& payload, Answered answered) override {
    return client_->AppendAsync(
        {.parts = {payload}},
        [answered = std::move(answered)](
            const absl::StatusOr<client::Appended>& answer) {
          answered(LsnOf(answer));
        });
  }

 private:
  const std::unique_ptr<client::LogClient> client_;
};

using MakeAppender = std::function<absl::StatusOr<std::unique_ptr<Appender>>()>;
// Returns the core time so far, by part, without this process.
using CoreTimesOf = std::function<std::map<std::string, double>()>;

class ByAppenders final : public Contestant {
 public:
  ByAppenders(std::string name, MakeAppender make, CoreTimesOf core_times,
              const ServiceCluster* cluster)
      : name_(std::move(name)),
        make_(std::move(make)),
        core_times_(std::move(core_times)),
        cluster_(cluster) {}

  std::string name() const override { return name_; }

  absl::StatusOr<Sample> Run(const Load& load) override {
    Appenders appenders;
    for (uint64_t i = 0; i < load.streams; ++i) {
      ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<Appender> made, make_());
      appenders.push_back(std::move(made));
    }
    if (cluster_ == nullptr) {
      return RunMeasured(appenders, load, [](uint64_t /*lsn*/) {});
    }
    Cleaner cleaner(*cluster_, load.bytes);
    return RunMeasured(appenders, load,
                       [&cleaner](uint64_t lsn) { cleaner.Note(lsn); });
  }

 private:
  // The core times have the warm-up in them, and are those of all records.
  absl::StatusOr<Sample> RunMeasured(
      const Appenders& appenders, const Load& load,
      const std::function<void(uint64_t)>& appended) const {
    std::map<std::string, double> before = core_times_();
    const double own = CoreMicrosOf(getpid());
    ALPHEUS_ASSIGN_OR_RETURN(Sample sample, RunLoad(appenders, load, appended));
    const double share = static_cast<double>(load.run_ns) /
                         static_cast<double>(load.run_ns + load.warm_up_ns);
    sample.core_us["client"] = (CoreMicrosOf(getpid()) - own) * share;
    for (const auto& [part, micros] : core_times_()) {
      sample.core_us[part] = (micros - before[part]) * share;
    }
    return sample;
  }

  const std::string name_;
  const MakeAppender make_;
  const CoreTimesOf core_times_;
  const ServiceCluster* const cluster_;  // null: nothing to clean
};

CoreTimesOf TimesOf(pid_t server) {
  return [server] {
    return std::map<std::string, double>{{"server", CoreMicrosOf(server)}};
  };
}

}  // namespace

client::LogClientOptions ClientOptionsOf(
    const std::vector<std::string>& addresses, const std::string& log) {
  client::LogClientOptions options;
  options.addresses = addresses;
  options.log = log;
  return options;
}

absl::StatusOr<std::unique_ptr<Appender>> StartClient(
    const client::LogClientOptions& options) {
  ALPHEUS_ASSIGN_OR_RETURN(std::unique_ptr<client::LogClient> started,
                           client::LogClient::Start(options));
  return std::make_unique<ClientAppender>(std::move(started));
}

std::unique_ptr<Contestant> ServedLog(const ServiceCluster& cluster) {
  return std::make_unique<ByAppenders>(
      kAlpheusName,
      [options = ClientOptionsOf(cluster.addresses(), cluster.log())] {
        return StartClient(options);
      },
      [&cluster] {
        const auto [primary, others] = cluster.CoreMicros();
        return std::map<std::string, double>{{"server", primary},
                                             {"backups", others}};
      },
      &cluster);
}

std::unique_ptr<Contestant> Echo(const std::string& address, pid_t pid) {
  return std::make_unique<ByAppenders>(
      kEchoName,
      [address]() -> absl::StatusOr<std::unique_ptr<Appender>> {
        return OpenBareStream(address);
      },
      TimesOf(pid), nullptr);
}

std::unique_ptr<Contestant> EchoByClient(const std::string& address,
                                         pid_t pid) {
  return std::make_unique<ByAppenders>(
      kClientEchoName,
      [options = ClientOptionsOf({address}, "echo")] {
        return StartClient(options);
      },
      TimesOf(pid), nullptr);
}

}  // namespace alpheus::bench::service
