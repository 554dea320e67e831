# SPDX-License-Identifier: Apache-2.0
"""A run of bench_ordered_store: throughput, commit latency and exposure of an
ordered store by log and force policy, and what the Arcadia paper says of its
Figure 10 (Masstree, beside Query Fresh), judged by this run.

Only statements of the paper's text are taken, no points read off its image.
"""

import claims
from claims import Claim
from results import ratio
from tables import table

RATES = ("zipfian", "uniform")
COMMIT = "commit"
PEER = "query-fresh-group128"
GROUP = "alpheus-group128"
FREQUENCIES = ("alpheus-freq8", "alpheus-freq16")
POLICIES = ("alpheus",) + FREQUENCIES + (GROUP,)
LOGS = POLICIES + (PEER,)
CANDIDATES = ("unlogged",) + LOGS
FASTER_BY = 1.65
# The share of the cores' time that others may have had.
OTHERS_MAX = 0.10
WHY_SLOWER = ("the peer's log pays one flush of whole buffers and one checksum "
              "a group, and nothing a record; Alpheus places, flushes and sums "
              "each record by itself, which DRAM makes the larger part: a fence "
              "saved is worth less here than on Optane")


def to_text(results):
    sections = [head(results)]
    sections += [rates(results, scenario) for scenario in RATES]
    sections += [latencies(results), exposures(results),
                 "Claims of the Arcadia paper\n" + claims.to_text(judge(results)),
                 skips(results)]
    return "\n".join(section for section in sections if section)


def head(results):
    machine = results.machine
    lines = ["%s; %d cores; %s" % (machine["cpu_model"], results.cores,
                                   machine["kernel"]),
             "commit %s, preset %s, %d rounds by turns, logs in %s"
             % (results.data["commit"], results.data["preset"],
                results.data["rounds"], results.data["folder"]),
             "threads above %d share cores" % results.cores]
    lines += ["VOID: %s: others had %.0f %% of the cores" % (name, 100 * share)
              for name, share in disturbed(results).items()]
    return "\n".join(lines) + "\n"


def disturbed(results):
    return {d["scenario"]: d["share_of_others"]
            for d in results.data.get("disturbances", [])
            if d["share_of_others"] > OTHERS_MAX}


def threads_of(results, scenario):
    return results.values(scenario, "threads")


def rates(results, scenario):
    numbers = threads_of(results, scenario)
    rows = []
    for name in CANDIDATES:
        found = [results.one(scenario, name, "throughput", threads=n)
                 for n in numbers]
        if not found or None in found:
            continue
        row = [name] + ["%.2f" % (m["median"] / 1e6) for m in found]
        if name in LOGS:
            row += ["%.2f" % ratio_to_peer(results, scenario, name, n)
                    for n in numbers]
        else:
            row += ["-"] * len(numbers)
        rows.append(row)
    if not rows:
        return ""
    counts = ["%d" % n for n in numbers]
    return table("Read-modify-writes, %s keys: million/s by number of threads, "
                 "then median ratio to %s" % (scenario, PEER),
                 [""] + counts + counts, rows)


def ratio_to_peer(results, scenario, name, threads):
    return ratio(results.one(scenario, name, "throughput", threads=threads),
                 results.one(scenario, PEER, "throughput",
                             threads=threads)).median


def latencies(results):
    return commit_table(
        results, ("p50", "p99"), lambda m: "%.2f" % (m["median"] / 1e3),
        "From the start of a change until it is durable, us: p50 by number of "
        "threads, then p99")


def exposures(results):
    return commit_table(
        results, ("exposed", "exposed max"), lambda m: "%.0f" % m["median"],
        "Changes that are written and not durable, as seen by who writes one: "
        "median, then highest",
        lambda m: "%.0f" % m["details"]["bound"])


def commit_table(results, metrics, form, title, last=None):
    numbers = threads_of(results, COMMIT)
    rows = []
    for name in LOGS:
        found = [results.one(COMMIT, name, metric, threads=n)
                 for metric in metrics for n in numbers]
        if not found or None in found:
            continue
        row = [name] + [form(m) for m in found]
        if last:
            row += [last(m) for m in found[-len(numbers):]]
        rows.append(row)
    if not rows:
        return ""
    counts = ["%d" % n for n in numbers]
    if last:
        title += ", then what is possible"
    return table(title, [""] + counts * (3 if last else 2), rows)


def skips(results):
    return "".join("skipped: %s, %s: %s\n" % (s["scenario"], s["what"],
                                              s["why"])
                   for s in results.skips)


def judge(results):
    """All claims of the paper's text on Figure 10."""
    return [_unless_disturbed(results, claim) for claim in (
        _up_to(results), _best(results), _group_beats_peer(results),
        _group_loses(results))] + [_narrower(results)]


def _unless_disturbed(results, claim):
    """Rates beside others that ran meanwhile decide nothing."""
    share = disturbed(results).get(RATES[0])
    if share is None or claim.reproduced is None:
        return claim
    return Claim(claim.figure, claim.text, claim.rule, None,
                 "others had %.0f %% of the cores; %s"
                 % (100 * share, claim.why))


