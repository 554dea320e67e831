# SPDX-License-Identifier: Apache-2.0
"""The Arcadia paper's claims about its figures, judged by this run.

Only statements of the paper's text and captions are taken, no points read off
its images. Each has a rule, stated with it, that decides from the data alone:
reproduced, not reproduced, or not judged where the run lacks what it needs.
"""

from results import bytes_text, quantile, ratio

LOGS = ("alpheus", "libpmemlog", "flex")
FLAT_WITHIN = 0.25
SIMILAR_WITHIN = 1.5
CONVERGED_WITHIN = 1.5
FAST_FACTOR = 2.0
LOSS_AT_16_THREADS = 0.30
MUCH_MORE = 1.5


class Claim:
    """One statement of the paper and how it fared here."""

    def __init__(self, figure, text, rule, reproduced, why):
        self.figure = figure
        self.text = text              # what the paper says
        self.rule = rule              # when it counts as reproduced
        self.reproduced = reproduced  # None: not judged
        self.why = why                # figures of this run

    @property
    def word(self):
        return {True: "reproduced", False: "not reproduced",
                None: "not judged"}[self.reproduced]


def judge(results):
    """All claims, in the order of the figures."""
    claims = []
    for judge_figure in (_figure_5a, _figure_5b, _figure_5c, _figure_5d,
                         _figure_7a, _figure_8a, _figure_8b, _figure_8cd):
        claims.extend(judge_figure(results))
    return claims


def to_text(claims):
    lines = []
    for claim in claims:
        lines.append("%-4s %-14s  %s" % (claim.figure, claim.word, claim.text))
        lines.append("%20s rule: %s" % ("", claim.rule))
        lines.append("%20s here: %s" % ("", claim.why))
    return "\n".join(lines) + "\n"


def _not_measured(figure, text, rule):
    return Claim(figure, text, rule, None, "not measured in this run")


def _figure_5a(results):
    sizes = results.values("append", "bytes")
    yield _lowest_latency(results, sizes)
    for candidate, name, factor in (("libpmemlog", "PMDK", 6),
                                    ("flex", "FLEX", 8)):
        yield _up_to(results, sizes, candidate, name, factor)
    text = "FLEX performs the worst"
    rule = "FLEX slowest at every size"
    if not sizes:
        yield _not_measured("5a", text, rule)
        return
    others = [(size, max((c for c in LOGS), key=lambda c: results.median(
        "append", c, bytes=size))) for size in sizes]
    slower = [bytes_text(size) + " " + c for size, c in others if c != "flex"]
    yield Claim("5a", text, rule, not slower,
                "slowest at all sizes" if not slower
                else "another is slower at " + ", ".join(slower))


def _lowest_latency(results, sizes):
    text = "Arcadia has the lowest latency of all three designs"
    rule = "fastest of Alpheus, libpmemlog and FLEX at every size"
    if not sizes:
        return _not_measured("5a", text, rule)
    lost = [size for size in sizes
            if min(LOGS, key=lambda c: results.median("append", c, bytes=size))
            != "alpheus"]
    why = "fastest at all %d sizes" % len(sizes)
    if lost:
        why = "not at " + ", ".join(bytes_text(size) for size in lost)
    return Claim("5a", text, rule, not lost, why)


def _up_to(results, sizes, candidate, name, factor):
    text = "up to %dx faster than %s" % (factor, name)
    rule = "at least %dx at the best size" % factor
    if not sizes:
        return _not_measured("5a", text, rule)
    found = {size: ratio(results.one("append", candidate, bytes=size),
                         results.one("append", "alpheus", bytes=size)).median
             for size in sizes}
    best = max(found, key=found.get)
    why = "up to %.1fx, at %s" % (found[best], bytes_text(best))
    if found[best] < factor:
        why += ("; a fence into DRAM costs a fraction of one into Optane, so "
                "fences saved gain less")
    return Claim("5a", text, rule, found[best] >= factor, why)


def persist_stages(results):
    """ns that each log spends on making its bytes persistent, of 1 KiB."""
    def total(candidate, metrics):
        found = [results.median("stages", candidate, m) for m in metrics]
        return None if None in found else sum(found)
    append = total("libpmemlog", ["append"])
    copy = total("libpmemlog", ["copy alone"])
    return {
        "alpheus": total("alpheus", ["force"]),
        "flex": total("flex", ["persist header", "persist payload",
                               "persist tail"]),
        "libpmemlog": None if append is None else append - copy}


def _figure_5b(results):
    text = "flushing takes much more time in FLEX and PMDK"
    rule = "persist stage of both at least %.1fx that of Alpheus" % MUCH_MORE
    found = persist_stages(results)
    if None in found.values():
        yield _not_measured("5b", text, rule)
        return
    least = min(found["flex"], found["libpmemlog"])
    yield Claim("5b", text, rule, least >= MUCH_MORE * found["alpheus"],
                "persist: Alpheus %.0f ns, FLEX %.0f ns, libpmemlog %.0f ns "
                "(all but its copy)" % (found["alpheus"], found["flex"],
                                        found["libpmemlog"]))
    text = "Arcadia is much faster as a whole despite computing checksums"
    rule = "append of 1 KiB at least %.1fx faster than both" % MUCH_MORE
    append = {c: results.median("append", c, bytes=1024) for c in LOGS}
    if None in append.values():
        yield _not_measured("5b", text, rule)
        return
    least = min(append["flex"], append["libpmemlog"])
    yield Claim("5b", text, rule, least >= MUCH_MORE * append["alpheus"],
                "Alpheus %.0f ns, FLEX %.0f ns, libpmemlog %.0f ns"
                % (append["alpheus"], append["flex"], append["libpmemlog"]))


