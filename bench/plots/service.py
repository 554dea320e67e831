# SPDX-License-Identifier: Apache-2.0
"""A run of bench_service: tables by scenario, and the aims.

Aims are ratios within the run where there is something beside it: the time of a
record is judged by a bare echo of its messages and an append without the
service, added round by round.
"""

from results import OTHERS_MAX, Ratio, bytes_text, disturbed, ratio
from tables import cell, machine, skips, table

OURS = "alpheus"
ECHO = "floor-echo"
EMBEDDED = "floor-embedded"
CALLBACK = "embedded by callback"
BYTES = 64
FLOOR_RATIO_MAX = 1.3
ETCD_RATIO_MAX = 0.5
IN_FLIGHT = 64
RATE_MIN = 100e3
RATE_AIM = 250e3
TAIL_P99_US_MAX = 2000.0
IDLE_STREAMS = 10_000
IDLE_KIB_MAX = 64
IDLE_KINDS = ("alpheus, appends", "alpheus, tails")
SLOW_MORE_MAX = 0.10
ALONE, AGAIN, BESIDE = "alone", "alone again", "beside a stopped"
UNSCRAPED, UNSCRAPED_AGAIN, SCRAPED = "unscraped", "unscraped again", "scraped"
METRICS_MORE_MAX = 0.01
METRICS_MEASURED = {"p50": "p50", "server cores": "core time of the server"}
SLOW_METRICS = {"append p99": "append", "from sent p99": "tail"}


def to_text(results):
    sections = [machine(results), remarks(results), latency(results),
                loads(results, "rate", "in_flight", "Records under way on one "
                      "stream"),
                loads(results, "streams", "streams", "Streams with one record "
                      "under way each"),
                followed(results, "tail", "A reader that follows the log"),
                followed(results, "fan-out", "Readers that follow the log"),
                slow_reader(results), idle(results), metrics(results),
                skips(results),
                "Aims: median of the rounds (lowest to highest)\n"
                + aims(results)]
    return "\n".join(section for section in sections if section)


def remarks(results):
    shares = ["%s %.0f %%" % (d["scenario"], d["share_of_others"] * 100)
              for d in results.data.get("disturbances", ())]
    if not shares:
        return ""
    return "Others had of the cores' time: %s\n" % ", ".join(shares)


def candidates(results, scenario):
    return list(dict.fromkeys(m["candidate"] for m in results.find(scenario)))


def sum_of(*measured):
    """The sum of some measurements, by round; None if one is missing."""
    if None in measured:
        return None
    return {"samples": [sum(values) for values in
                        zip(*(m["samples"] for m in measured))]}


def floor_of(results, size, embedded=EMBEDDED):
    """A bare echo, and an append without the service, one after the other."""
    where = {"bytes": size, "in_flight": 1, "streams": 1}
    return sum_of(results.one("latency", ECHO, "p50", **where),
                  results.one("latency", embedded, "p50", **where))


def latency(results):
    rows = []
    for size in results.values("latency", "bytes"):
        for who in candidates(results, "latency"):
            p50 = results.one("latency", who, "p50", bytes=size)
            if p50 is None:
                continue
            floor = ratio(p50, floor_of(results, size))
            rows.append([bytes_text(size), who]
                        + [cell(results.median("latency", who, metric,
                                               bytes=size), "%.0f")
                           for metric in ("p50", "p99", "p99.9", "mean")]
                        + ["-" if floor is None else "%.2f" % floor.median]
                        + cores_of(p50))
    if not rows:
        return ""
    return table("One record at a time: us; of cores per record",
                 ["record", "", "p50", "p99", "p99.9", "mean",
                  "of echo + embedded", "client", "server", "backups"], rows)


def cores_of(measured):
    return [cell(measured["details"].get(part + "_core_us"), "%.1f")
            for part in ("client", "server", "backups")]


def loads(results, scenario, parameter, title):
    rows = []
    for size in results.values(scenario, "bytes"):
        for count in results.values(scenario, parameter):
            for who in candidates(results, scenario):
                where = {"bytes": size, parameter: count}
                rate = results.one(scenario, who, "rate", **where)
                if rate is None:
                    continue
                rows.append([bytes_text(size), str(count), who,
                             "%.0f" % rate["median"],
                             "%.0f" % rate["min"], "%.0f" % rate["max"]]
                            + [cell(results.median(scenario, who, metric,
                                                   **where), "%.0f")
                               for metric in ("p50", "p99")]
                            + cores_of(rate))
    if not rows:
        return ""
    return table(title + ": records/s, us, us of cores per record",
                 ["record", parameter.replace("_", " "), "", "rate", "lowest",
                  "highest", "p50", "p99", "client", "server", "backups"],
                 rows)


