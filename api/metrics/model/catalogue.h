// SPDX-License-Identifier: Apache-2.0
// catalogue: all metrics of a node. docs/use/metrics.md says what each is for,
// and which alert should be built on it.
//
// Names follow Prometheus' conventions: the prefix "alpheus_", base units
// (seconds, bytes) at the end, "_total" behind counters.
#ifndef ALPHEUS_API_METRICS_MODEL_CATALOGUE_H_
#define ALPHEUS_API_METRICS_MODEL_CATALOGUE_H_

#include <array>

#include "api/metrics/model/family.h"

namespace alpheus::metrics {

// The process.
inline constexpr Metric kBuildInfo = {
    "alpheus_build_info", Kind::kGauge,
    "Version of the program and id of the node, as labels; always 1"};
inline constexpr Metric kStartTime = {
    "alpheus_process_start_time_seconds", Kind::kGauge,
    "Time at which the process began, in seconds since 1970"};

// The node, and the replicas that it keeps.
inline constexpr Metric kNodeResponsive = {
    "alpheus_node_responsive", Kind::kGauge,
    "1 if the node's thread answered the scrape; 0 if a medium keeps it"};
inline constexpr Metric kNodeConnections = {
    "alpheus_node_connections", Kind::kGauge,
    "Connections of primaries, nodes and readers to this node"};
inline constexpr Metric kNodeRejections = {
    "alpheus_node_rejections_total", Kind::kCounter,
    "Peers that this node has rejected, by reason"};
inline constexpr Metric kNodeCertificateEnd = {
    "alpheus_node_certificate_end_seconds", Kind::kGauge,
    "Time at which the certificate that the node shows to other nodes expires, "
    "in seconds since 1970; only where nodes encrypt"};
inline constexpr Metric kReplicaServed = {
    "alpheus_replica_served", Kind::kGauge,
    "1 if the node serves its replica; 0 if a primary of this machine has it, "
    "or it can't be served"};
inline constexpr Metric kReplicaInSession = {
    "alpheus_replica_in_session", Kind::kGauge,
    "1 if a primary is connected that sends the replica its records"};
inline constexpr Metric kReplicaEpoch = {
    "alpheus_replica_epoch", Kind::kGauge,
    "Epoch in which the replica was written last"};
inline constexpr Metric kReplicaHead = {
    "alpheus_replica_head_lsn", Kind::kGauge,
    "Oldest LSN of the replica that is not cleaned"};
inline constexpr Metric kReplicaPersisted = {
    "alpheus_replica_persisted_lsn", Kind::kGauge,
    "Last LSN that the replica has persisted"};
inline constexpr Metric kReplicaDurable = {
    "alpheus_replica_durable_lsn", Kind::kGauge,
    "Last LSN that the replica knows to be durable"};
inline constexpr Metric kReplicaScrubPasses = {
    "alpheus_replica_scrub_passes_total", Kind::kCounter,
    "Passes of scrubbing over the whole replica"};
inline constexpr Metric kReplicaScrubbedRecords = {
    "alpheus_replica_scrubbed_records_total", Kind::kCounter,
    "Records of the replica that scrubbing has verified"};
inline constexpr Metric kReplicaScrubbedBytes = {
    "alpheus_replica_scrubbed_bytes_total", Kind::kCounter,
    "Bytes of the replica that scrubbing has verified"};
inline constexpr Metric kReplicaDamaged = {
    "alpheus_replica_damaged_records_total", Kind::kCounter,
    "Damaged records that scrubbing has found, repaired or not"};
inline constexpr Metric kReplicaRepaired = {
    "alpheus_replica_repaired_records_total", Kind::kCounter,
    "Damaged records that scrubbing has repaired"};
inline constexpr Metric kReplicaUnrepairable = {
    "alpheus_replica_unrepairable_runs", Kind::kGauge,
    "Runs of records that are known to be damaged and could not be repaired"};

// A log for which the node stands.
inline constexpr Metric kLogPrimary = {"alpheus_log_is_primary", Kind::kGauge,
                                       "1 if this process has the log open"};
inline constexpr Metric kLogServed = {
    "alpheus_log_is_served", Kind::kGauge,
    "1 if clients can use the log at this node"};
inline constexpr Metric kLogOpenings = {
    "alpheus_log_openings_total", Kind::kCounter,
    "How often this process has opened the log"};
inline constexpr Metric kLogOpeningSeconds = {
    "alpheus_log_last_opening_seconds", Kind::kGauge,
    "Duration of the last opening, by phase"};
// The same, while this process has it open.
inline constexpr Metric kLogFailed = {
    "alpheus_log_has_failed", Kind::kGauge,
    "1 if the log has failed, and must be opened again"};
inline constexpr Metric kLogEpoch = {
    "alpheus_log_epoch", Kind::kGauge,
    "Epoch in which this process opened the log"};
inline constexpr Metric kLogHead = {"alpheus_log_head_lsn", Kind::kGauge,
                                    "Oldest LSN that is not cleaned"};
inline constexpr Metric kLogPersisted = {
    "alpheus_log_persisted_lsn", Kind::kGauge,
    "Last LSN that the primary's own replica has persisted"};
inline constexpr Metric kLogDurable = {
    "alpheus_log_durable_lsn", Kind::kGauge,
    "Last LSN that a write quorum has persisted"};
inline constexpr Metric kLogInSyncLsn = {
    "alpheus_log_in_sync_lsn", Kind::kGauge,
    "Last LSN that all replicas in sync have persisted"};
inline constexpr Metric kLogNext = {"alpheus_log_next_lsn", Kind::kGauge,
                                    "LSN that the next record gets"};
inline constexpr Metric kLogExposed = {
    "alpheus_log_exposed_records", Kind::kGauge,
    "Records that are reserved and not durable: a crash may lose them"};
inline constexpr Metric kLogExposedMax = {"alpheus_log_exposed_records_max",
                                          Kind::kGauge,
                                          "Bound of the exposed records"};
inline constexpr Metric kLogRingBytes = {"alpheus_log_ring_bytes", Kind::kGauge,
                                         "Size of the ring"};
inline constexpr Metric kLogRingUsed = {
    "alpheus_log_ring_used_bytes", Kind::kGauge,
    "Bytes of the ring that records have, until they are cleaned"};
inline constexpr Metric kLogReplicas = {"alpheus_log_replicas", Kind::kGauge,
                                        "Replicas of the log"};
inline constexpr Metric kLogWriteQuorum = {
    "alpheus_log_write_quorum_replicas", Kind::kGauge,
    "Replicas that must have a record before it is durable"};
inline constexpr Metric kLogInSync = {"alpheus_log_in_sync_replicas",
                                      Kind::kGauge, "Replicas in sync"};
inline constexpr Metric kLogMemberInSync = {
    "alpheus_log_member_in_sync", Kind::kGauge,
    "1 if the replica of this node is in sync"};
inline constexpr Metric kLogJoins = {
    "alpheus_log_joins_total", Kind::kCounter,
    "Members that have joined again since the log was opened"};
inline constexpr Metric kLogFailedJoins = {
    "alpheus_log_failed_joins_total", Kind::kCounter,
    "Failed attempts to join since the log was opened"};
inline constexpr Metric kLogScrubPasses = {
    "alpheus_log_scrub_passes_total", Kind::kCounter,
    "Passes of scrubbing over the primary's own replica since the opening"};
inline constexpr Metric kLogScrubbedRecords = {
    "alpheus_log_scrubbed_records_total", Kind::kCounter,
    "Records of the primary's own replica that scrubbing has verified"};
inline constexpr Metric kLogDamaged = {
    "alpheus_log_damaged_records_total", Kind::kCounter,
    "Damaged records of the primary's own replica, repaired or not"};
inline constexpr Metric kLogRepaired = {
    "alpheus_log_repaired_records_total", Kind::kCounter,
    "Damaged records of the primary's own replica that were repaired"};

// A log, as the service has it.
inline constexpr Metric kAppendedRecords = {
    "alpheus_service_appended_records_total", Kind::kCounter,
    "Records of clients' requests that were appended"};
inline constexpr Metric kAppendedBytes = {
    "alpheus_service_appended_bytes_total", Kind::kCounter,
    "Bytes of the payloads of these records"};
inline constexpr Metric kRepeats = {
    "alpheus_service_repeats_total", Kind::kCounter,
    "Requests that had a record already, and got its answer again"};
inline constexpr Metric kRefusals = {"alpheus_service_refusals_total",
                                     Kind::kCounter,
                                     "Requests that were refused, by reason"};
inline constexpr Metric kStageSeconds = {
    "alpheus_service_append_stage_seconds", Kind::kHistogram,
    "Durations of the stages of one of 64 requests"};
inline constexpr Metric kOpenClients = {
    "alpheus_service_open_clients", Kind::kGauge,
    "Clients that have begun and not ended"};
inline constexpr Metric kKnownClients = {
    "alpheus_service_known_clients", Kind::kGauge,
    "Clients that the log knows: those, and ended ones that are not cleaned"};
inline constexpr Metric kStreams = {
    "alpheus_service_streams", Kind::kGauge,
    "Streams that use the log: appends, tails and reads"};

// Calls of clients.
inline constexpr Metric kCalls = {
    "alpheus_grpc_calls_total", Kind::kCounter,
    "Calls and streams that have ended, by method and code"};
inline constexpr Metric kCallSeconds = {
    "alpheus_grpc_call_duration_seconds", Kind::kHistogram,
    "Durations of calls with one answer, by method"};
inline constexpr Metric kOpenStreams = {
    "alpheus_grpc_open_streams", Kind::kGauge,
    "Streams that have not ended, by method"};
inline constexpr Metric kClientConnections = {
    "alpheus_grpc_open_connections", Kind::kGauge,
    "Connections of clients that are open"};
inline constexpr Metric kRefusedClientConnections = {
    "alpheus_grpc_refused_connections_total", Kind::kCounter,
    "Connections of clients that were closed, as there were too many"};

inline constexpr std::array kCatalogue = {kBuildInfo,
                                          kStartTime,
                                          kNodeResponsive,
                                          kNodeConnections,
                                          kNodeRejections,
                                          kNodeCertificateEnd,
                                          kReplicaServed,
                                          kReplicaInSession,
                                          kReplicaEpoch,
                                          kReplicaHead,
                                          kReplicaPersisted,
                                          kReplicaDurable,
                                          kReplicaScrubPasses,
                                          kReplicaScrubbedRecords,
                                          kReplicaScrubbedBytes,
                                          kReplicaDamaged,
                                          kReplicaRepaired,
                                          kReplicaUnrepairable,
                                          kLogPrimary,
                                          kLogServed,
                                          kLogOpenings,
                                          kLogOpeningSeconds,
                                          kLogFailed,
                                          kLogEpoch,
                                          kLogHead,
                                          kLogPersisted,
                                          kLogDurable,
                                          kLogInSyncLsn,
                                          kLogNext,
                                          kLogExposed,
                                          kLogExposedMax,
                                          kLogRingBytes,
                                          kLogRingUsed,
                                          kLogReplicas,
                                          kLogWriteQuorum,
                                          kLogInSync,
                                          kLogMemberInSync,
                                          kLogJoins,
                                          kLogFailedJoins,
                                          kLogScrubPasses,
                                          kLogScrubbedRecords,
                                          kLogDamaged,
                                          kLogRepaired,
                                          kAppendedRecords,
                                          kAppendedBytes,
                                          kRepeats,
                                          kRefusals,
                                          kStageSeconds,
                                          kOpenClients,
                                          kKnownClients,
                                          kStreams,
                                          kCalls,
                                          kCallSeconds,
                                          kOpenStreams,
                                          kClientConnections,
                                          kRefusedClientConnections};

}  // namespace alpheus::metrics

#endif  // ALPHEUS_API_METRICS_MODEL_CATALOGUE_H_
