# SPDX-License-Identifier: Apache-2.0
"""The Arcadia paper's claims about its figures 6, 7 (b), 8 (c, d), judged by a
run of bench_replicated. Like claims.py: text only, each with its rule.

Two things are other here than there: replicas are reached over TCP, whose
processor copies the bytes, in place of an adapter that reads them from the
cache or the medium; and the processes of all replicas share this machine.
"""

from claims import Claim, windows
from replicated_sweeps import ORDERS, all_copies, copy_and_force, rate
from results import bytes_text

RECOVERY_MS_MAX = 500.0
DROP_MIN = 1.5
LITTLE_MAX = 1.5


def judge(results):
    claims = []
    for judge_figure in (_figure_6a, _figure_6b, _figure_6c, _figure_6d,
                         _figure_7b):
        claims.extend(judge_figure(results))
    return claims + list(windows(results, "exposure"))


def _orders(results):
    """(clwb, size, {order: p50 in us}) of all that were measured."""
    for clwb in (1, 0):
        for size in results.values("order", "bytes"):
            found = {who: results.one("order", who, "p50", clwb=clwb,
                                      bytes=size) for who in ORDERS}
            if None not in found.values():
                yield clwb, size, {who: m["median"] / 1e3
                                   for who, m in found.items()}


def _name(clwb, size):
    return "%s with %s" % (bytes_text(size), "clwb" if clwb else "clflushopt")


def _figure_6a(results):
    text = "remote first is the fastest order, parallel the slowest"
    rule = "by p50 at every record size, with clwb and with clflushopt"
    found = list(_orders(results))
    if {clwb for clwb, _, _ in found} != {0, 1}:
        yield Claim("6a", text, rule, None, "not measured in this run, or not "
                    "with both instructions")
        return
    others = ["%s: %s" % (_name(clwb, size), ", ".join(
        "%s %.1f" % pair for pair in sorted(of.items(), key=lambda p: p[1])))
              for clwb, size, of in found
              if min(of, key=of.get) != "remote first"
              or max(of, key=of.get) != "parallel"]
    yield Claim("6a", text, rule, not others,
                "; ".join(others) + " us" if others
                else "at %d of %d" % (len(found), len(found)))


def _figure_6b(results):
    text = "the time of copy and force mirrors the latency"
    rule = "the three orders rank alike by both wherever they were measured"
    found = list(_orders(results))
    if not found:
        yield Claim("6b", text, rule, None, "not measured in this run")
        return
    others = []
    for clwb, size, of in found:
        both = {who: copy_and_force(results, who, clwb=clwb, bytes=size)
                for who in ORDERS}
        if sorted(of, key=of.get) != sorted(both, key=both.get):
            others.append(_name(clwb, size))
    yield Claim("6b", text, rule, not others,
                "not at " + "; ".join(others) if others
                else "at all %d" % len(found))


def _figure_6c(_):
    yield Claim("6c", "remote first misses the last-level cache least",
                "misses per record by the hardware's counter", None,
                "over TCP no adapter reads the bytes; and this machine has no "
                "such counter")


def _figure_6d(results):
    text = "the first backup costs much throughput, further ones little"
    rule = ("64 B, all waited for: rate without backups at least %.1fx that "
            "with one, that with one at most %.1fx that with five; needs a "
            "core for each process" % (DROP_MIN, LITTLE_MAX))
    none, one, five = (all_copies(results, count, "mean")
                       for count in (0, 1, 5))
    if None in (none, one, five):
        yield Claim("6d", text, rule, None, "not measured in this run")
        return
    drop, rest = rate(none) / rate(one), rate(one) / rate(five)
    reproduced = drop >= DROP_MIN and rest <= LITTLE_MAX
    why = "%.1fx and %.1fx" % (drop, rest)
    if results.cores < 6 and not reproduced:
        yield Claim("6d", text, rule, None,
                    "%s, but %d cores can't tell" % (why, results.cores))
    else:
        yield Claim("6d", text, rule, reproduced, why)


def _figure_7b(results):
    sizes = results.values("recovery", "log_mib")
    texts = ("recovery takes longer when the primary's copy is lost",
             "even then 256 MiB take less than 500 ms")
    rules = ("median of the total at every size of the log",
             "median of the total")
    if not sizes:
        for text, rule in zip(texts, rules):
            yield Claim("7b", text, rule, None, "not measured in this run")
        return
    times = [(size,) + tuple(
        results.one("recovery", who, "total", log_mib=size)["median"]
        for who in ("own copy", "copy lost")) for size in sizes]
    yield Claim("7b", texts[0], rules[0],
                all(lost > own for _, own, lost in times),
                "; ".join("%d MiB: %.0f and %.0f ms" % one for one in times))
    size, _, lost = times[-1]
    yield Claim("7b", texts[1], rules[1],
                None if size != 256 else lost < RECOVERY_MS_MAX,
                "%d MiB: %.0f ms" % (size, lost))
