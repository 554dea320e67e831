#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deep: runs whole suites of checks and notes what came of them.

    deep.py [--list | --report] [--minutes M] [--whole] [SUITE...]

Without names it runs each suite that has no valid entry in the ledger
(docs/results/deep.json), the cheapest first; with names those. Each ends with an
entry, so a run that is cut off goes on where it was. Of a suite that ctest runs,
it runs the test programs whose inputs have changed since they were good, or whose
tests failed; with --whole all of them. With --minutes it begins no suite that
would take longer than what is left. --report says which entries are valid; its
exit status is 1 while one is missing. Commit the ledger.

Called by `tools/dev deep`.
"""

import argparse
import datetime
import os
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import child  # noqa: E402, beside this file
import ctest  # noqa: E402
import programs  # noqa: E402
from ledger import FAILED, Ledger, LedgerError, Tree  # noqa: E402
from suites import SUITES  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
LEDGER = os.path.join(ROOT, "docs", "results", "deep.json")
COUNTS_MAX = 12
MINUTES_TO_BUILD = 10


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
    if suite.tests and "programs" in entries[-1]:
        return state_by_program(suite, tree, entries[-1])
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


def state_by_program(suite, tree, entry):
    """The same of an entry that is kept by test program."""
    commit = entry["commit"][:8]
    same = entry["inputs"] == tree.inputs(suite.inputs)
    if same and entry["outcome"] == "ok":
        return f"ok at {commit}", True
    failed = [name for name, hash in entry["programs"].items() if hash == FAILED]
    if same:
        return f"FAILED at {commit}: {' '.join(failed)}", False
    stale = programs_to_run(suite, tree, entry)
    if stale is None:
        return (f"stale: a file has changed since {commit}; which programs are to "
                f"run is not known until {suite.tests.folder} or build is "
                "configured"), False
    if not stale and entry["outcome"] == "ok":
        return f"ok at {commit}; no program has changed since", True
    said = f"FAILED at {commit}: {' '.join(failed)};" if (
        entry["outcome"] != "ok") else f"stale since {commit}:"
    return (f"{said} {len(stale)} of {len(entry['programs'])} programs are to "
            "run"), False


def programs_to_run(suite, tree, entry):
    """The programs of an entry that have changed or failed; None if no folder is
    configured. One that is new has changed what cmake reads, and so all others."""
    known = programs.of_folder(tree, suite.inputs, suite.tests.folder)
    if known is None:
        return None
    return [name for name, hash in entry["programs"].items()
            if known.inputs(name) != hash]


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


def run_tests(suite, tree, last, whole):
    """Runs the programs that must run: (whether all is good now, counts, the
    entry's fields for tests). `last` are the programs of the entry before."""
    (command,) = suite.commands
    tests = suite.tests
    listed = ctest.tests_by_program(command, tests.folder, ROOT)
    known = programs.of_folder(tree, suite.inputs, tests.folder)
    if listed is None or known is None:
        return (False, [f"{' '.join(command)} -N: failed"],
                {"programs": last, "ran": ""})
    of_program = ctest.part(listed, tests.part, tests.parts)
    now = {name: known.inputs(name) for name in sorted(of_program)}
    ran = [name for name in now if whole or last.get(name) != now[name]]
    if not ran:
        return True, ["nothing ran: no program has changed"], {
            "programs": now, "ran": ""}
    chosen = [test for name in ran for test in of_program[name]]
    print(f"deep: {suite.name}: {len(ran)} of {len(now)} programs, "
          f"{len(chosen)} tests: {' '.join(ran)}", flush=True)
    # A few tests get the load that many would give each other.
    at_once = tests.load * os.cpu_count()
    loops = at_once - 1 if len(chosen) < 2 * at_once else 0
    with tempfile.TemporaryDirectory(prefix="alpheus-deep-") as folder:
        told = os.path.join(folder, "tests.xml")
        arguments = ["--output-junit", told]
        if len(ran) < len(listed):
            arguments += ctest.selection(chosen)
        with child.busy_loops(loops):
            good, counts = run_commands(suite, arguments)
        passed = ctest.good_tests(told)
    failed = {name for name in ran if not passed.issuperset(of_program[name])}
    # No test failed: something else did, so no test is vouched for.
    if not good and not failed:
        failed = set(ran)
    return good and not failed, counts, {
        "programs": {name: FAILED if name in failed else now[name]
                     for name in now}, "ran": " ".join(ran)}


def run_commands(suite, arguments=()):
    """Runs them, showing what they print: (whether all were ok, counts)."""
    counts = []
    for command in suite.commands:
        print(f"deep: {suite.name}: {' '.join(command)}", flush=True)

        def show(line):
            print(line, flush=True)
            if re.search(suite.counts, line):
                counts.append(line.strip())

        status = child.run([*command, *arguments], ROOT, show)
        if status != 0:
            counts.append(f"{' '.join(command)}: status {status}")
            return False, counts
    # A run that was skipped, or that counts no more, vouches for nothing.
    if not counts:
        counts.append(f"nothing ran: no line matches {suite.counts}")
        print(f"deep: {suite.name}: {counts[0]}", flush=True)
        return False, counts
    return True, counts


def run(suite, tree, ledger, whole=False):
    """Runs it and notes it; whether it was green. With `whole` it runs all test
    programs, whatever is known of them."""
    changes = tree.changes(suite.inputs)
    if changes:
        raise LedgerError(
            f"{suite.name} would be of no commit: {len(changes)} of its files "
            f"are not committed, such as {changes[0]}")
    inputs, commit = tree.inputs(suite.inputs), tree.commit()
    start = time.monotonic()
    if suite.tests:
        last = (ledger.of(suite.name) or [{}])[-1]
        good, counts, of_tests = run_tests(suite, tree, last.get("programs", {}),
                                           whole)
        if good and not of_tests["ran"] and last.get("outcome") == "ok":
            print(f"deep: {suite.name}: nothing ran, no program has changed since "
                  f"{last['commit'][:8]}; --whole runs all", flush=True)
            return True
    else:
        (good, counts), of_tests = run_commands(suite), {}
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
                "counts": counts[-COUNTS_MAX:], **of_tests}, suite.times)
    ledger.write()
    print(f"deep: {suite.name}: {'ok' if good else 'FAILED'}", flush=True)
    return good


