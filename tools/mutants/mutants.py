#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants: takes the fix of each known hole out and sees whether its test fails.

The tables in tests/mutants list the mutants, each with the test of its hole's
invariant (weave.py, beside this file). First these tests run as they are and
must pass; then each runs with its mutant switched on and must fail: the mutant
is killed. One that survives its own test is tried on those of all others, to
tell which ones see it; it counts as a hole in the tests all the same. Exit
status 1 if there is one.

Then seeds of the simulator run under each mutant that simulated.txt names
(simulation.py, beside this file).

Called by `tools/dev mutants`, which builds the programs.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simulation  # noqa: E402, beside this file
import weave  # noqa: E402, beside this file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# A test that sees the mutant fails in a moment. A test that spins counts as seeing
# it, too, and is reported as such. These are seconds of processor time: a busy
# machine must not make a test that is held up look like one that spins.
KILL_SECONDS = 60
PASS_SECONDS = 300
OTHERS_SECONDS = 5
# A test that only waits is ended then, and has seen nothing.
WAIT_SECONDS = 1200

# The exhaustive suites stop at two operations here.
BOUNDS = {"ALPHEUS_TINY_LOG_OPS": "2"}

# killed_by is empty if all passed; how is "failed", "died", "hung" (it used up its
# processor time), "waits" or "idle" (it ran no test). Those two kill nothing.
Outcome = collections.namedtuple("Outcome", "killed_by how seconds output")


def run_test(folder, test, mutant_name, seconds, wait_seconds=WAIT_SECONDS):
    """Runs one `program:filter`, with a mutant on if one is named. It may use
    so many seconds of processor time."""
    program, _, test_filter = test.partition(":")
    command = [os.path.join(folder, "bin", program),
               f"--gtest_filter={test_filter}", "--gtest_fail_fast",
               "--gtest_color=no", "--gtest_catch_exceptions=0"]
    environment = {**os.environ, **BOUNDS, "ALPHEUS_MUTANT": mutant_name}
    start = time.monotonic()
    # A group of its own: death tests have children.
    process = subprocess.Popen(command, env=environment, text=True,
                               stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT,
                               errors="replace", start_new_session=True)
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        resource.prlimit(process.pid, resource.RLIMIT_CPU,
                         (seconds, resource.RLIM_INFINITY))
    waits = False
    try:
        output, _ = process.communicate(timeout=wait_seconds)
    except subprocess.TimeoutExpired:
        waits = True
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    took = time.monotonic() - start
    failed = re.findall(r"^\[  FAILED  \] ([\w/.]+)", output, re.MULTILINE)
    started = re.findall(r"^\[ RUN      \] ([\w/.]+)", output, re.MULTILINE)
    if not started:
        return Outcome(f"{test} ran nothing", "idle", took, output)
    if process.returncode == 0:
        return Outcome("", "", took, output)
    if failed:
        return Outcome(failed[0], "failed", took, output)
    # An assertion that failed before counts, whatever came of it; so does an
    # invariant that the code itself checks (log/base/check.h).
    asserted = re.search(r"^\S+:\d+: (Failure$|check failed: )", output,
                         re.MULTILINE)
    hung = process.returncode == -signal.SIGXCPU
    how = ("failed" if asserted else "waits" if waits else
           "hung" if hung else "died")
    return Outcome(started[-1], how, took, output)


