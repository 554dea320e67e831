# SPDX-License-Identifier: Apache-2.0
"""Measurements as tables for a terminal."""

from results import bytes_text, quantile

LOGS = ("alpheus", "libpmemlog", "flex", "zero-init")
APPEND_COLUMNS = ("alpheus", "alpheus-freq8", "alpheus-freq16", "libpmemlog",
                  "flex", "zero-init")


def to_text(results):
    sections = [machine(results), append(results), counts(results),
                threads(results), policies(results), stages(results),
                tenants(results), recovery(results), opening(results),
                skips(results)]
    return "\n".join(section for section in sections if section)


def machine(results):
    data, found = results.data, results.machine
    return ("%s, %d cores, %.0f GiB, %s, %s, %s build\n"
            "commit %s, preset %s, %d rounds by turns, regions in %s, load "
            "average %.1f at the start\n"
            % (found["cpu_model"], results.cores,
               found["memory_bytes"] / 2 ** 30, found["kernel"],
               found["compiler"], found["build_type"], data["commit"],
               data["preset"], data["rounds"], data["folder"],
               found["load_average"]))


def cell(value, form):
    return "-" if value is None else form % value


def table(title, columns, rows):
    """Rows of texts below columns, each right-aligned."""
    widths = [max(len(row[i]) for row in [columns] + rows)
              for i in range(len(columns))]
    lines = [title]
    for row in [columns] + rows:
        lines.append("  " + "  ".join(cell.rjust(width)
                                      for cell, width in zip(row, widths)))
    return "\n".join(lines) + "\n"


def append(results):
    rows = []
    for size in results.values("append", "bytes"):
        floor = results.floor("append", bytes=size)
        row = [bytes_text(size), "%.1f" % floor["median"]]
        for candidate in APPEND_COLUMNS:
            row.append(cell(results.median("append", candidate, bytes=size),
                             "%.1f"))
        rows.append(row + [floor["candidate"]])
    if not rows:
        return ""
    return table("Append, one thread: ns per record, cleaning included",
                  ["record", "floor"] + list(APPEND_COLUMNS)
                  + ["cheapest floor"], rows)


def counts(results):
    rows = []
    for m in results.find("append"):
        if not m["candidate"].startswith("alpheus"):
            continue
        d = m["details"]
        rows.append([m["candidate"], bytes_text(m["parameters"]["bytes"])]
                    + ["%.3f" % d[name] for name in
                       ("fences", "flushed_lines")]
                    + ["%.1f" % d["reclaim_ns"]])
    if not rows:
        return ""
    return table("Alpheus: what its persistence primitive did per append, "
                  "and cleaning",
                  ["policy", "record", "fences", "flushed lines",
                   "cleaning ns"], rows)


def _oversubscribed(results, numbers):
    if max(numbers) <= results.cores:
        return ""
    return ("  NOTE: more threads than the %d cores are over-subscribed: they "
            "wait for cores, too\n" % results.cores)


DISTURBED_FROM = 1.0  # preemptions per slice


def _disturbed(results, scenario):
    """Says if others took the cores where there were enough for all."""
    seen = [m["details"].get("preemptions_per_slice", 0)
            for m in results.find(scenario, "alpheus")
            if m["parameters"].get("threads", 0) <= results.cores]
    if not seen or max(seen) < DISTURBED_FROM:
        return ""
    return ("  NOTE: disturbed: other work took a core up to %.1f times per "
            "slice from Alpheus; ratios of threads mean little\n" % max(seen))


def threads(results):
    rows = []
    numbers = results.values("threads", "threads")
    for size in results.values("threads", "bytes"):
        for number in numbers:
            where = {"bytes": size, "threads": number}
            floor = results.floor("threads", **where)
            rows.append([bytes_text(size), str(number),
                         "%.3f" % (floor["median"] / 1e6)]
                        + [_rate(results, "threads", candidate, where)
                           for candidate in APPEND_COLUMNS])
    if not rows:
        return ""
    return table("Threads on one log: million records/s",
                  ["record", "threads", "floor"] + list(APPEND_COLUMNS),
                  rows) + _oversubscribed(results, numbers) + _disturbed(
                      results, "threads")


