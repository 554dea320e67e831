# SPDX-License-Identifier: Apache-2.0
"""Claims that come down to ratios of two measurements, each beside a limit.

The median of the rounds' ratios decides. If others had the cores, too, that is
not enough: a claim is then decided only where all rounds are on one side. The
paper's threads have a core each, 16 of them; here those numbers of threads are
judged that have a core each, and the verdict says how many that are.
"""

from claims import Claim
from results import disturbed

PAPER_THREADS = 16


class Comparison:
    """A ratio, what it is of, and whether it is on the wanted side."""

    def __init__(self, name, ratio, holds):
        self.name = name
        self.median = ratio.median
        self.holds = holds(ratio.median)
        self.rounds_agree = all(holds(r) == self.holds for r in ratio.ratios)


def compare(pairs, holds):
    """The pairs (name, ratio) whose ratio was measured."""
    return [Comparison(name, ratio, holds) for name, ratio in pairs
            if ratio is not None]


def own_core_threads(results, scenario):
    """Numbers of threads that have a core each, at most the paper's; the least
    one if none has."""
    numbers = results.values(scenario, "threads")
    own = [n for n in numbers if n <= min(results.cores, PAPER_THREADS)]
    return own or numbers[:1]


def threads_text(results, threads):
    """Empty where it is as in the paper."""
    if threads == PAPER_THREADS and results.cores >= PAPER_THREADS:
        return ""
    return "%d thread%s on %d core%s, not %d on %d" % (
        threads, "" if threads == 1 else "s", results.cores,
        "" if results.cores == 1 else "s", PAPER_THREADS, PAPER_THREADS)


def by_name(found, form="%s: %.2fx"):
    return "; ".join(form % (c.name, c.median) for c in found)


class Judge:
    """Makes claims of one figure from one scenario of a run."""

    def __init__(self, results, scenario, figure):
        self._others = disturbed(results).get(scenario)
        self._figure = figure

    def all_of(self, text, rule, found, why, reason="", note=""):
        """Reproduced if each comparison holds; `reason`: why not."""
        return self._claim(all, text, rule, found, why, reason, note)

    def any_of(self, text, rule, found, why, reason="", note=""):
        """Reproduced if one comparison holds."""
        return self._claim(any, text, rule, found, why, reason, note)

    def _claim(self, needed, text, rule, found, why, reason, note):
        if not found:
            return Claim(self._figure, text, rule, None,
                         "not measured in this run")
        reproduced = needed(c.holds for c in found)
        is_certain = _is_certain(needed, reproduced, found)
        if self._others is not None and not is_certain:
            reproduced = None
        parts = [why]
        if reproduced is False and reason:
            parts.append(reason)
        if note:
            parts.append(note)
        if self._others is not None:
            parts.append("others had %.0f %% of the cores, %s" % (
                100 * self._others, "but all rounds agree" if is_certain
                else "and rounds disagree"))
        return Claim(self._figure, text, rule, reproduced, "; ".join(parts))


def _is_certain(needed, reproduced, found):
    """Where one comparison decides, one that does in all rounds; else all."""
    if (needed is any) == reproduced:
        return any(c.rounds_agree for c in found if c.holds == reproduced)
    return all(c.rounds_agree for c in found)