class Run:
    """One run of the suite in a build folder."""

    def __init__(self, folder, jobs, mutants):
        self.folder = folder
        self.jobs = jobs
        self.mutants = mutants

    def each(self, function, items):
        """Yields (item, result) in the order of items, `jobs` at a time."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(function, item) for item in items]
            for item, future in zip(items, futures):
                yield item, future.result()

    def unmutated_tests_pass(self):
        tests = sorted({mutant.test for mutant in self.mutants})
        passed = True
        for test, outcome in self.each(
                lambda t: run_test(self.folder, t, "", PASS_SECONDS), tests):
            if outcome.killed_by:
                passed = False
                print(f"{test} must pass without a mutant, but "
                      f"{outcome.how}:\n{outcome.output}", flush=True)
        return passed

    def try_to_kill(self, mutant):
        """(outcome of its own test, other tests that fail if that did not)."""
        own = run_test(self.folder, mutant.test, mutant.name, KILL_SECONDS)
        others = []
        if not own.killed_by:
            for test in sorted({m.test for m in self.mutants} - {mutant.test}):
                outcome = run_test(self.folder, test, mutant.name,
                                   OTHERS_SECONDS)
                if outcome.how in ("failed", "died"):
                    others.append(outcome.killed_by)
        return own, others

    def kill_all(self, verbose):
        """Prints a line per mutant; returns how many were killed."""
        killed = 0
        for mutant, (own, others) in self.each(self.try_to_kill, self.mutants):
            is_killed = own.killed_by and own.how not in ("waits", "idle")
            killed += bool(is_killed)
            if own.killed_by:
                by = own.killed_by
                if own.how != "failed":
                    by += f" ({own.how})"
            elif others:
                by = f"seen only by {', '.join(others)}"
            else:
                by = "seen by no test of this table"
            verdict = "killed" if is_killed else "SURVIVED"
            print(f"{mutant.name:<26} {mutant.hole:<6} {verdict:<8} "
                  f"{own.seconds:6.2f} s  {by}", flush=True)
            if verbose:
                print(own.output, flush=True)
        return killed


def print_list(mutants):
    for mutant in mutants:
        print(f"{mutant.hole:<6} {mutant.name:<26} {mutant.what}\n"
              f"{'':<33} {mutant.test}")


def select(mutants, names):
    known = {mutant.name for mutant in mutants}
    known |= {mutant.hole for mutant in mutants}
    for name in names:
        if name not in known:
            sys.exit(f"mutants: no mutant and no hole is called {name}; "
                     "--list lists them")
    return [m for m in mutants
            if not names or m.name in names or m.hole in names]


def programs_of(mutants, arguments):
    programs = {mutant.test.partition(":")[0] for mutant in mutants}
    if arguments.seeds or arguments.explore:
        return [simulation.PROGRAM]
    if arguments.tests:
        return sorted(programs)
    return sorted(programs | {simulation.PROGRAM})


def main():
    parser = argparse.ArgumentParser(
        prog="tools/dev mutants",
        description="Takes the fix of each known hole out; its test must fail.")
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help="mutants or holes; all if none is named")
    parser.add_argument("--list", action="store_true",
                        help="list the mutants and run nothing")
    parser.add_argument("--programs", action="store_true",
                        help="list the test programs and run nothing")
    parser.add_argument("--verbose", action="store_true",
                        help="print what the failing tests print")
    parser.add_argument("--tests", action="store_true",
                        help="only the tests, and no seeds")
    parser.add_argument("--seeds", nargs="?", type=int, metavar="N",
                        const=simulation.SEEDS,
                        help="only the simulator, with seeds 1 to N (default "
                             f"{simulation.SEEDS}), under the mutants that "
                             "tools/mutants/simulated.txt names")
    parser.add_argument("--explore", nargs="?", type=int, metavar="N",
                        const=simulation.SEEDS,
                        help="the same under all mutants, and print what of it "
                             "that file could say")
    parser.add_argument("--build", default=os.path.join(ROOT, "build-mutants"),
                        help="folder of a build with ALPHEUS_MUTANTS")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="tests at a time")
    arguments = parser.parse_args()
    try:
        mutants = select(weave.read_tables(), arguments.names)
    except weave.WeaveError as error:
        sys.exit(f"mutants: {error}")
    if arguments.list:
        return print_list(mutants)
    if arguments.programs:
        return print("\n".join(programs_of(mutants, arguments)))
    if arguments.explore:
        return simulation.explore(arguments.build, arguments.jobs, mutants,
                                  arguments.explore)
    table = simulation.select(simulation.read_table(), mutants)
    if arguments.seeds:
        return simulation.kill_all(arguments.build, arguments.jobs, table,
                                   arguments.seeds)
    run = Run(arguments.build, arguments.jobs, mutants)
    if not run.unmutated_tests_pass():
        return 1
    killed = run.kill_all(arguments.verbose)
    print(f"mutants: {killed}/{len(mutants)} killed", flush=True)
    failed = killed != len(mutants)
    if table and not arguments.tests:
        failed |= simulation.kill_all(arguments.build, arguments.jobs, table,
                                      simulation.SEEDS)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
