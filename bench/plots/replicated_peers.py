# SPDX-License-Identifier: Apache-2.0
"""The log with backups beside etcd and Redis: a table and the aims.

Of a peer only the client waits as asked, its servers as they do; so each
counts by the way of waiting that suits it best, the log included.
"""

from results import bytes_text, ratio
from tables import cell, table
from targets import at_least

SCENARIO = "peers"
METRICS = ("p50", "p99", "p99.9", "mean")
# How much faster the log is to be at 64 B, two of three copies.
FASTER = {"etcd": 10.0, "redis": 4.0}
WAITING = {1: "spinning", 0: "blocking"}


def best(results, candidate, quorum, size):
    """The p50 of the better way of waiting, or None."""
    found = results.find(SCENARIO, candidate, "p50", quorum=quorum, bytes=size)
    return min(found, key=lambda m: m["median"]) if found else None


def to_text(results):
    rows = []
    for m in results.find(SCENARIO, None, "p50"):
        where = m["parameters"]
        ours = best(results, "alpheus", where["quorum"], where["bytes"])
        of = [results.one(SCENARIO, m["candidate"], metric, **where)
              for metric in METRICS]
        times = ratio(m, ours)
        rows.append(["%d of %d" % (where["quorum"], where["backups"] + 1),
                     bytes_text(where["bytes"]), WAITING[where["spin"]],
                     m["candidate"]]
                    + [cell(one["median"] / 1e3, "%.1f") for one in of]
                    + ["-" if times is None else "%.2f" % times.median])
    if not rows:
        return ""
    return table("Beside peers, their data on the same file system: us",
                 ["copies", "record", "waiting", ""] + list(METRICS)
                 + ["p50, times the log's best"], rows)


def judge(results):
    ours = best(results, "alpheus", 2, 64)
    for peer, factor in FASTER.items():
        yield at_least("append to 2 of 3 copies, 64 B: p50, faster than %s"
                       % peer, ratio(best(results, peer, 2, 64), ours), factor)