def own_core_threads(results, scenario):
    """Numbers of threads that have a core each."""
    return [n for n in threads_of(results, scenario) if n <= results.cores]


def best_frequency(results, scenario, threads):
    return max(ratio_to_peer(results, scenario, name, threads)
               for name in FREQUENCIES)


def _not_measured(figure, text, rule):
    return Claim(figure, text, rule, None, "not measured in this run")


def _by_threads(found):
    return ", ".join("%.2fx at %d" % (value, threads)
                     for threads, value in found.items())


def _up_to(results):
    text = "the frequency-based policy is up to 65 % faster than Query Fresh"
    rule = ("a force frequency at least %.2fx the peer at the best number of "
            "threads with a core each" % FASTER_BY)
    numbers = own_core_threads(results, RATES[0])
    if not numbers:
        return _not_measured("10a", text, rule)
    found = {n: best_frequency(results, RATES[0], n) for n in numbers}
    why = _by_threads(found)
    reproduced = max(found.values()) >= FASTER_BY
    return Claim("10a", text, rule, reproduced,
                 why if reproduced else why + "; " + WHY_SLOWER)


def _best(results):
    text = "the frequency-based policy delivers the best performance"
    rule = ("a force frequency faster than group commit and the peer at each "
            "number of threads with a core each")
    numbers = own_core_threads(results, RATES[0])
    if not numbers:
        return _not_measured("10a", text, rule)
    lost = []
    for n in numbers:
        group = ratio_to_peer(results, RATES[0], GROUP, n)
        best = best_frequency(results, RATES[0], n)
        lost += ["%s at %d: %.2fx" % (name, n, best / other)
                 for name, other in ((GROUP, group), (PEER, 1.0))
                 if best <= other]
    return Claim("10a", text, rule, not lost, "fastest at all of them"
                 if not lost else "not faster than " + ", ".join(lost))


def _group_beats_peer(results):
    text = ("Query Fresh, too, commits by groups, with limited log "
            "concurrency: lower throughput than Arcadia")
    rule = ("Alpheus by groups of the same size faster at each number of "
            "threads with a core each")
    numbers = own_core_threads(results, RATES[0])
    if not numbers:
        return _not_measured("10a", text, rule)
    found = {n: ratio_to_peer(results, RATES[0], GROUP, n) for n in numbers}
    reproduced = min(found.values()) > 1
    why = _by_threads(found)
    if not reproduced:
        why += ("; the peer here has a buffer for each thread: what the paper "
                "says limits it is not in it")
    return Claim("10a", text, rule, reproduced, why)


def _group_loses(results):
    text = ("at 8 and 16 threads synchronization brings Arcadia's group commit "
            "close to Query Fresh")
    rule = "needs 8 cores"
    numbers = threads_of(results, RATES[0])
    if 8 not in numbers:
        return _not_measured("10a", text, rule)
    ratio_at_8 = ratio_to_peer(results, RATES[0], GROUP, 8)
    if results.cores < 8:
        return Claim("10a", text, rule, None,
                     "only %d cores; %.2fx with 8 threads"
                     % (results.cores, ratio_at_8))
    first = ratio_to_peer(results, RATES[0], GROUP, numbers[0])
    return Claim("10a", text, "at 8 threads nearer to the peer than at one",
                 abs(ratio_at_8 - 1) < abs(first - 1),
                 "%.2fx at %d, %.2fx at 8" % (first, numbers[0], ratio_at_8))


def _narrower(results):
    text = ("records are forced more often: a smaller vulnerability window than "
            "by group commit")
    rule = ("at each number of threads the window of F = 8 is below those of "
            "group commit and of the peer, and nothing measured is beyond its "
            "own")
    numbers = threads_of(results, COMMIT)
    found = {(name, n): results.one(COMMIT, name, "exposed max", threads=n)
             for name in (FREQUENCIES[0], GROUP, PEER) for n in numbers}
    if not found or None in found.values():
        return _not_measured("10b", text, rule)
    bounds = {key: m["details"]["bound"] for key, m in found.items()}
    wider = ["%d threads" % n for n in numbers
             if bounds[(FREQUENCIES[0], n)] >= min(bounds[(GROUP, n)],
                                                   bounds[(PEER, n)])]
    beyond = ["%s at %d" % key for key, m in found.items()
              if m["max"] > bounds[key]]
    last = numbers[-1]
    why = "with %d threads at most %d, %d and %d changes; seen %d, %d and %d" % (
        (last,) + tuple(bounds[(name, last)] for name in
                        (FREQUENCIES[0], GROUP, PEER))
        + tuple(found[(name, last)]["max"] for name in
                (FREQUENCIES[0], GROUP, PEER)))
    if wider:
        why += "; not smaller with " + ", ".join(wider)
    if beyond:
        why += "; beyond its own: " + ", ".join(beyond)
    return Claim("10b", text, rule, not wider and not beyond, why)
