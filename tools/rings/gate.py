#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gate: the checks that every change must pass.

    gate.py [--list] [--commit COMMIT] [--fresh [--after COMMIT]] [--busy N]

All checks that are fast run whole. Each other suite runs in part: the commit
draws a slice of it (draw.py), which is printed by name. --commit draws it
again. A stage that fails does not stop the others. Stages that compile much run
beside those that use one core or wait. The end of each stage that failed is
shown again after all of them. The plain tests come last, so that ctest's
summary ends the output.

--fresh runs the gate in a clone, with empty caches; both are removed then. With
--after COMMIT it runs the gate of that commit first, and then three times the
gate of HEAD, each with the caches that the first one left. --busy N runs it
beside N loops that keep a core busy each.

Called by `tools/dev gate`, as .ci/run does.
"""

import argparse
import collections
import concurrent.futures
import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
for folder in ("tests/model", "tools/mutants", "tools/rings"):
    sys.path.insert(0, os.path.join(ROOT, folder))
import check as model  # noqa: E402, tests/model
import child  # noqa: E402, beside this file
import simulation  # noqa: E402, tools/mutants
import weave  # noqa: E402, tools/mutants
from draw import Draw  # noqa: E402, beside this file
from ledger import LedgerError, Tree  # noqa: E402, beside this file
from suites import FOLDERS, GUESTS  # noqa: E402, beside this file
from suites import REQUESTED, REQUESTED_SEEDS  # noqa: E402, beside this file

# How much of each suite a commit draws: some minutes in all, on two cores.
TIDIED = 30
# So many sources that are neighbours are drawn at once. Most of clang-tidy's time
# goes into headers, and neighbours are read as one (tools/tidy/tidy.py).
TIDIED_NEIGHBOURS = 10
# Programs whose folders a change leaves alone that run with the sanitizer of
# addresses, and others that run with that of threads. Each costs a compilation
# that takes three times as long as a plain one.
ADDRESS_PROGRAMS = 20
THREADS_PROGRAMS = 10
MUTANT_PROGRAMS = 2
SIMULATED_MUTANTS = 6
CONFIGURATIONS = 4
FUZZERS = 3
SLOW_CASES = 8
CRASH_CASES = 3
SLOW_OTHERS = 2
SEEDS = 60
SEEDS_OF_REQUESTED = 20
# Seeds that the deep ring has found good (suites.py).
LAST_SEED = 2000
DEMO_ROUNDS = 30
KILL_ROUNDS = {"rocksdb_kill_rounds": 8, "rocksdb_failover_rounds": 4,
               "rocksdb_stress": 8}
NEMESIS_ROUNDS = 3
ELECTION_ROUNDS = 2
# Each kind once.
CLIENT_ROUNDS = 3

# Runs with the caches of the commit before (--after).
AFTER_TIMES = 3

# Crash enumerations, which draw by themselves.
CRASH_CASE = re.compile(r"(TinyLog\w*|ClusterCutDeep)Test\.")

# How many lines of a stage that failed are shown again at the end.
LINES_AGAIN = 60
# Lines of ctest on tests that begin and on those that pass.
TEST_BEGINS = re.compile(r"^ +Start +[0-9]+: ")
TEST_PASSES = re.compile(r" Passed +[0-9.]+ sec *$")
SUMMARY_BEGINS = re.compile(r"^[0-9]+% tests passed")
FAILED_TEST = re.compile(r"^\s+[0-9]+ - (\S+) \(")
# How much of a command names it. With all that some commands name, a reader of
# the end of the output would not see what failed.
NAME_CHARACTERS = 60



def dev(*arguments):
    return ["tools/dev", *arguments]


@functools.cache
def sources():
    """Own C++ sources, in the order in which targets name them."""
    named = []
    for listed in sorted(path for folder in FOLDERS for path in
                         files_below(folder, "CMakeLists.txt")):
        with open(os.path.join(ROOT, listed), encoding="utf-8") as file:
            named += [os.path.join(os.path.dirname(listed), name)
                      for name in re.findall(r"[\w/-]+\.cc\b", file.read())]
    own = sorted(path for folder in FOLDERS
                 for path in files_below(folder, "*.cc"))
    everything = set(own)
    # Each once, where it is named first; those that no text names come last.
    return list(dict.fromkeys(path for path in named + own if path in everything))


def files_below(folder, pattern):
    """Files below a folder of the root, named from the root."""
    return [os.path.relpath(path, ROOT) for path in
            glob.glob(os.path.join(ROOT, folder, "**", pattern), recursive=True)]


def drawn_sources(draw):
    """Own sources for clang-tidy, in groups of neighbours."""
    listed = sources()
    groups = [listed[first:first + TIDIED_NEIGHBOURS]
              for first in range(0, len(listed), TIDIED_NEIGHBOURS)]
    return [source for group in draw.sample("tidy", groups,
                                            TIDIED // TIDIED_NEIGHBOURS)
            for source in group]


Program = collections.namedtuple("Program", "several_threads folders")


@functools.cache
def sanitized_programs():
    """{name: Program} of those that sanitizers run. Its folders are those of its
    sources, below tests."""
    with open(os.path.join(ROOT, "tests/CMakeLists.txt"),
              encoding="utf-8") as file:
        text = file.read()
    programs = {}
    for name, rest in re.findall(r"^ *alpheus_test\((\w+)([^)]*)\)", text,
                                 re.MULTILINE):
        if not re.search(r"LABELS slow\b", rest):
            programs[name] = Program("ONE_THREAD" not in rest, frozenset(
                re.findall(r"([\w/]+)/\w+\.cc", rest)))
    for name, script in re.findall(r"^ *alpheus_smoke_test\((\w+)\s+(\S+)", text,
                                   re.MULTILINE):
        programs[name] = Program(True, frozenset([os.path.dirname(script)]))
    return programs


def left_out(draw, changed):
    """Programs that (the sanitizer of addresses, that of threads) leaves out in
    this run. None is left out that has tests of a folder in which a file has
    changed. No other one runs with both."""
    programs = sanitized_programs()
    folders = {os.path.dirname(path.removeprefix("tests/")) for path in changed}
    # The benchmarks are drawn as one: what they share takes long to compile.
    groups = [[name] for name in programs if not name.startswith("bench_")]
    groups.append([name for name in programs if name.startswith("bench_")])
    address = sum(draw.sample("address", groups, ADDRESS_PROGRAMS), [])
    threads = draw.sample("threads", [
        name for name in programs
        if programs[name].several_threads and name not in address],
                          THREADS_PROGRAMS)
    free = [name for name in programs if not programs[name].folders & folders]
    return ([name for name in free if name not in address],
            [name for name in free if name not in threads
             and programs[name].several_threads])


def changed_by(commit):
    """Files that a commit changes; none if it is the first one here."""
    try:
        return Tree(ROOT).git("diff", "--name-only", f"{commit}^",
                              commit).splitlines()
    except LedgerError:
        return []


@functools.cache
def mutants():
    return weave.read_tables()


def drawn_mutants(draw):
    """Names of mutants: all that a few test programs must kill, because what
    takes long is to compile these."""
    table = mutants()
    programs = sorted({m.test.partition(":")[0] for m in table})
    chosen = draw.sample("programs of mutants", programs, MUTANT_PROGRAMS)
    return [m.name for m in table if m.test.partition(":")[0] in chosen]


Lanes = collections.namedtuple("Lanes", "compiling waiting")


def lanes_before_tests(draw, changed=()):
    """Commands, of tools/dev or of a program below the root, for a commit that
    changed these files. Both lanes run at once: most of the one is compiling,
    and much of the other uses one core or waits. They build in folders of their
    own."""
    by_seeds = draw.sample("mutants by seeds",
                           [m.name for m in simulation.read_table()],
                           SIMULATED_MUTANTS)
    models = draw.sample("model", [c.name for c in model.CONFIGURATIONS],
                         CONFIGURATIONS)
    fuzzers = draw.sample("fuzz", sorted(
        os.path.basename(path)[:-len(".cc")]
        for path in glob.glob(os.path.join(ROOT, "tests/fuzz/fuzz_*.cc"))),
                          FUZZERS)
    first_seed = draw.number("simulator", 1, LAST_SEED - SEEDS + 1)
    requested = draw.number("requested seeds", 1,
                            REQUESTED_SEEDS - SEEDS_OF_REQUESTED + 1)
    seed = str(draw.number("kills", 1, 1 << 30))
    guest = draw.sample("guest", list(GUESTS), 1)
    without_address, without_threads = left_out(draw, changed)
    return Lanes(compiling=[
        dev("check", "--also", *drawn_sources(draw)),
        dev("test", "--sanitize", "address,undefined", "--leave-out",
            ",".join(without_address)),
        dev("fuzz", "--minutes", "1", *fuzzers),
        dev("test", "--sanitize", "thread", "--leave-out",
            ",".join(without_threads)),
        dev("mutants", "--tests", *drawn_mutants(draw)),
        dev("mutants", "--seeds", str(simulation.SEEDS), *by_seeds),
    ], waiting=[
        dev("model", *models),
        dev("build"),
        ["build/bin/alpheus-demo", "--local", "--rounds", str(DEMO_ROUNDS),
         "--quiet", "--seed", seed],
        dev("sim", "--seeds", f"{first_seed}-{first_seed + SEEDS - 1}"),
        *(dev("sim", "--seeds",
              f"{requested}-{requested + SEEDS_OF_REQUESTED - 1}",
              *options.split())
          for options in draw.sample("requested actors", REQUESTED, 2)),
        *([f"build/bin/{program}", str(rounds), seed]
          for program, rounds in KILL_ROUNDS.items()),
        dev("nemesis", "--rounds", str(NEMESIS_ROUNDS), "--seed", seed),
        dev("nemesis", "--elections", "two-at-once", "--rounds",
            str(ELECTION_ROUNDS), "--seed", seed),
        # One server: an ensemble takes longer to start than the rounds.
        dev("nemesis", "--elections", "mixed", "--zookeeper", "1", "--rounds",
            str(ELECTION_ROUNDS), "--seed", seed),
        dev("nemesis", "--clients", "--rounds", str(CLIENT_ROUNDS), "--seed",
            seed),
        dev("vm-test", "--quick", "--seed", seed, *guest),
    ])


def tests_of_build(*arguments):
    """The names of all tests, or of those that ctest selects."""
    if not shutil.which("ctest"):
        return []
    listed = subprocess.run(
        ["ctest", "--test-dir", os.path.join(ROOT, "build"), "-N", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return re.findall(r"^ *Test *#\d+: (\S+)", listed.stdout, re.MULTILINE)


def slow_tests(draw):
    """The names of the slow tests that are drawn; once all are built."""
    names = tests_of_build("-L", "^slow$")
    # A case of a test program has a dot in its name, a program or script none.
    cases = [name for name in names if "." in name]
    crashes = [name for name in cases if CRASH_CASE.search(name)]
    cases = [name for name in cases if name not in crashes]
    # The model has a stage of its own.
    others = [name for name in names if "." not in name and
              name != "model_test"]
    return (draw.sample("crash cases", crashes, CRASH_CASES) +
            draw.sample("slow cases", cases, SLOW_CASES) +
            draw.sample("slow programs", others, SLOW_OTHERS))


def test_command(names):
    """The command that runs these tests."""
    pattern = "|".join(re.escape(name) for name in names)
    return dev("test", "-R", f"^({pattern})$")


def is_news(line):
    """False for ctest's lines on tests that begin and on those that pass."""
    return not (TEST_BEGINS.search(line) or TEST_PASSES.search(line))