def _figure_5c(results):
    sizes = results.values("threads", "bytes")
    numbers = results.values("threads", "threads")
    size = 1024 if 1024 in sizes else (sizes[0] if sizes else None)
    for candidate, name in (("flex", "FLEX"), ("libpmemlog", "PMDK")):
        text = "%s has a flat curve" % name
        rule = ("every number of threads within %d %% of one thread"
                % (100 * FLAT_WITHIN))
        if size is None:
            yield _not_measured("5c", text, rule)
            continue
        one = results.one("threads", candidate, bytes=size, threads=1)
        found = {n: ratio(results.one("threads", candidate, bytes=size,
                                      threads=n), one).median for n in numbers}
        worst = max(found, key=lambda n: abs(found[n] - 1))
        yield Claim("5c", text, rule, abs(found[worst] - 1) <= FLAT_WITHIN,
                    "%.2fx at %d threads, %s"
                    % (found[worst], worst, bytes_text(size)))
    yield _peak_at_four(results, size, numbers)


def _peak_at_four(results, size, numbers):
    text = "Arcadia's throughput is at its maximum with 4 threads"
    rule = "4 threads fastest of all; needs 4 cores"
    if size is None:
        return _not_measured("5c", text, rule)
    rates = {n: results.median("threads", "alpheus", bytes=size, threads=n)
             for n in numbers}
    best = max(rates, key=rates.get)
    why = "best with %d, %.2fx one thread" % (best, rates[best] / rates[1])
    if results.cores < 4:
        return Claim("5c", text, rule, None, "only %d cores; %s"
                     % (results.cores, why))
    return Claim("5c", text, rule, best == 4, why)


def _figure_5d(results):
    sizes = results.values("tenants", "bytes")
    best_text = "Arcadia performs the best in all cases"
    best_rule = "fastest of Alpheus, libpmemlog and FLEX at every size"
    limit_text = "with larger records all logs converge to one limit"
    limit_rule = ("fastest over slowest smaller at the largest size than at "
                  "the smallest, and at most %.1f" % CONVERGED_WITHIN)
    amplified_text = "fewer records/s at 64 B than at 128 B"
    amplified_rule = "every round at 64 B below every round at 128 B"
    if not sizes:
        yield _not_measured("5d", best_text, best_rule)
        yield _not_measured("5d", limit_text, limit_rule)
        yield _not_measured("5d", amplified_text, amplified_rule)
        return
    rates = {size: {c: results.median("tenants", c, bytes=size) for c in LOGS}
             for size in sizes}
    lost = [s for s in sizes if max(LOGS, key=rates[s].get) != "alpheus"]
    yield Claim("5d", best_text, best_rule, not lost,
                "fastest at all %d sizes" % len(sizes) if not lost
                else "not at " + ", ".join(map(bytes_text, lost)))
    spread = {s: max(rates[s].values()) / min(rates[s].values())
              for s in sizes}
    first, last = spread[sizes[0]], spread[sizes[-1]]
    yield Claim("5d", limit_text, limit_rule,
                last < first and last <= CONVERGED_WITHIN,
                "fastest over slowest %.1f at %s, %.1f at %s"
                % (first, bytes_text(sizes[0]), last, bytes_text(sizes[-1])))
    if 64 not in sizes or 128 not in sizes:
        yield _not_measured("5d", amplified_text, amplified_rule)
        return
    small = results.one("tenants", "alpheus", bytes=64)
    larger = results.one("tenants", "alpheus", bytes=128)
    below = small["max"] < larger["min"]
    yield Claim("5d", amplified_text, amplified_rule, below,
                "64 B has %.2fx the rate of 128 B%s" % (
                    small["median"] / larger["median"], "" if below else
                    ", within the noise; DRAM has no 256-byte blocks to "
                    "amplify writes"))