def followed(results, scenario, title):
    rows = []
    for readers in results.values(scenario, "readers"):
        for who in candidates(results, scenario):
            metrics = [results.median(scenario, who, "%s %s" % (of, metric),
                                      readers=readers)
                       for of in ("append", "from sent", "from answered")
                       for metric in ("p50", "p99")]
            rows.append([str(readers), who] + [cell(m, "%.0f")
                                               for m in metrics])
    if not rows:
        return ""
    return table(title + ": us from a record's sending, and from its answer, "
                 "to its delivery",
                 ["readers", "", "append p50", "p99", "from sending p50", "p99",
                  "from answer p50", "p99"], rows)


def slow_reader(results):
    rows = []
    for who in candidates(results, "slow-reader"):
        rows.append([who] + [cell(results.median("slow-reader", who, metric),
                                  "%.0f") for metric in
                             ("append p50", "append p99", "from sent p50",
                              "from sent p99")])
    if not rows:
        return ""
    return table("A writer and readers, alone and beside a reader that stands "
                 "still: us",
                 ["", "append p50", "p99", "delivery p50", "p99"], rows)


def idle(results):
    rows = []
    for who in candidates(results, "idle"):
        memory = results.one("idle", who, "memory")
        rows.append([who, "%d" % memory["parameters"]["streams"],
                     "%.1f" % (memory["median"] / 1024),
                     cell(results.median("idle", who, "core time"), "%.0f"),
                     cell(results.median("idle", who, "opening"), "%.0f")])
    if not rows:
        return ""
    return table("Streams on which nothing comes, at the server",
                 ["", "streams", "KiB each", "us of cores a second",
                  "us to open one"], rows)


def metrics(results):
    rows = []
    for count in results.values("metrics", "in_flight"):
        for who in candidates(results, "metrics"):
            where = {"in_flight": count}
            rate = results.one("metrics", who, "rate", **where)
            if rate is None:
                continue
            rows.append([str(count), who, "%.0f" % rate["median"],
                         "%.0f" % rate["min"], "%.0f" % rate["max"]]
                        + [cell(results.median("metrics", who, metric, **where),
                                form)
                           for metric, form in
                           (("p50", "%.1f"), ("p99", "%.0f"),
                            ("server cores", "%.2f"),
                            ("backups cores", "%.2f"), ("scrapes", "%.0f"))])
    if not rows:
        return ""
    return table("Records of 64 B while metrics are scraped: records/s, us, us "
                 "of cores per record",
                 ["in flight", "", "rate", "lowest", "highest", "p50", "p99",
                  "server", "backups", "scrapes"], rows)


class Verdict:
    """One aim: what was asked, what came out."""

    def __init__(self, what, found, aim, passed):
        self.what = what
        self.found = found    # as text
        self.aim = aim        # as text
        self.passed = passed  # None if it was not measured

    @property
    def word(self):
        return {True: "pass", False: "FAIL", None: "skipped"}[self.passed]


def judge(results):
    yield from _latency_aims(results)
    yield from _rate_aims(results)
    yield _tail_aim(results)
    yield from _idle_aims(results)
    yield from _slow_aims(results)
    yield from _metrics_aims(results)


def _ratio_aim(what, found, most):
    aim = "at most %.2fx" % most
    if found is None:
        return Verdict(what, "not measured", aim, None)
    return Verdict(what, "%.2fx (%.2f to %.2f)" % (found.median, found.low,
                                                   found.high),
                   aim, found.median <= most)


def _latency_aims(results):
    ours = results.one("latency", OURS, "p50", bytes=BYTES)
    yield _ratio_aim("one record of 64 B: p50, times echo + embedded append",
                     ratio(ours, floor_of(results, BYTES)), FLOOR_RATIO_MAX)
    yield _ratio_aim("one record of 64 B: p50, times etcd's put",
                     ratio(ours, results.one("latency", "etcd", "p50",
                                             bytes=BYTES)), ETCD_RATIO_MAX)