def short(command):
    """What names the command."""
    name = " ".join(command)
    if len(name) <= NAME_CHARACTERS:
        return name
    return name[:NAME_CHARACTERS].rstrip() + " ..."


def failure(command, lines):
    """The command, and the tests that failed by what ctest said."""
    name = short(command)
    tests = [match[1] for match in map(FAILED_TEST.match, lines) if match]
    return f"{name} ({' '.join(tests)})" if tests else name


class Output:
    """Prints what stages print."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stdout
        self.lock = threading.Lock()

    def say(self, *lines):
        """Prints them with no line of another stage between."""
        with self.lock:
            for line in lines:
                print(line, file=self.stream, flush=True)

    def show(self, line):
        if is_news(line):
            self.say(line)


class Gate:
    """One run of all stages."""

    def __init__(self, commit, output):
        self.draw = Draw(commit)
        self.output = output
        self.summary = []
        self.failed = []  # (command, last lines)
        self.children = child.Group()

    def stage(self, command, at_once=True, environment=None):
        """Runs it. Its output is shown at once, or all together when it has
        ended."""
        name = " ".join(command)
        last, held = collections.deque(maxlen=LINES_AGAIN), []

        def show(line):
            if not is_news(line):
                return
            last.append(line)
            if at_once:
                self.output.say(line)
            else:
                held.append(line)

        if at_once:
            self.output.say(f"==== {name}")
        else:
            held.append(f"==== {name}")
        start = time.monotonic()
        good = child.run(command, ROOT, show, environment,
                         self.children) == 0
        line = (f"{'ok' if good else 'FAILED':6} "
                f"{time.monotonic() - start:5.0f} s  {short(command)}")
        self.summary.append(line)
        if not good:
            self.failed.append((command, list(last)))
        self.output.say(*held, f"==== {line}")

    def lane(self, commands, at_once):
        # Each starts as many compilers as its share of the memory is enough for.
        environment = {**os.environ, "ALPHEUS_LANES": str(len(Lanes._fields))}
        for command in commands:
            self.stage(command, at_once, environment)

    def run_lanes(self, lanes):
        """All stages of both. If this thread is told to end, so is all that
        runs. A stage that can't begin is an error, in either lane."""
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.lane, lanes.waiting, False)
            try:
                self.lane(lanes.compiling, True)
                waiting.result()
            except BaseException:
                self.children.end()
                raise

    def show_failures(self):
        """The end of each stage that failed, and the summary."""
        # The shortest last, so that a long one hides none.
        for command, lines in sorted(self.failed, reverse=True, key=lambda failed:
                                     len("".join(failed[1]))):
            self.output.say(f"==== the end of: {short(command)}", *lines)
        self.output.say(*self.summary)

    def run_tests(self, command):
        """Whether they passed. ctest's summary is shown at the end: tools/dev
        says behind it what was skipped."""
        summary = []

        def show(line):
            if line.startswith("dev: ") or not (summary or
                                                SUMMARY_BEGINS.search(line)):
                self.output.show(line)
            else:
                summary.append(line)

        self.output.say(f"==== {' '.join(command)}")
        good = child.run(command, ROOT, show) == 0
        self.output.say(*summary)
        if not good:
            self.failed.append((command, summary))
        return good

    def verdict(self, seconds):
        """The last line. The ledger keeps it, and nothing else of a gate."""
        what = f"at {self.draw.commit[:8]} after {seconds:.0f} s"
        if not self.failed:
            return f"gate: ok {what}"
        names = "; ".join(failure(*failed) for failed in self.failed)
        return f"gate: FAILED {what}: {names}"

    def run(self):
        """All stages; whether all were good."""
        start = time.monotonic()
        self.run_lanes(lanes_before_tests(self.draw,
                                          changed_by(self.draw.commit)))
        slow = slow_tests(self.draw)
        if slow:
            self.stage(test_command(slow))
        self.show_failures()
        # Its end is the end of the output, which is read by programs: nothing
        # may follow but one line.
        self.run_tests(dev("test", "-LE", "^slow$"))
        self.output.say(self.verdict(time.monotonic() - start))
        return not self.failed


