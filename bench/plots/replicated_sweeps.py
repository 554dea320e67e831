# SPDX-License-Identifier: Apache-2.0
"""Batches, numbers of backups, policies, flush order, places of replicas,
exposure, tenants and recovery of the log with backups: tables and aims."""

from results import Ratio, bytes_text, quantile, ratio
from tables import cell, table
from targets import Verdict, at_least, at_most

BATCH_RATE_MIN = 0.60
RECOVERY_RATIO_MAX = 3.0
WAITING = {1: "spinning", 0: "blocking"}
ORDERS = ("remote first", "local first", "parallel")


def to_text(results):
    sections = [batches(results), backups(results), policies(results),
                order(results), places(results), exposure(results),
                tenants(results), recovery(results)]
    return "\n".join(section for section in sections if section)


def us(measurement, form="%.1f"):
    return cell(measurement and measurement["median"] / 1e3, form)


def rate(mean, records=1):
    """Million records per second, of the mean time that so many took."""
    return records * 1e3 / mean["median"]


def batches(results):
    rows = []
    for m in results.find("batches", None, "mean"):
        where = m["parameters"]
        floor = results.one("batches", "floor", "mean", **where)
        p50 = results.one("batches", m["candidate"], "p50", **where)
        rows.append([WAITING[where["spin"]], m["candidate"], us(p50),
                     "%.3f" % rate(m, where["batch"]),
                     "%.2f" % ratio(floor, m).median])
    if not rows:
        return ""
    return table("16 records of 64 B forced together, two backups",
                 ["waiting", "", "p50, us", "M records/s",
                  "rate, times the floor's"], rows)


def backups(results):
    rows = []
    for m in results.find("backups", "alpheus", "p50"):
        where = m["parameters"]
        floor = results.one("backups", "floor", "p50", **where)
        mean = results.one("backups", "alpheus", "mean", **where)
        rest = [results.one("backups", "alpheus", metric, **where)
                for metric in ("p99", "p99.9")]
        rows.append([str(where["backups"]),
                     "%d of %d" % (where["quorum"], where["backups"] + 1),
                     bytes_text(where["bytes"]), us(floor), us(m)]
                    + [us(one) for one in rest]
                    + ["%.3f" % rate(mean), "%.2f" % ratio(m, floor).median])
    if not rows:
        return ""
    return table("By number of backups, spinning: us",
                 ["backups", "copies", "record", "floor p50", "p50", "p99",
                  "p99.9", "M records/s", "p50, times the floor"], rows)


def policies(results):
    rows = []
    for m in results.find("policies", None, "mean"):
        where = m["parameters"]
        of = [results.one("policies", m["candidate"], metric, **where)
              for metric in ("p50", "p99", "p99.9")]
        rows.append([m["candidate"]] + [us(one, "%.2f") for one in of]
                    + ["%.3f" % rate(m)])
    if not rows:
        return ""
    return table("Force policies, two backups, 64 B, spinning: us",
                 ["", "p50", "p99", "p99.9", "M records/s"], rows)


def copy_and_force(results, candidate, **where):
    """Both medians, in us, or None."""
    copy = results.one("order", candidate, "copy", **where)
    force = results.one("order", candidate, "force", **where)
    if copy is None or force is None:
        return None
    return (copy["median"] + force["median"]) / 1e3


def order(results):
    rows = []
    for m in results.find("order", None, "p50"):
        where = m["parameters"]
        both = copy_and_force(results, m["candidate"], **where)
        rows.append(["clwb" if where["clwb"] else "clflushopt",
                     bytes_text(where["bytes"]), m["candidate"], us(m),
                     "%.1f" % both, "%.0f %%" % (both * 1e5 / m["median"])])
    if not rows:
        return ""
    return table("By order of flushes, one backup, spinning: us",
                 ["flushed by", "record", "", "p50", "copy + force", "share"],
                 rows)


def places(results):
    rows = []
    for m in results.find("places", None, "p50"):
        where = m["parameters"]
        of = [results.one("places", m["candidate"], metric, **where)
              for metric in ("p50", "p99", "p99.9")]
        rows.append([WAITING[where["spin"]], bytes_text(where["bytes"]),
                     m["candidate"]] + [us(one) for one in of])
    if not rows:
        return ""
    return table("Where the copies are: us",
                 ["waiting", "record", "", "p50", "p99", "p99.9"], rows)


