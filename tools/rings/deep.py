#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deep: runs whole suites of checks and notes what came of them.

    deep.py [--list | --report] [--minutes M] [SUITE...]

Without names it runs each suite that has no valid entry in the ledger
(docs/results/deep.json), the cheapest first; with names those. Each ends with an
entry, so a run that is cut off goes on where it was. With --minutes it begins no
suite that would take longer than what is left. --report says which entries are
valid; its exit status is 1 while one is missing. Commit the ledger.

Called by `tools/dev deep`.
"""

import argparse
import datetime
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import child  # noqa: E402, beside this file
from ledger import Ledger, LedgerError, Tree  # noqa: E402, beside this file
from suites import SUITES  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
LEDGER = os.path.join(ROOT, "docs", "results", "deep.json")
COUNTS_MAX = 12


def machine():
    """Processor, cores and memory, as every Linux says them."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    pages, page = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return (f"{model.group(1) if model else 'unknown processor'}, "
            f"{os.cpu_count()} cores, {round(pages * page / 2**30)} GiB")


def state(suite, tree, ledger):
    """(what --report says of a suite, whether it is green and valid)."""
    entries = ledger.of(suite.name)
    if not entries:
        return "never run", False
    inputs = tree.inputs(suite.inputs)
    valid = [entry for entry in entries if entry["inputs"] == inputs]
    if not valid:
        return f"stale: what it is built from has changed since "\
            f"{entries[-1]['commit'][:8]}", False
    if valid[-1]["outcome"] != "ok":
        return f"FAILED at {valid[-1]['commit'][:8]}", False
    green = 0
    for entry in reversed(valid):
        if entry["outcome"] != "ok":
            break
        green += 1
    if green < suite.times:
        return f"ok {green} of {suite.times} times", False
    return f"ok at {valid[-1]['commit'][:8]}", True


def report(suites, tree, ledger):
    """Prints a line for each suite; the names of those that are not green."""
    missing = []
    for suite in suites:
        said, green = state(suite, tree, ledger)
        if not green:
            missing.append(suite.name)
        newest = ledger.of(suite.name)[-1:]
        took = f"{newest[0]['seconds']:6} s" if newest else f"{'':8}"
        print(f"{suite.name:<18} {took}  {said}")
        for entry in newest:
            for line in entry["counts"]:
                print(f"{'':<30}{line}")
    print(f"deep: {len(suites) - len(missing)} of {len(suites)} suites are green"
          " and valid")
    return missing


def run_commands(suite):
    """Runs them, showing what they print: (whether all were ok, counts)."""
    counts = []
    for command in suite.commands:
        print(f"deep: {suite.name}: {' '.join(command)}", flush=True)

        def show(line):
            print(line, flush=True)
            if re.search(suite.counts, line):
                counts.append(line.strip())

        status = child.run(command, ROOT, show)
        if status != 0:
            counts.append(f"{' '.join(command)}: status {status}")
            return False, counts
    # A run that was skipped, or that counts no more, vouches for nothing.
    if not counts:
        counts.append(f"nothing ran: no line matches {suite.counts}")
        print(f"deep: {suite.name}: {counts[0]}", flush=True)
        return False, counts
    return True, counts


def run(suite, tree, ledger):
    """Runs it and notes it; whether it was green."""
    changes = tree.changes(suite.inputs)
    if changes:
        raise LedgerError(
            f"{suite.name} would be of no commit: {len(changes)} of its files "
            f"are not committed, such as {changes[0]}")
    inputs, commit = tree.inputs(suite.inputs), tree.commit()
    start = time.monotonic()
    good, counts = run_commands(suite)
    if tree.inputs(suite.inputs) != inputs or tree.changes(suite.inputs):
        print(f"deep: {suite.name}: not noted, because its files changed while "
              "it ran", flush=True)
        return False
    now = datetime.datetime.now(datetime.timezone.utc)
    ledger.add({"suite": suite.name, "commit": commit, "inputs": inputs,
                "date": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "machine": machine(),
                "seconds": round(time.monotonic() - start),
                "outcome": "ok" if good else "failed",
                "counts": counts[-COUNTS_MAX:]}, suite.times)
    ledger.write()
    print(f"deep: {suite.name}: {'ok' if good else 'FAILED'}", flush=True)
    return good


def minutes_of(suite, ledger):
    """About how long it takes: what is said of it, or what its last run took
    if that was more. A run that had much cached says little of the next."""
    seconds = [entry["seconds"] for entry in ledger.of(suite.name)]
    return max([suite.minutes] + [last / 60 for last in seconds[-1:]])


def print_commit_of(name, ledger):
    """Prints where the suite was ok last; exit status 1 if it never was."""
    good = [entry["commit"] for entry in ledger.of(name)
            if entry["outcome"] == "ok"]
    if good:
        print(good[-1])
    return 0 if good else 1


def select(names):
    known = {suite.name: suite for suite in SUITES}
    for name in names:
        if name not in known:
            sys.exit(f"deep: no suite is called {name}; --list lists them")
    return [known[name] for name in names] if names else list(SUITES)


def run_all(chosen, named, minutes, tree, ledger):
    """Runs what is asked for or missing; whether all of it was green."""
    end = time.monotonic() + minutes * 60 if minutes else None
    green = True
    for suite in sorted(chosen, key=lambda suite: minutes_of(suite, ledger)):
        while named or not state(suite, tree, ledger)[1]:
            expected = minutes_of(suite, ledger)
            if end and time.monotonic() + expected * 60 > end:
                print(f"deep: {suite.name}: not begun, because it takes about "
                      f"{expected:.0f} minutes", flush=True)
                break
            if not run(suite, tree, ledger):
                green = False
                break
            if named:
                break
    return green


def main():
    parser = argparse.ArgumentParser(
        prog="tools/dev deep",
        description="Runs whole suites of checks, and notes what came of them.")
    parser.add_argument("names", nargs="*", metavar="SUITE",
                        help="suites; those without a valid entry if none is "
                             "named")
    parser.add_argument("--list", action="store_true",
                        help="list the suites and run nothing")
    parser.add_argument("--report", action="store_true",
                        help="say which entries of the ledger are valid")
    parser.add_argument("--commit-of", metavar="SUITE",
                        help="print the commit at which a suite was ok last")
    parser.add_argument("--minutes", type=float, metavar="M",
                        help="begin nothing that would not end within M minutes")
    arguments = parser.parse_args()
    chosen = select(arguments.names)
    if arguments.list:
        for suite in chosen:
            print(f"{suite.name:<18} {suite.minutes:4} min  {suite.what}")
        return 0
    try:
        tree, ledger = Tree(ROOT), Ledger(LEDGER)
        if arguments.commit_of:
            return print_commit_of(arguments.commit_of, ledger)
        if arguments.report:
            return 1 if report(chosen, tree, ledger) else 0
        green = run_all(chosen, bool(arguments.names), arguments.minutes, tree,
                        ledger)
        missing = report(chosen, tree, ledger)
        return 0 if green and (arguments.minutes or not missing) else 1
    except LedgerError as error:
        sys.exit(f"deep: {error}")


if __name__ == "__main__":
    # A reader that stops early, such as head, ends the program without a
    # message.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    child.end_by_signals()
    sys.exit(main())