def run_in_clone(folder, commit, caches):
    """The gate of a commit in a clone of its own; whether it was green."""
    git = ["git", "-c", "safe.directory=*", "-c", "advice.detachedHead=false"]
    clone = os.path.join(folder, "clone")
    subprocess.run([*git, "clone", "--quiet", ROOT, clone], check=True)
    subprocess.run([*git, "-C", clone, "checkout", "--quiet", commit],
                   check=True)
    environment = {**os.environ, "CCACHE_DIR": os.path.join(caches, "ccache"),
                   "XDG_CACHE_HOME": os.path.join(caches, "cache")}
    status = child.run(["bash", os.path.join(clone, ".ci", "run")], ROOT,
                          environment=environment)
    shutil.rmtree(clone)
    return status == 0


def run_fresh(before):
    """The gate of HEAD in a clone with empty caches; or, behind that of the
    commit `before`, as often as AFTER_TIMES with its caches. Whether all were
    green; a commit before that was red only fills the caches."""
    head = Tree(ROOT).commit()
    with tempfile.TemporaryDirectory(prefix="alpheus-gate-") as folder:
        caches = os.path.join(folder, "caches")
        if not before:
            return run_in_clone(folder, head, caches)
        before = Tree(ROOT).git("rev-parse", before).strip()
        run_in_clone(folder, before, caches)
        good = True
        for time_again in range(AFTER_TIMES):
            copy = f"{caches}-{time_again}"
            shutil.copytree(caches, copy, symlinks=True)
            good = run_in_clone(folder, head, copy) and good
            shutil.rmtree(copy)
        return good