def _rate(results, scenario, candidate, where):
    found = results.median(scenario, candidate, **where)
    return "-" if found is None else "%.3f" % (found / 1e6)


def policies(results):
    rows = []
    numbers = results.values("policies", "threads")
    candidates = list(dict.fromkeys(
        m["candidate"] for m in results.find("policies", None, "throughput")))
    for candidate in candidates:
        for number in numbers:
            rows.append(_policy_row(results, candidate, number))
    if not rows:
        return ""
    return table("Force policies, 64 B: million records/s; exposure: "
                  "completed records that a crash takes",
                  ["policy", "threads", "rate", "median", "p99", "max",
                   "bound"], rows) + _oversubscribed(
                       results, numbers) + _disturbed(results, "policies")


def _policy_row(results, candidate, number):
    row = [candidate, str(number),
           _rate(results, "policies", candidate,
                 {"metric": "throughput", "threads": number})]
    seen = results.distribution("policies", candidate, threads=number)
    if seen is None:
        return row + ["-"] * 4
    return row + [str(quantile(seen["counts"], 0.5)),
                  str(quantile(seen["counts"], 0.99)),
                  str(len(seen["counts"]) - 1),
                  str(seen["parameters"]["bound"])]


def stages(results):
    rows = [[m["candidate"], m["metric"], "%.1f" % m["median"],
             "%.1f" % m["min"], "%.1f" % m["max"]]
            for m in results.find("stages")]
    if not rows:
        return ""
    return table("Stages of one append of 1 KiB: ns, mean of the middle half of all records",
                  ["log", "stage", "ns", "lowest round", "highest round"],
                  rows)


def tenants(results):
    rows = []
    for size in results.values("tenants", "bytes"):
        floor = results.floor("tenants", bytes=size)
        rows.append([bytes_text(size), "%.3f" % (floor["median"] / 1e6)]
                    + [_rate(results, "tenants", candidate, {"bytes": size})
                       for candidate in LOGS])
    if not rows:
        return ""
    numbers = results.values("tenants", "threads")
    return table("%d tenants, a thread and a log each: million records/s of "
                  "all together" % numbers[-1],
                  ["record", "floor"] + list(LOGS),
                  rows) + _oversubscribed(results, numbers)


def recovery(results):
    columns = [("parts", "map"), ("parts", "pass from the file"),
               ("parts", "pass"), ("parts", "flush"), ("parts", "LogReader"),
               ("alpheus", "open"), ("alpheus", "iteration"),
               ("alpheus", "total"), ("flex", "total"),
               ("zero-init", "total"), ("libpmemlog", "total")]
    rows = []
    for m in results.find("recovery", "alpheus", "total"):
        where = m["parameters"]
        rows.append(["%d MiB" % where["log_mib"], bytes_text(where["bytes"])]
                    + [cell(results.median("recovery", who, metric, **where),
                             "%.2f") for who, metric in columns])
    if not rows:
        return ""
    names = {"pass from the file": "cold pass"}
    heads = ["alpheus " + metric if who == "alpheus" else
             who if metric == "total" else names.get(metric, metric)
             for who, metric in columns]
    return table("Recovery of a log that was not closed: ms", ["log", "record"]
                  + heads, rows) + touched_pages(results)


def touched_pages(results):
    """The time to touch a page first. It differs tenfold between machines and
    decides what recovery can take."""
    nanos = [m["median"] for m in results.find("recovery", "parts", "touch")]
    if not nanos:
        return ""
    return ("A page of a mapped file that is touched for the first time: "
            "%.0f to %.0f ns\n" % (min(nanos), max(nanos)))


def opening(results):
    metrics = ("after a crash", "after a close")
    rows = []
    for m in results.find("opening", "alpheus", metrics[0]):
        where = m["parameters"]
        rows.append(["%d MiB" % where["log_mib"], bytes_text(where["bytes"])]
                    + [cell(results.median("opening", "alpheus", metric,
                                           **where), "%.2f")
                       for metric in metrics])
    if not rows:
        return ""
    return table("Opening of a full log: ms", ["log", "record"]
                 + list(metrics), rows)


def skips(results):
    return "".join("skipped: %s, %s: %s\n"
                   % (skip["scenario"], skip["what"], skip["why"])
                   for skip in results.skips)