def minutes_of(suite, tree, ledger, whole=False):
    """About how long it takes: what is said of it, or what its last run took
    if that was more. A run that had much cached says little of the next. Of a
    suite whose test programs run in part, so much of that, and some to build."""
    entries = ledger.of(suite.name)
    minutes = max([suite.minutes] + [last["seconds"] / 60
                                     for last in entries[-1:]])
    if whole or not entries or "programs" not in entries[-1]:
        return minutes
    stale, known = programs_to_run(suite, tree, entries[-1]), entries[-1]["programs"]
    if stale is None or not known:
        return minutes
    return min(minutes, MINUTES_TO_BUILD + minutes * len(stale) / len(known))


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


def run_all(chosen, named, minutes, whole, tree, ledger):
    """Runs what is asked for or missing; whether all of it was green."""
    end = time.monotonic() + minutes * 60 if minutes else None
    green = True
    for suite in sorted(chosen, key=lambda suite: minutes_of(
            suite, tree, ledger, whole)):
        while named or not state(suite, tree, ledger)[1]:
            expected = minutes_of(suite, tree, ledger, whole)
            if end and time.monotonic() + expected * 60 > end:
                print(f"deep: {suite.name}: not begun, because it takes about "
                      f"{expected:.0f} minutes", flush=True)
                break
            if not run(suite, tree, ledger, whole):
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
    parser.add_argument("--whole", action="store_true",
                        help="run all test programs of a suite, not only those "
                             "that have changed or failed")
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
        green = run_all(chosen, bool(arguments.names), arguments.minutes,
                        arguments.whole, tree, ledger)
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
