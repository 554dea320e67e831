# SPDX-License-Identifier: Apache-2.0
"""A run of bench_ordered_store: throughput, commit latency and exposure of an
ordered store by log and force policy, and what the Arcadia paper says of its
Figure 10 (Masstree, beside Query Fresh), judged by this run.

Only statements of the paper's text are taken, no points read off its image.
"""

import claims
from claims import Claim
from comparisons import (Judge, by_name, compare, own_core_threads,
                         threads_text)
from results import Ratio, disturbed, ratio
from tables import skips, table

RATES = ("zipfian", "uniform")
COMMIT = "commit"
PEER = "query-fresh-group128"
GROUP = "alpheus-group128"
FREQUENCIES = ("alpheus-freq8", "alpheus-freq16")
POLICIES = ("alpheus",) + FREQUENCIES + (GROUP,)
LOGS = POLICIES + (PEER,)
CANDIDATES = ("unlogged",) + LOGS
FASTER_BY = 1.65
CLOSE_WITHIN = 0.25
WHY_SLOWER = ("most likely since a change costs the peer one atomic addition, "
              "a checksum and a copy into a buffer that the cache holds, and a "
              "group one flush of lines in a row; Alpheus brings each record "
              "past the cache by itself, and keeps account of it, which a fence "
              "as cheap as into DRAM does not pay back")


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


def judge(results):
    """All claims of the paper's text on Figure 10."""
    rates_judge = Judge(results, RATES[0], "10a")
    return [claim(rates_judge, results)
            for claim in (_up_to, _best, _group_beats_peer, _group_loses,
                          _peer_keeps)] + [_narrower(results)]


def _frequency_ratios(results, other):
    """(name, ratio) of the best frequency to another log."""
    for threads in own_core_threads(results, RATES[0]):
        found = [_ratio(results, name, other, threads)
                 for name in FREQUENCIES]
        if None not in found:
            yield (_threads(threads),
                   max(found, key=lambda ratio: ratio.median))


def _ratio(results, name, other, threads):
    return ratio(*(results.one(RATES[0], who, "throughput", threads=threads)
                   for who in (name, other)))


def _threads(count):
    return "%d thread%s" % (count, "" if count == 1 else "s")


def _note(results):
    numbers = own_core_threads(results, RATES[0])
    return threads_text(results, numbers[-1]) if numbers else ""


def _up_to(judge_rates, results):
    found = compare(_frequency_ratios(results, PEER),
                    lambda ratio: ratio >= FASTER_BY)
    return judge_rates.any_of(
        "the frequency-based policy is up to 65 % faster than Query Fresh",
        "a force frequency at least %.2fx the peer at one number of threads "
        "with a core each" % FASTER_BY,
        found, by_name(found), WHY_SLOWER, _note(results))


def _best(judge_rates, results):
    found = []
    for other in (GROUP, PEER):
        found += compare(
            (("%s than %s" % (threads, other), ratio)
             for threads, ratio in _frequency_ratios(results, other)),
            lambda ratio: ratio > 1)
    return judge_rates.all_of(
        "the frequency-based policy delivers the best performance",
        "a force frequency faster than group commit and the peer at each "
        "number of threads with a core each",
        found, by_name(found, "%s: %.2fx"), WHY_SLOWER, _note(results))


def _group_beats_peer(judge_rates, results):
    found = compare(
        ((_threads(n), _ratio(results, GROUP, PEER, n))
         for n in own_core_threads(results, RATES[0])),
        lambda ratio: ratio > 1)
    return judge_rates.all_of(
        "Query Fresh, too, commits by groups, with limited log concurrency: "
        "lower throughput than Arcadia",
        "Alpheus by groups of the same size faster at each number of threads "
        "with a core each",
        found, by_name(found), WHY_SLOWER, _note(results))


def _first_and_most(results):
    """Ratios of Alpheus by groups to the peer with one thread and with most
    that have a core each, or None."""
    numbers = own_core_threads(results, RATES[0])
    if len(numbers) < 2:
        return None
    found = [_ratio(results, GROUP, PEER, n)
             for n in (numbers[0], numbers[-1])]
    return None if None in found else found


def _change(pair):
    """The part of the first ratio that is left in the second, by round."""
    first, most = pair
    return Ratio({"samples": most.ratios}, {"samples": first.ratios})


def _to_peer(results, pair):
    numbers = own_core_threads(results, RATES[0])
    shared = ["%.2fx with %s" % (_ratio(results, GROUP, PEER, n).median,
                                 _threads(n))
              for n in threads_of(results, RATES[0]) if n > numbers[-1]]
    why = "%.2fx the peer with %s, %.2fx with %s" % (
        pair[0].median, _threads(numbers[0]),
        pair[1].median, _threads(numbers[-1]))
    return why + (" (sharing cores: %s)" % ", ".join(shared) if shared else "")


def _group_loses(judge_rates, results):
    pair = _first_and_most(results)
    found = [] if pair is None else compare(
        [("fall", _change(pair))], lambda ratio: ratio < 1) + compare(
            [("distance", pair[1])],
            lambda ratio: abs(ratio - 1) <= CLOSE_WITHIN)
    reason = ""
    if pair and pair[0].median < 1:
        reason = ("it is the slower one from one thread on: there is nothing to "
                  "bring down")
    return judge_rates.all_of(
        "at 8 and 16 threads synchronization brings Arcadia's group commit "
        "close to Query Fresh",
        "from one thread to most with a core each its ratio to the peer falls, "
        "to within %.0f %%" % (100 * CLOSE_WITHIN),
        found, pair and _to_peer(results, pair), reason, _note(results))


def _peer_keeps(judge_rates, results):
    pair = _first_and_most(results)
    found = [] if pair is None else compare(
        [("kept", _change(pair))], lambda ratio: ratio < 1)
    return judge_rates.all_of(
        "Query Fresh is less impacted by the synchronization of group commit",
        "from one thread to most with a core each Alpheus by groups keeps less "
        "of its rate than the peer of its own",
        found, pair and "%.2f of what the peer keeps" % found[0].median,
        "", _note(results))


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
        return Claim("10b", text, rule, None, "not measured in this run")
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
