# SPDX-License-Identifier: Apache-2.0
"""simulation: mutants that seeds of the simulator must kill.

`alpheus-sim` runs seeds 1 to N under a mutant until one violates anything. The
first violation must be of an invariant that simulated.txt, beside this file,
names for the mutant: not a crash, and nothing of another hole. The canaries of
the simulator run first, without a mutant: where those pass, no checker is
alive, and nothing is said of mutants.
"""

import collections
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import time

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "simulated.txt")
PROGRAM = "alpheus-sim"

# A kill takes a few seeds; a survivor costs all of them.
SEEDS = 1000
# A mutant may make each seed spin until it is ended, after 20 seconds.
SECONDS = 600

CANARIES = (
    # Without damage, whose budget goes by W.
    ("early-durable", "P-INV-22", ("--nodes", "3", "--write-quorum", "2",
                                 "--workload", "wal", "--faults",
                                 "kill-primary,power-cut,isolate",
                                 "--actors", "none")),
    # Which check notices first depends on which one looks first.
    ("lost-fences", "", ("--nodes", "1", "--faults", "power-cut",
                         "--actors", "none")),
    ("no-budget", "", ("--nodes", "3", "--write-quorum", "2", "--faults",
                       "roll-back-region,flip-bit,blank-region",
                       "--actors", "none")),
    ("small-core", "P-C8", ("--nodes", "3", "--write-quorum", "2", "--faults",
                          "kill-primary,kill-node,isolate",
                          "--actors", "none")),
    ("deaf-tail", "P-C2", ("--actors", "tail")),
    ("trusted-client", "P-H17", ("--nodes", "3", "--actors", "unauthenticated")),
    ("old-quorum", "P-INV-22", ("--nodes", "3", "--write-quorum", "1",
                              "--actors", "operator")),
    ("bad-repair", "P-A8", ("--nodes", "3", "--write-quorum", "2", "--faults",
                          "flip-bit,poison", "--actors", "scrub")),
    ("wrong-platform", "P-INV-22", ("--nodes", "3", "--write-quorum", "2",
                                  "--platform", "dmp,infiniband",
                                  "--workload", "wal", "--faults",
                                  "kill-primary,power-cut,isolate",
                                  "--actors", "none")),
    ("idle-sync", "WST1", ("--nodes", "3", "--write-quorum", "2", "--workload",
                         "rocksdb", "--faults",
                         "kill-primary,power-cut,power-cut-all",
                         "--actors", "none")),
    ("early-switch", "WST2", ("--nodes", "3", "--write-quorum", "2",
                            "--workload", "rocksdb", "--faults",
                            "kill-primary,power-cut,power-cut-all",
                            "--actors", "none")),
)
# Ends that say nothing of an invariant.
NO_INVARIANTS = ("CRASH", "HUNG", "CHECK", "")

Simulated = collections.namedtuple("Simulated", "name invariants options")
# `seed`: the first one that violates anything, or 0. `seeds`: how many ran.
Found = collections.namedtuple("Found", "seed invariant what seeds seconds")


def read_table(path=TABLE):
    entries = []
    with open(path, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if len(words) < 2 or not re.fullmatch(r"k\w+", words[0]):
                sys.exit(f"{path}:{number}: an entry is not NAME INVARIANTS "
                         "[OPTIONS]")
            invariants = words[1].split(",")
            if any(name in NO_INVARIANTS for name in invariants):
                sys.exit(f"{path}:{number}: {words[1]} is no invariant")
            entries.append(Simulated(words[0], invariants, words[2:]))
    return entries


def select(table, mutants):
    """The entries of these mutants; ends the program if one has none."""
    names = {mutant.name for mutant in mutants}
    return [entry for entry in table if entry.name in names]


def invariant_of(violation):
    """The violated invariant; of a failed check, the one that its text names:
    FILE:INVARIANT."""
    if violation["invariant"] != "CHECK":
        return violation["invariant"]
    named = re.search(r": (\w+)(?: and \w+)? \((\w+\.h)\)$",
                      violation["what"].splitlines()[-1])
    return f"{named.group(2)}:{named.group(1)}" if named else "CHECK"


def simulate(folder, mutant, seeds, options):
    """Runs seeds until one fails."""
    command = [os.path.join(folder, "bin", PROGRAM), "--seeds", f"1-{seeds}",
               "--jobs", "1", "--no-shrink", "--json", *options]
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, env={**os.environ, "ALPHEUS_MUTANT": mutant}, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Found(1, "HUNG", "the seeds take too long", 0, SECONDS)
    took = time.monotonic() - start
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    totals = [line for line in lines if "seeds" in line]
    if not totals:
        return Found(1, "CRASH", done.stderr.strip(), 0, took)
    ran = totals[-1]["seeds"]
    for line in lines:
        if "invariant" in line:
            return Found(line["seed"], invariant_of(line), line["what"], ran,
                         took)
    return Found(0, "", "", ran, took)


def canaries_fail(folder):
    alive = True
    for name, invariant, options in CANARIES:
        found = simulate(folder, "", 20, ("--canary", name, *options))
        good = (found.invariant not in NO_INVARIANTS and
                invariant in ("", found.invariant))
        alive &= good
        print(f"canary {name}: {'' if good else 'NOT '}seen"
              f"{' by ' + found.invariant if found.seed else ''}", flush=True)
    return alive


def verdict(entry, found):
    if not found.seed:
        return "SURVIVED"
    return "killed" if found.invariant in entry.invariants else "OTHERWISE"


def print_found(name, word, found):
    by = f"{found.invariant}: {found.what}".splitlines()[0] if found.seed else ""
    print(f"{name:<26} {word:<9} {found.seeds:4} seeds {found.seconds:6.2f} s  "
          f"{by[:160]}", flush=True)


def each(jobs, function, items):
    """Yields (item, result) in the order of items, `jobs` at a time."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from zip(items, pool.map(function, items))


def kill_all(folder, jobs, table, seeds):
    """Prints a line per mutant and what it came to; true if one is left."""
    if not canaries_fail(folder):
        return True
    by = collections.Counter()
    needed = []
    results = each(jobs, lambda entry: simulate(folder, entry.name, seeds,
                                                entry.options), table)
    for entry, found in results:
        word = verdict(entry, found)
        print_found(entry.name, word, found)
        if word == "killed":
            by[found.invariant] += 1
            needed.append(found.seeds)
    print("by " + ", ".join(f"{name} {count}"
                            for name, count in by.most_common()))
    median = statistics.median(needed) if needed else 0
    print(f"mutants in the simulator: {len(needed)}/{len(table)} killed, after "
          f"{median:g} seeds in the median, {max(needed, default=0)} at most",
          flush=True)
    return len(needed) != len(table)


def explore(folder, jobs, mutants, seeds):
    """Tries mutants whatever the table says."""
    options = {entry.name: entry.options for entry in read_table()}
    results = each(jobs, lambda mutant: simulate(
        folder, mutant.name, seeds, options.get(mutant.name, ())), mutants)
    killed = 0
    for mutant, found in results:
        seen = found.seed and found.invariant not in NO_INVARIANTS
        killed += 1 if seen else 0
        print_found(f"{mutant.name} {mutant.hole}",
                    "seen" if seen else "ended" if found.seed else "survived",
                    found)
    print(f"mutants in the simulator: {killed}/{len(mutants)} seen")
    return 0