def print_list(draw):
    lanes = lanes_before_tests(draw, changed_by(draw.commit))
    for command in lanes.compiling + lanes.waiting:
        print(" ".join(command))
    tests = tests_of_build()
    if tests and not any(name.endswith("_NOT_BUILT") for name in tests):
        print(" ".join(test_command(slow_tests(draw))))
    else:
        print(f"tools/dev test -R SLOW, {CRASH_CASES} crash enumerations, "
              f"{SLOW_CASES} other slow cases and {SLOW_OTHERS} slow programs by "
              "lot, drawn once they are built")
    print("tools/dev test -LE ^slow$")


def main():
    parser = argparse.ArgumentParser(
        prog="tools/dev gate",
        description="The checks that every change must pass.")
    parser.add_argument("--list", action="store_true",
                        help="say what the commit draws and run nothing")
    parser.add_argument("--commit", metavar="COMMIT",
                        help="draw as this one does; that of HEAD by default")
    parser.add_argument("--fresh", action="store_true",
                        help="in a clone, with empty caches")
    parser.add_argument("--after", metavar="COMMIT",
                        help="with --fresh: three times, with the caches that "
                             "the gate of this commit leaves")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="beside N busy loops")
    arguments = parser.parse_args()
    if arguments.after and not arguments.fresh:
        parser.error("--after goes with --fresh")
    try:
        commit = Tree(ROOT).commit(arguments.commit or "HEAD")
    except LedgerError as error:
        sys.exit(f"gate: {error}")
    if arguments.list:
        return print_list(Draw(commit))
    with child.busy_loops(arguments.busy):
        if arguments.fresh:
            return 0 if run_fresh(arguments.after) else 1
        return 0 if Gate(commit, Output()).run() else 1


if __name__ == "__main__":
    # A reader that stops early, such as head, ends the program without a
    # message.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    child.end_by_signals()
    sys.exit(main())