def exposure(results):
    rows = []
    for m in results.find("exposure", None, "rate"):
        where = m["parameters"]
        counts = results.distribution("exposure", m["candidate"],
                                      **where)["counts"]
        rows.append([str(where["threads"]), m["candidate"],
                     "%.3f" % (m["median"] / 1e6)]
                    + [str(quantile(counts, share)) for share in (0.5, 0.99)]
                    + [str(len(counts) - 1), str(where["bound"])])
    if not rows:
        return ""
    return table("Exposure with one backup, 64 B: records that a crash would "
                 "take, seen at each completion",
                 ["threads", "", "M records/s", "median", "p99", "highest",
                  "bound"], rows)


def tenants(results):
    rows = []
    for count in results.values("tenants", "tenants"):
        log, floor = (results.one("tenants", who, "rate", tenants=count)
                      for who in ("alpheus", "floor"))
        rows.append([str(count), "%.3f" % (floor["median"] / 1e6),
                     "%.3f" % (log["median"] / 1e6),
                     "%.2f" % ratio(log, floor).median])
    if not rows:
        return ""
    return table("Logs with one thread each, one backup, 64 B, blocking: "
                 "million records/s",
                 ["logs", "floor", "alpheus", "rate, times the floor's"],
                 rows)


def recovery(results):
    rows = []
    for log_mib in results.values("recovery", "log_mib"):
        floor = results.one("recovery", "floor", "total", log_mib=log_mib)
        for m in results.find("recovery", None, "total", log_mib=log_mib):
            parts = [results.one("recovery", m["candidate"], metric,
                                 log_mib=log_mib)
                     for metric in ("open", "iterate", "copy", "pass")]
            rows.append(["%d MiB" % log_mib, m["candidate"]]
                        + [cell(part and part["median"], "%.1f")
                           for part in parts]
                        + ["%.1f" % m["median"],
                           "%.2f" % ratio(m, floor).median])
    if not rows:
        return ""
    return table("Recovery of a log of 1 KiB records that was not closed: ms",
                 ["log", "", "open", "iterate", "copy", "pass", "total",
                  "times the floor"], rows)


def all_copies(results, count, metric="p50", who="alpheus"):
    """Latencies of 64 B to that many backups, all waited for; or None."""
    return results.one("backups", who, metric, backups=count,
                       quorum=count + 1, bytes=64)


def costs_of_second(results, who="alpheus"):
    """The second backup's cost as a multiple of the first one's, by rounds;
    None if the first adds nothing."""
    none, one, two = (all_copies(results, count, who=who)
                      for count in (0, 1, 2))
    if None in (none, one, two):
        return None
    first = [b - a for a, b in zip(none["samples"], one["samples"])]
    second = [b - a for a, b in zip(one["samples"], two["samples"])]
    if min(first) <= 0:
        return None
    return [b / a for a, b in zip(first, second)]


def cost_of_second(results, who="alpheus"):
    costs = costs_of_second(results, who)
    if costs is None:
        return None
    return Ratio({"samples": costs}, {"samples": [1.0] * len(costs)})


def judge_second(results):
    """Primary and two backups want three cores. With fewer the floor's processes
    wait for each other as well, and what is asked is no more than that."""
    found, floor = cost_of_second(results), costs_of_second(results, "floor")
    if results.cores >= 3 or found is None or not floor or min(floor) <= 0:
        return Verdict("second backup, 64 B: its cost, times the first's",
                       found, "less than 1.00x",
                       None if found is None else found.median < 1)
    relative = Ratio({"samples": costs_of_second(results)}, {"samples": floor})
    return at_most("second backup, 64 B: cost (%.2fx the first's), times the "
                   "floor's" % found.median, relative, 1.0)


def judge(results):
    where = {"bytes": 64, "spin": 1}
    yield at_least("16 records of 64 B to 2 backups: rate, times the floor's",
                   ratio(results.one("batches", "floor", "mean", **where),
                         results.one("batches", "alpheus", "mean", **where)),
                   BATCH_RATE_MIN)
    yield judge_second(results)
    where = {"log_mib": 256}
    yield at_most("recovery of 256 MiB, own copy lost: time, times the floor",
                  ratio(results.one("recovery", "copy lost", "total", **where),
                        results.one("recovery", "floor", "total", **where)),
                  RECOVERY_RATIO_MAX)