def _rate_aims(results):
    what = "%d records of 64 B under way: records a second" % IN_FLIGHT
    ours = results.one("rate", OURS, "rate", bytes=BYTES, in_flight=IN_FLIGHT)
    for least, name in ((RATE_MIN, "at least"), (RATE_AIM, "aim:")):
        aim = "%s %.0f" % (name, least)
        if ours is None:
            yield Verdict(what, "not measured", aim, None)
            continue
        yield Verdict(what, "%.0f (%.0f to %.0f)" % (ours["median"],
                                                     ours["min"], ours["max"]),
                      aim, ours["median"] >= least)


def _tail_aim(results):
    """By the time from the sending: the record was durable later than that."""
    what = "delivery of a durable record to a reader: p99, from its sending"
    aim = "at most %.0f us" % TAIL_P99_US_MAX
    found = results.one("tail", OURS, "from sent p99")
    if found is None:
        return Verdict(what, "not measured", aim, None)
    return Verdict(what, "%.0f us (%.0f to %.0f)" % (found["median"],
                                                     found["min"],
                                                     found["max"]),
                   aim, found["median"] <= TAIL_P99_US_MAX)


def _idle_aims(results):
    for kind in IDLE_KINDS:
        what = "%d idle streams (%s): memory of each" % (
            IDLE_STREAMS, kind.split(", ")[1])
        aim = "at most %d KiB" % IDLE_KIB_MAX
        found = results.one("idle", kind, "memory", streams=IDLE_STREAMS)
        if found is None:
            yield Verdict(what, "not measured", aim, None)
            continue
        yield Verdict(what, "%.1f KiB (%.1f to %.1f)" % tuple(
            found[key] / 1024 for key in ("median", "min", "max")),
                      aim, found["median"] <= IDLE_KIB_MAX * 1024)


def _slow_aims(results):
    for metric, name in SLOW_METRICS.items():
        what = "a stopped reader: others' p99 of %s, times without it" % name
        alone, again, beside = (results.one("slow-reader", who, metric)
                                for who in (ALONE, AGAIN, BESIDE))
        if None in (alone, again, beside):
            yield Verdict(what, "not measured", "at most 1.10x and the "
                          "difference of equal runs", None)
            continue
        change = Ratio(beside, alone)
        equal = abs(Ratio(again, alone).median - 1)
        most = 1 + SLOW_MORE_MAX + equal
        yield Verdict(what, "%.2fx (%.2f to %.2f)" % (change.median, change.low,
                                                      change.high),
                      "at most %.2fx (equal runs differ by %.2f)"
                      % (most, equal),
                      change.median <= most)


def _metrics_aims(results):
    for count in (1, IN_FLIGHT):
        for metric, name in METRICS_MEASURED.items():
            what = "metrics scraped, %d under way: %s, times unscraped" % (
                count, name)
            alone, again, beside = (
                results.one("metrics", who, metric, in_flight=count)
                for who in (UNSCRAPED, UNSCRAPED_AGAIN, SCRAPED))
            if None in (alone, again, beside):
                yield Verdict(what, "not measured", "at most 1.01x and the "
                              "difference of equal runs", None)
                continue
            change = Ratio(beside, alone)
            equal = abs(Ratio(again, alone).median - 1)
            most = 1 + METRICS_MORE_MAX + equal
            yield Verdict(what, "%.3fx (%.3f to %.3f)"
                          % (change.median, change.low, change.high),
                          "at most %.3fx (equal runs differ by %.3f)"
                          % (most, equal), change.median <= most)


def aims(results):
    lines = ["%-7s  %-66s %-30s %s" % (v.word, v.what, v.found, v.aim)
             for v in judge(results)]
    callback = ratio(results.one("latency", OURS, "p50", bytes=BYTES),
                     floor_of(results, BYTES, CALLBACK))
    if callback is not None:
        lines.append("         (beside an embedded append that learns of its "
                     "end by a callback, as the service does: %.2fx)"
                     % callback.median)
    for scenario, share in disturbed(results).items():
        lines.append("VOID: %s: others had %.0f %% of the cores' time, but at "
                     "most %.0f %% when it is to judge: whatever stands above, "
                     "run it again with nothing beside it"
                     % (scenario, share * 100, OTHERS_MAX * 100))
    return "\n".join(lines) + "\n"
