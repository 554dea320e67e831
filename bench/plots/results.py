# SPDX-License-Identifier: Apache-2.0
"""The measurements of one run of a benchmark, and how to ask for them.

Ratios are taken round by round and then reduced to their median: samples of
equal index were taken in the same round, by turns.
"""

import json
import math
import statistics

SCHEMA_VERSION = 1
FLOOR_PREFIX = "floor-"
# Names of scenarios in results of older versions, and their names now.
OLDER_NAMES = {"rejoin": "resync"}
# A share of all cores' time while a scenario ran. On a quiet machine the host
# and other kernel work take 2 % to 6 %. More than that falls on some candidates
# and not on others, and then ratios say little.
OTHERS_MAX = 0.10


class Results:
    """One JSON file."""

    def __init__(self, data):
        if data.get("schema_version") != SCHEMA_VERSION:
            raise ValueError("schema_version %r is not %d: made by another "
                             "version of the benchmark"
                             % (data.get("schema_version"), SCHEMA_VERSION))
        _rename_older(data)
        self.data = data
        self.machine = data["machine"]
        self.cores = len(self.machine["cores"])
        self.skips = data["skips"]
        self._measurements = data["measurements"]
        self._distributions = data["distributions"]

    @staticmethod
    def load(path):
        with open(path, encoding="utf-8") as file:
            return Results(json.load(file))

    def find(self, scenario, candidate=None, metric=None, **parameters):
        """All measurements that match, in the order of the file."""
        return [m for m in self._measurements
                if _matches(m, scenario, candidate, metric, parameters)]

    def one(self, scenario, candidate, metric=None, **parameters):
        """The measurement that matches, or None."""
        found = self.find(scenario, candidate, metric, **parameters)
        if len(found) > 1:
            raise ValueError("ambiguous: %s %s" % (scenario, candidate))
        return found[0] if found else None

    def median(self, scenario, candidate, metric=None, **parameters):
        found = self.one(scenario, candidate, metric, **parameters)
        return found["median"] if found else None

    def distribution(self, scenario, candidate, **parameters):
        for found in self._distributions:
            if _matches(found, scenario, candidate, None, parameters):
                return found
        return None

    def values(self, scenario, parameter):
        """All values that a parameter takes in a scenario, sorted."""
        return sorted({m["parameters"][parameter]
                       for m in self.find(scenario)
                       if parameter in m["parameters"]})

    def floor(self, scenario, **parameters):
        """The cheapest of the floors, or None."""
        floors = [m for m in self.find(scenario, None, None, **parameters)
                  if m["candidate"].startswith(FLOOR_PREFIX)]
        if not floors:
            return None
        if floors[0]["unit"].endswith("/s"):
            return max(floors, key=lambda m: m["median"])
        return min(floors, key=lambda m: m["median"])

    def skips_of(self, scenario):
        return [skip for skip in self.skips if skip["scenario"] == scenario]


def _rename_older(data):
    """Gives scenarios, and the candidates called after them, their names of
    today."""
    for part in ("measurements", "distributions", "skips", "disturbances"):
        for entry in data.get(part, ()):
            older = entry["scenario"]
            if older not in OLDER_NAMES:
                continue
            entry["scenario"] = OLDER_NAMES[older]
            if "candidate" in entry:
                entry["candidate"] = entry["candidate"].replace(
                    older, OLDER_NAMES[older])


def _matches(found, scenario, candidate, metric, parameters):
    return (found["scenario"] == scenario
            and candidate in (None, found["candidate"])
            and metric in (None, found["metric"])
            and all(found["parameters"].get(name) == value
                    for name, value in parameters.items()))


class Ratio:
    """The ratio of two measurements: its median and range over the rounds."""

    def __init__(self, above, below):
        self.ratios = [a / b for a, b in zip(above["samples"],
                                             below["samples"])]
        self.median = statistics.median(self.ratios)
        self.low = min(self.ratios)
        self.high = max(self.ratios)
        self.rounds = len(self.ratios)


def ratio(above, below):
    """None if either is missing."""
    if above is None or below is None:
        return None
    return Ratio(above, below)


def disturbed(results):
    """By scenario, the shares of others that are too much to judge by."""
    return {d["scenario"]: d["share_of_others"]
            for d in results.data.get("disturbances", ())
            if d["share_of_others"] > OTHERS_MAX}


def difference(above, below):
    """The difference of two measurements, by round; None if one is missing."""
    if above is None or below is None:
        return None
    return {"samples": [a - b for a, b in zip(above["samples"],
                                              below["samples"])]}


def median_interval(samples, level=0.95):
    """(low, high): two of the samples that have the median of what they were
    drawn from between them with this confidence, whatever its distribution;
    the outermost ones where there are too few for that."""
    ordered = sorted(samples)
    count = len(ordered)
    below = 0
    outside = 2 / 2 ** count  # of the outermost
    while below + 1 < count - below - 1:
        further = outside + 2 * math.comb(count, below + 1) / 2 ** count
        if 1 - further < level:
            break
        outside = further
        below += 1
    return ordered[below], ordered[count - 1 - below]


def quantile(counts, share):
    """Smallest value such that `share` of what was counted is not above it."""
    below = 0
    needed = share * sum(counts)
    for value, count in enumerate(counts):
        below += count
        if below >= needed:
            return value
    return len(counts) - 1


def bytes_text(count):
    if count % 1024 == 0 and count > 0:
        return "%d KiB" % (count // 1024)
    return "%d B" % count