def _figure_7a(results):
    logs = [m["parameters"]["log_mib"] for m in results.find(
        "recovery", "alpheus", "total", bytes=1024)]
    similar = ("Arcadia and FLEX have similar performance",
               "within %.1fx of each other at every log size" % SIMILAR_WITHIN)
    linear = ("latency increases linearly with log size",
              "ms per MiB of the largest log within 25 % of the median of all")
    fast = ("PMDK recovers fastest, as it verifies nothing",
            "at least %.0fx faster than Alpheus at every log size"
            % FAST_FACTOR)
    within = ("a log of 256 MB recovers within 500 ms",
              "256 MiB within 500 ms (the paper: with the primary copy lost)")
    if not logs:
        for text, rule in (similar, linear, fast, within):
            yield _not_measured("7a", text, rule)
        return
    def total(candidate, log_mib):
        return results.median("recovery", candidate, "total", bytes=1024,
                              log_mib=log_mib)
    flex = {n: total("alpheus", n) / total("flex", n) for n in logs}
    worst = max(flex, key=lambda n: max(flex[n], 1 / flex[n]))
    yield Claim("7a", *similar, 1 / SIMILAR_WITHIN <= flex[worst]
                <= SIMILAR_WITHIN, "Alpheus takes %.2fx FLEX's time at %d MiB"
                % (flex[worst], worst))
    per_mib = sorted(total("alpheus", n) / n for n in logs)
    middle = per_mib[len(per_mib) // 2]
    last = total("alpheus", logs[-1]) / logs[-1]
    yield Claim("7a", *linear, abs(last / middle - 1) <= 0.25,
                "%.2f ms per MiB at %d MiB, median %.2f"
                % (last, logs[-1], middle))
    pmdk = {n: total("alpheus", n) / total("libpmemlog", n) for n in logs}
    least = min(pmdk, key=pmdk.get)
    yield Claim("7a", *fast, pmdk[least] >= FAST_FACTOR,
                "libpmemlog at least %.0fx faster" % pmdk[least])
    if 256 not in logs:
        yield _not_measured("7a", *within)
        return
    yield Claim("7a", *within, total("alpheus", 256) <= 500,
                "%.0f ms, local" % total("alpheus", 256))


def _figure_8a(results):
    numbers = results.values("policies", "threads")
    loss = ("group commit loses 30 % of its throughput at 16 threads",
            "both groups at 16 threads at least 30 % below their best; needs "
            "16 cores")
    scale = ("frequency is much more scalable than group commit",
             "with most threads, as share of its own best, each frequency "
             "keeps more than its group")
    if not numbers:
        yield _not_measured("8a", *loss)
        yield _not_measured("8a", *scale)
        return
    most = numbers[-1]
    kept = {}
    for candidate in ("alpheus-freq8", "alpheus-freq16", "alpheus-group128",
                      "alpheus-group256"):
        rates = [results.median("policies", candidate, "throughput",
                                threads=n) for n in numbers]
        kept[candidate] = rates[-1] / max(rates)
    groups = [kept["alpheus-group128"], kept["alpheus-group256"]]
    why = "with %d threads groups keep %.0f %% and %.0f %% of their best" % (
        most, 100 * groups[0], 100 * groups[1])
    lost = max(groups) <= 1 - LOSS_AT_16_THREADS
    if results.cores < 16:
        yield Claim("8a", *loss, None, "only %d cores, so threads take turns "
                    "instead of racing; %s" % (results.cores, why))
    else:
        yield Claim("8a", *loss, most >= 16 and lost, why)
    better = (kept["alpheus-freq8"] > groups[0]
              and kept["alpheus-freq16"] > groups[1])
    yield Claim("8a", *scale, better,
                "%s; frequencies 8 and 16 keep %.0f %% and %.0f %%"
                % (why, 100 * kept["alpheus-freq8"],
                   100 * kept["alpheus-freq16"]))


def _figure_8b(results):
    text = "group commit has much higher L1d miss rates"
    rule = ("with most threads, groups miss at least %.1fx as often as "
            "frequencies" % MUCH_MORE)
    found = results.find("policies", None, "L1d read misses")
    if not found:
        reasons = [skip["why"] for skip in results.skips_of("policies")
                   if skip["what"] == "L1d read misses"]
        why = "skipped: " + reasons[0] if reasons else "not measured"
        yield Claim("8b", text, rule, None, why)
        return
    most = max(m["parameters"]["threads"] for m in found)
    misses = {m["candidate"]: m["median"] for m in found
              if m["parameters"]["threads"] == most}
    groups = min(misses["alpheus-group128"], misses["alpheus-group256"])
    rare = max(misses["alpheus-freq8"], misses["alpheus-freq16"])
    yield Claim("8b", text, rule, groups >= MUCH_MORE * rare,
                "groups miss %.1f times a record at least, frequencies %.1f "
                "times at most, %d threads" % (groups, rare, most))


def _figure_8cd(results):
    return windows(results, "policies")


def windows(results, scenario):
    numbers = results.values(scenario, "threads")
    most = numbers[-1] if numbers else 0
    for figure, frequency in (("8c", 8), ("8d", 16)):
        text = ("with frequency %d the vulnerability window is far below its "
                "bound" % frequency)
        rule = ("with most threads, median at most a quarter of F x T and "
                "never more than F x T")
        found = results.distribution(scenario, "alpheus-freq%d" % frequency,
                                     threads=most)
        if found is None:
            yield _not_measured(figure, text, rule)
            continue
        counts, bound = found["counts"], found["parameters"]["bound"]
        middle, top = quantile(counts, 0.5), len(counts) - 1
        yield Claim(figure, text, rule, 4 * middle <= bound and top <= bound,
                    "median %d, p99 %d, highest %d; bound %d x %d = %d"
                    % (middle, quantile(counts, 0.99), top, frequency, most,
                       bound))
