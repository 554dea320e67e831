#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tools/rings: what commits draw, the ledger, and what is green."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(ROOT, "tools", "rings"))
import child  # noqa: E402, tools/rings
import ctest  # noqa: E402, tools/rings
import deep  # noqa: E402, tools/rings
import gate  # noqa: E402, tools/rings
import ledger  # noqa: E402, tools/rings
import programs  # noqa: E402, tools/rings
import suites  # noqa: E402, tools/rings
from draw import Draw  # noqa: E402, tools/rings

COMMITS = [f"{n:040x}" for n in range(300)]


def make_repository(folder):
    """A repository with one commit of two files."""
    for path, text in (("log/a.cc", "a"), ("tests/b.cc", "b")):
        write(folder, path, text)
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        git(folder, *command)


def write(folder, path, text):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def git(folder, *arguments):
    subprocess.run(["git", "-C", folder, "-c", "user.name=a", "-c",
                    "user.email=a@example.org", *arguments], check=True,
                   capture_output=True)


class DrawTest(unittest.TestCase):

    def test_a_commit_draws_the_same_again(self):
        for purpose in ("mutants", "model"):
            self.assertEqual(Draw("c1").sample(purpose, range(100), 5),
                             Draw("c1").sample(purpose, range(100), 5))
            self.assertEqual(Draw("c1").number(purpose, 1, 1 << 30),
                             Draw("c1").number(purpose, 1, 1 << 30))

    def test_commits_and_purposes_draw_apart(self):
        drawn = {tuple(Draw(commit).sample(purpose, range(1000), 5))
                 for commit in ("c1", "c2") for purpose in ("a", "b")}
        self.assertEqual(len(drawn), 4)

    def test_every_part_comes_up_in_the_long_run(self):
        seen = set()
        for commit in COMMITS:
            seen.update(Draw(commit).sample("model", range(44), 4))
        self.assertEqual(seen, set(range(44)))

    def test_few_items_are_all_drawn_in_their_order(self):
        self.assertEqual(Draw("c").sample("a", ["x", "y"], 9), ["x", "y"])

    def test_numbers_keep_to_their_bounds(self):
        numbers = {Draw(commit).number("n", 1, 3) for commit in COMMITS}
        self.assertEqual(numbers, {1, 2, 3})


class GateTest(unittest.TestCase):

    def test_every_source_comes_up(self):
        drawn = set()
        for commit in COMMITS:
            some = gate.drawn_sources(Draw(commit))
            self.assertGreater(len(some), gate.TIDIED -
                               gate.TIDIED_NEIGHBOURS)
            self.assertLessEqual(len(some), gate.TIDIED)
            drawn.update(some)
        self.assertEqual(drawn, set(gate.sources()))

    def test_every_mutant_and_every_guest_comes_up(self):
        drawn, seeds, guests = set(), set(), set()
        for commit in COMMITS:
            draw = Draw(commit)
            drawn.update(gate.drawn_mutants(draw))
            lanes = gate.lanes_before_tests(draw)
            for command in lanes.compiling + lanes.waiting:
                if command[1:3] == ["mutants", "--seeds"]:
                    seeds.update(command[4:])
                if command[1] == "vm-test":
                    guests.add(command[-1])
        names = {m.name for m in gate.weave.read_tables()}
        self.assertEqual(names - drawn, set())
        self.assertEqual(seeds,
                         {m.name for m in gate.simulation.read_table()})
        self.assertEqual(guests, set(suites.GUESTS))

    def test_every_actor_that_seeds_do_not_draw_comes_up(self):
        drawn = set()
        for commit in COMMITS:
            for command in gate.lanes_before_tests(Draw(commit)).waiting:
                if command[1] == "sim":
                    drawn.add(" ".join(command[4:]))
        self.assertEqual(drawn, {"", *suites.REQUESTED})

    def test_crash_enumerations_draw_by_themselves(self):
        crashes = [f"AllRings/TinyLogTest.Every/Ring{n}" for n in range(20)] + [
            "TinyLogThreadsTest.Two", "ClusterCutDeepTest.Cuts"]
        others = [f"SimDeepTest.Seeds{n}" for n in range(20)]
        programs = ["model_test", "kill_loop"]
        with tempfile.TemporaryDirectory() as folder:
            write(folder, "ctest", "#!/bin/sh\n" + "".join(
                f"echo '  Test  #1: {name}'\n"
                for name in crashes + others + programs))
            os.chmod(os.path.join(folder, "ctest"), 0o700)
            path = folder + os.pathsep + os.environ["PATH"]
            with mock.patch.dict(os.environ, PATH=path):
                drawn = [gate.slow_tests(Draw(commit)) for commit in COMMITS]
        for names in drawn:
            self.assertEqual(len(set(names) & set(crashes)), gate.CRASH_CASES)
            self.assertEqual(len(set(names) & set(others)), gate.SLOW_CASES)
            self.assertEqual(set(names) & set(programs), {"kill_loop"})
        self.assertEqual(set().union(*drawn),
                         {*crashes, *others, "kill_loop"})

    def test_lanes_share_the_memory(self):
        stream = io.StringIO()
        run = gate.Gate("c" * 40, gate.Output(stream))
        show = ["sh", "-c", "echo $ALPHEUS_LANES lanes"]
        run.run_lanes(gate.Lanes(compiling=[show], waiting=[show]))
        self.assertEqual(stream.getvalue().splitlines().count("2 lanes"), 2)
        jobs = [int(subprocess.run(
            ["bash", "-c", "eval \"$(sed -n '/^default_jobs()/,/^}/p' "
             "tools/dev)\"; default_jobs"], cwd=ROOT, check=True, capture_output=True,
            env={**os.environ, "ALPHEUS_LANES": lanes}).stdout)
            for lanes in ("1", "1000000")]
        self.assertGreaterEqual(jobs[0], jobs[1])
        self.assertEqual(jobs[1], 1)

    def test_every_program_runs_with_every_sanitizer_that_looks_at_it(self):
        programs = gate.sanitized_programs()
        self.assertTrue(programs["core_test"].several_threads)
        self.assertTrue(
            programs["bench_ordered_store_smoke_test"].several_threads)
        self.assertFalse(programs["sim_test"].several_threads)
        self.assertNotIn("tiny_log_test", programs)  # slow
        several = {name for name in programs if programs[name].several_threads}
        address, threads = set(), set()
        for commit in COMMITS:
            without = [set(names) for names in gate.left_out(Draw(commit), [])]
            with_address = set(programs) - without[0]
            with_threads = several - without[1]
            self.assertEqual(with_address & with_threads, set())
            self.assertGreaterEqual(len(with_address), gate.ADDRESS_PROGRAMS)
            self.assertGreater(len(with_threads), gate.THREADS_PROGRAMS // 2)
            self.assertLessEqual(len(with_threads), gate.THREADS_PROGRAMS)
            address |= with_address
            threads |= with_threads
        self.assertEqual(address, set(programs))
        self.assertEqual(threads, several)

    def test_programs_with_tests_of_what_changed_are_not_left_out(self):
        for path in ("log/core/ring/ring_log.cc", "tests/log/core/ring/a_test.cc"):
            for commit in COMMITS[:20]:
                for names in gate.left_out(Draw(commit), ["README.md", path]):
                    self.assertNotIn("core_test", names)

    def test_files_that_a_commit_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            make_repository(folder)
            write(folder, "log/c.cc", "c")
            git(folder, "add", "-A")
            git(folder, "commit", "-qm", "second")
            self.addCleanup(setattr, gate, "ROOT", gate.ROOT)
            gate.ROOT = folder
            self.assertEqual(gate.changed_by("HEAD"), ["log/c.cc"])
            self.assertEqual(gate.changed_by("HEAD~1"), [])

    def test_lines_on_tests_that_pass_are_left_out(self):
        stream = io.StringIO()
        output = gate.Output(stream)
        for line in ("      Start  1: a", " 1/3 Test  #1: a ..   Passed    0.01 sec",
                     " 2/3 Test  #2: b ..***Failed    0.01 sec", "said"):
            output.show(line)
        self.assertEqual(stream.getvalue().splitlines(), [
            " 2/3 Test  #2: b ..***Failed    0.01 sec", "said"])

    def test_the_summary_of_the_tests_is_the_end(self):
        lines = ("1/1 Test #1: a ..***Failed", "0% tests passed, 1 tests failed",
                 "Total Test time", "dev: skipped: b")
        stream = io.StringIO()
        run = gate.Gate("c" * 40, gate.Output(stream))
        self.assertFalse(run.run_tests(
            ["sh", "-c", "printf '%s\\n' \"$@\"; exit 8", "sh", *lines]))
        self.assertEqual(stream.getvalue().splitlines()[1:],
                         [lines[0], lines[3], *lines[1:3]])

    def test_the_last_line_names_what_failed(self):
        run = gate.Gate("c" * 40, gate.Output(io.StringIO()))
        self.assertEqual(run.verdict(7), "gate: ok at cccccccc after 7 s")
        run.stage(["sh", "-c", "exit 3", "x" * 100])
        run.run_tests(["sh", "-c", "printf '%s\\n' \"$@\"; exit 8", "sh",
                       "0% tests passed, 2 tests failed", "The following tests "
                       "FAILED:", "\t  1 - a.b (Failed)", "\t 12 - c (Timeout)"])
        self.assertRegex(run.verdict(7), "^gate: FAILED at cccccccc after 7 s: "
                         r"sh -c exit 3 x{47} \.\.\.; "
                         r"sh -c .{1,54} \.\.\. \(a\.b c\)$")

    def test_lanes_run_at_once_and_are_shown_apart(self):
        stream = io.StringIO()
        run = gate.Gate("c" * 40, gate.Output(stream))
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            # Each needs the other to end.
            run.run_lanes(gate.Lanes(
                compiling=[["sh", "-c", f"echo begins; cat {pipe}"]],
                waiting=[["sh", "-c", f"echo waits; echo heard >{pipe}; exit 3"],
                         ["echo", "last"]]))
        lines = stream.getvalue().splitlines()
        self.assertEqual([line for line in lines if line in ("begins", "heard")],
                         ["begins", "heard"])
        at = lines.index("waits")
        self.assertRegex(lines[at - 1], "^==== sh ")
        self.assertRegex(lines[at + 1], "^==== FAILED ")
        self.assertEqual([line.split()[0] for line in run.summary].count("ok"), 2)
        self.assertEqual([lines for _, lines in run.failed], [["waits"]])

    def test_a_stage_that_fails_is_shown_again(self):
        stream = io.StringIO()
        run = gate.Gate("c" * 40, gate.Output(stream))
        run.stage(["sh", "-c", "echo broken; exit 3"])
        run.stage(["sh", "-c", "echo whole"])
        self.assertEqual([line.split()[0] for line in run.summary],
                         ["FAILED", "ok"])
        self.assertEqual([lines for _, lines in run.failed], [["broken"]])

    def test_the_longest_end_hides_no_other(self):
        stream = io.StringIO()
        run = gate.Gate("c" * 40, gate.Output(stream))
        run.stage(["sh", "-c", "echo brief; exit 3", "x" * 100])
        run.stage(["sh", "-c", "seq 100; exit 3"])
        begin = len(stream.getvalue())
        run.show_failures()
        shown = stream.getvalue()[begin:].splitlines()
        self.assertEqual(shown[:2], ["==== the end of: sh -c seq 100; exit 3",
                                     "41"])
        self.assertEqual(shown[-4:-2], ["==== the end of: sh -c echo brief; "
                                        f"exit 3 {'x' * 35} ...", "brief"])
        self.assertEqual([line.split()[0] for line in shown[-2:]],
                         ["FAILED", "FAILED"])
        self.assertLess(len(shown[-2]), 100)

    def test_a_stage_that_cannot_begin_is_an_error_in_both_lanes(self):
        for absent in (gate.Lanes([["/no/program"]], [["true"]]),
                       gate.Lanes([["true"]], [["/no/program"], ["true"]])):
            run = gate.Gate("c" * 40, gate.Output(io.StringIO()))
            with self.assertRaises(FileNotFoundError):
                run.run_lanes(absent)


class FreshGateTest(unittest.TestCase):
    """On a repository whose .ci/run says what it sees."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "repository")
        os.mkdir(self.folder)
        self.seen = os.path.join(folder.name, "seen")
        make_repository(self.folder)
        self.commit_run("first", 0)
        self.addCleanup(setattr, gate, "ROOT", gate.ROOT)
        gate.ROOT = self.folder

    def commit_run(self, name, status):
        """Its .ci/run notes whose caches it finds, and leaves its name there."""
        write(self.folder, ".ci/run", f"""
            mkdir -p "$CCACHE_DIR"
            echo "{name} $(cat "$CCACHE_DIR"/* 2>/dev/null)" >>{self.seen}
            echo {name} >"$CCACHE_DIR/{name}"
            exit {status}""")
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", name)

    def lines_seen(self):
        with open(self.seen, encoding="utf-8") as file:
            return [line.split() for line in file]

    def test_caches_are_empty(self):
        self.assertTrue(gate.run_fresh(None))
        self.assertTrue(gate.run_fresh(None))
        self.assertEqual(self.lines_seen(), [["first"], ["first"]])

    def test_caches_are_those_of_the_commit_before(self):
        self.commit_run("second", 0)
        self.assertTrue(gate.run_fresh("HEAD~1"))
        self.assertEqual(self.lines_seen(),
                         [["first"]] + [["second", "first"]] * gate.AFTER_TIMES)

    def test_a_red_commit_before_is_not_held_against_it(self):
        self.commit_run("red", 1)
        self.assertFalse(gate.run_fresh(None))
        self.commit_run("green", 0)
        self.assertTrue(gate.run_fresh("HEAD~1"))
        self.commit_run("red again", 1)
        self.assertFalse(gate.run_fresh("HEAD~1"))


class ChildTest(unittest.TestCase):
    """A ring that runs a gate, which runs a shell with a child of its own."""

    GATE = """if True:
        import os, sys
        sys.path.insert(0, os.path.join("tools", "rings"))
        import child
        child.end_by_signals()
        print("pid", os.getpid(), flush=True)
        child.run(["sh", "-c", "sleep 300 & echo pid $$ pid $!; wait"], ".",
                  lambda line: print(line, flush=True))"""
    RING = """if True:
        import os, sys
        sys.path.insert(0, os.path.join("tools", "rings"))
        import child, deep, suites
        child.end_by_signals()
        print("pid", os.getpid(), flush=True)
        deep.run_commands(suites.SUITES[0]._replace(
            commands=[[sys.executable, "-B", "-c", sys.argv[1]]]))"""

    @staticmethod
    def runs(pid):
        """Whether there is such a process, and it has not ended."""
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def expect_all_end_by(self, number):
        with subprocess.Popen([sys.executable, "-B", "-c", self.RING, self.GATE],
                              cwd=ROOT, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as ring:
            pids = []
            while len(pids) < 4:
                line = ring.stdout.readline()
                self.assertNotEqual(line, "")
                if not line.startswith("deep: "):
                    pids += re.findall(r"pid (\d+)", line)
            self.assertTrue(all(map(self.runs, pids)), pids)
            ring.send_signal(number)
            status = ring.wait(60)
        deadline = time.monotonic() + 60
        while any(map(self.runs, pids)) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual([pid for pid in pids if self.runs(pid)], [])
        return status

    def test_a_signal_ends_all_that_runs_below(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.expect_all_end_by(number), 128 + number)

    def test_an_interrupt_does_too(self):
        self.assertNotEqual(self.expect_all_end_by(signal.SIGINT), 0)

    def test_a_group_ends_together(self):
        group = child.Group()
        begun = threading.Event()
        statuses = []
        thread = threading.Thread(target=lambda: statuses.append(
            child.run(["sh", "-c", "echo begun; sleep 300"], ROOT,
                      lambda line: begun.set(), group=group)))
        thread.start()
        begun.wait()
        group.end()
        thread.join()
        self.assertEqual(statuses, [-signal.SIGTERM])
        with self.assertRaises(SystemExit):
            child.run(["sleep", "300"], ROOT, group=group)

    def test_a_child_that_ends_by_itself_has_its_status(self):
        lines = []
        self.assertEqual(
            child.run(["sh", "-c", "echo a; echo b >&2; exit 3"], ROOT,
                      lines.append), 3)
        self.assertEqual(lines, ["a", "b"])


class LedgerTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        make_repository(self.folder)
        self.tree = ledger.Tree(self.folder)
        self.path = os.path.join(self.folder, "docs", "results", "deep.json")
        self.suite = suites.suite("a", "what", ["sh run.sh"], ("log",),
                                  r"counted", 1)

    def entry(self, **changes):
        return {"suite": "a", "commit": self.tree.commit(),
                "inputs": self.tree.inputs(("log",)), "date": "2026-01-01",
                "machine": "m", "seconds": 1, "outcome": "ok", "counts": [],
                **changes}

    def state(self, *entries, times=1):
        book = ledger.Ledger(self.path)
        for entry in entries:
            book.add(entry, times)
        return deep.state(self.suite._replace(times=times), self.tree, book)

    def test_a_commit_may_be_named_in_short(self):
        # What a commit draws depends on its whole hash.
        whole = self.tree.commit()
        self.assertEqual(self.tree.commit(whole[:8]), whole)
        with self.assertRaises(ledger.LedgerError):
            self.tree.commit("no-such-commit")

    def test_what_is_written_is_read_again(self):
        book = ledger.Ledger(self.path)
        book.add(self.entry(), 1)
        book.write()
        self.assertEqual(ledger.Ledger(self.path).entries, [self.entry()])

    def test_only_the_newest_stay(self):
        book = ledger.Ledger(self.path)
        for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
            book.add(self.entry(date=day), 2)
        self.assertEqual([entry["date"] for entry in book.of("a")],
                         ["2026-01-02", "2026-01-03"])

    def test_a_broken_file_is_an_error(self):
        for text in ("[", "[{}]", "[1]"):
            with self.subTest(text=text):
                write(self.folder, "docs/results/deep.json", text)
                with self.assertRaises(ledger.LedgerError):
                    ledger.Ledger(self.path)

    def test_an_entry_is_valid_until_its_files_change(self):
        entry = self.entry()
        self.assertTrue(self.state(entry)[1])
        write(self.folder, "tests/b.cc", "changed")
        git(self.folder, "commit", "-qam", "other")
        self.assertTrue(self.state(entry)[1])
        write(self.folder, "log/a.cc", "changed")
        git(self.folder, "commit", "-qam", "own")
        said, green = self.state(entry)
        self.assertFalse(green)
        self.assertIn("stale", said)

    def test_a_failure_is_not_green_whatever_was_before(self):
        failed = self.entry(outcome="failed", date="2026-01-02")
        self.assertFalse(self.state(self.entry(), failed)[1])
        self.assertFalse(self.state(self.entry(), failed, times=2)[1])

    def test_so_many_green_ones_as_are_asked_for(self):
        self.assertEqual(self.state(self.entry(), times=2),
                         ("ok 1 of 2 times", False))
        self.assertTrue(self.state(self.entry(), self.entry(date="2026-01-02"),
                                   times=2)[1])

    def test_a_run_with_much_cached_does_not_shorten_the_next(self):
        book = ledger.Ledger(self.path)
        for seconds, minutes in ((5, 1), (600, 10)):
            book.add(self.entry(seconds=seconds), 1)
            self.assertEqual(deep.minutes_of(self.suite, self.tree, book),
                             minutes)

    def test_without_an_entry_it_never_ran(self):
        self.assertEqual(self.state(), ("never run", False))

    def run_suite(self, script):
        """Runs a suite of one script; (whether green, its newest entry)."""
        write(self.folder, "log/run.sh", script)
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-qm", "script")
        book = ledger.Ledger(self.path)
        suite = self.suite._replace(
            commands=[["sh", os.path.join(self.folder, "log", "run.sh")]])
        with contextlib.redirect_stdout(io.StringIO()):
            green = deep.run(suite, self.tree, book)
        return green, (book.of("a") or [None])[-1]

    def test_a_run_is_noted_with_its_counts(self):
        green, entry = self.run_suite("echo counted 3; echo other")
        self.assertTrue(green)
        self.assertEqual(entry["counts"], ["counted 3"])
        self.assertEqual(entry["commit"], self.tree.commit())
        self.assertEqual(set(entry), set(ledger.FIELDS))

    def test_a_run_that_fails_is_noted_too(self):
        green, entry = self.run_suite("echo counted 2; exit 5")
        self.assertFalse(green)
        self.assertEqual(entry["outcome"], "failed")
        self.assertIn("status 5", entry["counts"][-1])

    def test_a_run_that_counts_nothing_has_failed(self):
        green, entry = self.run_suite("echo skipped")
        self.assertFalse(green)
        self.assertEqual(entry["outcome"], "failed")
        self.assertEqual(entry["counts"],
                         ["nothing ran: no line matches counted"])

    def test_a_run_during_which_files_change_is_not_noted(self):
        green, entry = self.run_suite(
            f"echo changed >{self.folder}/log/a.cc; echo counted")
        self.assertFalse(green)
        self.assertIsNone(entry)

    def test_nothing_runs_on_files_that_are_not_committed(self):
        write(self.folder, "log/new.cc", "new")
        with self.assertRaisesRegex(ledger.LedgerError, "log/new.cc"):
            deep.run(self.suite, self.tree, ledger.Ledger(self.path))


class BuildOfPrograms(unittest.TestCase):
    """A tree with a folder that looks as cmake leaves it. one_test and two_test
    are programs of GoogleTest, client_test is one that starts others; server is
    none. script_test is a script."""

    FILES = {
        "tests/CMakeLists.txt": "alpheus_test(one_test SOURCES\n"
                                "alpheus_test(two_test\n"
                                "  alpheus_test(client_test\n",
        "tests/one_test.cc": '#include "log/a.h"\n',
        "tests/two_test.cc": '  #  include <two.h>\n// begins with posix_spawn\n',
        "tests/two.h": "",
        "tests/client_test.cc": '#include "../tests/begin.h"\n',
        "tests/begin.h": "posix_spawn(&pid",
        "tools/server.cc": '  execv("/proc/self/exe", arguments);',
        "tools/unbuilt.cc": "",
        "log/a.h": '#include "b.h"\n#include <string>\n',
        "log/b.h": "",
        "tests/script.sh": "true",
    }
    PROGRAMS = {"one_test": "tests/one_test.cc", "two_test": "tests/two_test.cc",
                "client_test": "tests/client_test.cc", "server": "tools/server.cc"}
    # The test programs of ctest, each with its tests.
    TESTS = {"one_test": ["one_test.0", "one_test.1"],
             "two_test": ["Kinds/TwoTest.Ends/1+1"], "client_test": ["client_test.0"],
             "script_test": ["script_test"]}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        for path, text in self.FILES.items():
            write(self.folder, path, text)
        self.configure()
        for command in (["init", "-q"], ["add", "log", "tests", "tools"],
                        ["commit", "-qm", "first"]):
            git(self.folder, *command)
        self.tree = ledger.Tree(self.folder)
        self.paths = ("log", "tests", "tools")

    def configure(self, folder="build"):
        rules = []
        for name, source in self.PROGRAMS.items():
            unity = f"{self.folder}/{folder}/{name}/unity.cxx"
            write(self.folder, f"{folder}/{name}/unity.cxx",
                  f'#include "{self.folder}/{source}"\n')
            rule = f"CXX_EXECUTABLE_LINKER__{name}_Debug"
            rules.append(f"rule {rule}\n  command = link\n"
                         f"build {name}.o: compile {unity}\n"
                         f"build bin/{name} | {name}_tests.cmake: {rule} {name}.o\n")
        write(self.folder, f"{folder}/build.ninja",
              "rule compile\n  command = compile\n" + "".join(rules))
        write(self.folder, f"{folder}/CTestTestfile.cmake", "".join(
            f'add_test([=[{test}]=] "{self.command(name)}" "{test}")\n'
            for name, tests in self.TESTS.items() for test in tests))

    def command(self, name):
        return os.path.join(self.folder, "build/bin" if name in self.PROGRAMS
                            else "tests", name)

    def change(self, *paths):
        for path in paths:
            with open(os.path.join(self.folder, path), "a",
                      encoding="utf-8") as file:
                file.write("\n// changed\n")
        git(self.folder, "commit", "-qam", "changed")

    def hashes(self):
        known = programs.of_folder(self.tree, self.paths, "build")
        return {name: known.inputs(name) for name in self.TESTS}

    def changed_by(self, *paths):
        """Names of the test programs whose inputs these files are."""
        before = self.hashes()
        self.change(*paths)
        after = self.hashes()
        return {name for name in before if before[name] != after[name]}


class ProgramsTest(BuildOfPrograms):

    def test_a_source_counts_for_its_program(self):
        self.assertEqual(self.changed_by("tests/one_test.cc"),
                         {"one_test", "script_test"})

    def test_what_is_included_counts_wherever_compilers_look(self):
        for path in ("log/a.h", "log/b.h"):
            self.assertEqual(self.changed_by(path), {"one_test", "script_test"})
        self.assertEqual(self.changed_by("tests/two.h"),
                         {"two_test", "script_test"})

    def test_a_header_that_an_include_means_from_now_on_counts(self):
        before = self.hashes()
        write(self.folder, "tools/two.h", "")
        git(self.folder, "add", "tools")
        after = self.hashes()
        self.assertNotEqual(before["two_test"], after["two_test"])
        self.assertEqual(before["one_test"], after["one_test"])

    def test_what_is_no_cpp_counts_for_all(self):
        for path in ("tests/CMakeLists.txt", "tests/script.sh"):
            self.assertEqual(self.changed_by(path), set(self.TESTS))

    def test_other_programs_count_for_one_that_may_start_them(self):
        for path in ("tools/server.cc", "tools/unbuilt.cc", "tests/begin.h"):
            self.assertEqual(self.changed_by(path), {"client_test", "script_test"})

    def test_every_way_to_start_a_program_is_seen(self):
        for text, starts in (
                ("execl(path", True), ("::execvpe(path", True),
                ("  begin = &execve;", True), ("fexecve(fd", True),
                ("posix_spawnp(", True), ("std::system(line)", True),
                ("popen(line", True), ("dlopen(path", True),
                ("syscall(SYS_execve, path", True), ("a(); // then execv", True),
                ("  // execv", False), ("the system", False),
                ("file_system(path)", False), ("executor(", False),
                ('execv("/proc/self/exe", argv)', False),
                ('execv("/proc/self/exe", argv); execv(path', True)):
            with self.subTest(text=text):
                self.assertEqual(bool(programs.STARTS.search(
                    programs.HARMLESS.sub("", text))), starts)

    def test_scripts_that_are_known_to_read_less(self):
        known = programs.of_folder(self.tree, self.paths, "build")
        self.assertEqual(known.sources_of("script_test"), known.cpp)
        self.assertEqual(known.sources_of(programs.WITHOUT_CPP[0]), set())
        self.assertEqual(known.sources_of(programs.SCRIPTS[0]),
                         {"tools/server.cc", "tools/unbuilt.cc"})

    def test_the_plain_build_stands_in_for_a_folder_that_is_not_configured(self):
        folders = [os.path.basename(programs.of_folder(
            self.tree, self.paths, "build-debug").ninja.folder)]
        self.configure("build-debug")
        folders.append(os.path.basename(programs.of_folder(
            self.tree, self.paths, "build-debug").ninja.folder))
        self.assertEqual(folders, ["build", "build-debug"])

    def test_without_a_configured_folder_nothing_is_known(self):
        os.remove(os.path.join(self.folder, "build", "build.ninja"))
        self.assertIsNone(programs.of_folder(self.tree, self.paths, "build"))


class RunOfProgramsTest(BuildOfPrograms):
    """A suite whose programs note that they ran, and fail as they are told."""

    def setUp(self):
        super().setUp()
        for name in self.TESTS:
            path = self.command(name)
            write(self.folder, os.path.relpath(path, self.folder),
                  f'#!/bin/sh\necho "$1" >>{self.folder}/ran\n'
                  f"test ! -e {self.folder}/{name}.fails\n")
            os.chmod(path, 0o700)
        write(self.folder, "dev", "shift; echo dev: builds >&2\n"
              'exec ctest --test-dir build "$@"\n')
        git(self.folder, "add", "tests")
        git(self.folder, "commit", "-qm", "programs")
        self.suite = suites.suite("a", "what", ["sh dev test"], self.paths,
                                  r"tests passed", 60, tests=suites.Tests("build"))
        self.path = os.path.join(self.folder, "docs", "results", "deep.json")
        self.loops = []
        for patch in (mock.patch.object(deep, "ROOT", self.folder),
                      mock.patch.object(child, "busy_loops", self.note_loops)):
            patch.start()
            self.addCleanup(patch.stop)

    @contextlib.contextmanager
    def note_loops(self, count):
        self.loops.append(count)
        yield

    def run_suite(self, whole=False):
        """(whether it was green, the tests that ran)"""
        write(self.folder, "ran", "")
        with contextlib.redirect_stdout(io.StringIO()):
            green = deep.run(self.suite, self.tree, self.book(), whole)
        with open(os.path.join(self.folder, "ran"), encoding="utf-8") as file:
            return green, sorted(file.read().split())

    def book(self):
        return ledger.Ledger(self.path)

    def entry(self):
        return self.book().of("a")[-1]

    def state(self):
        return deep.state(self.suite, self.tree, self.book())

    def all_tests(self):
        return sorted(test for tests in self.TESTS.values() for test in tests)

    def fail(self, name, fails=True):
        path = os.path.join(self.folder, f"{name}.fails")
        if fails:
            write(self.folder, path, "")
        else:
            os.remove(path)

    def test_the_first_run_runs_all_and_notes_the_inputs(self):
        self.assertEqual(self.run_suite(), (True, self.all_tests()))
        entry = self.entry()
        self.assertEqual(entry["programs"], self.hashes())
        self.assertEqual(entry["ran"].split(), sorted(self.TESTS))
        self.assertEqual(entry["counts"],
                         ["100% tests passed, 0 tests failed out of 5"])
        self.assertTrue(self.state()[1])

    def test_what_has_changed_runs_again_and_nothing_else(self):
        self.run_suite()
        self.change("log/b.h")
        said, green = self.state()
        self.assertFalse(green)
        self.assertRegex(said, "stale since .*: 2 of 4 programs are to run")
        self.assertEqual(self.run_suite(),
                         (True, ["one_test.0", "one_test.1", "script_test"]))
        entry = self.entry()
        self.assertEqual(entry["programs"], self.hashes())
        self.assertEqual(entry["ran"], "one_test script_test")
        self.assertEqual(entry["commit"], self.tree.commit())
        self.assertTrue(self.state()[1])

    def test_a_test_whose_name_has_signs_of_patterns_runs_by_itself(self):
        self.run_suite()
        self.change("tests/two.h")
        self.assertEqual(self.run_suite(),
                         (True, ["Kinds/TwoTest.Ends/1+1", "script_test"]))

    def test_what_failed_runs_again_with_what_has_changed(self):
        self.run_suite()
        self.change("tests/two.h")
        self.fail("two_test")
        self.assertFalse(self.run_suite()[0])
        entry = self.entry()
        self.assertEqual(entry["outcome"], "failed")
        self.assertEqual(entry["programs"],
                         {**self.hashes(), "two_test": ledger.FAILED})
        self.assertRegex(self.state()[0], "FAILED at .*: two_test$")
        self.change("tests/client_test.cc")
        self.assertRegex(self.state()[0], "FAILED at .*: two_test; 3 of 4 programs")
        self.fail("two_test", False)
        self.assertEqual(self.run_suite(),
                         (True, ["Kinds/TwoTest.Ends/1+1", "client_test.0",
                                 "script_test"]))
        self.assertEqual(self.entry()["programs"], self.hashes())
        self.assertEqual(self.entry()["outcome"], "ok")

    def test_a_run_that_fails_by_something_else_vouches_for_no_test(self):
        write(self.folder, "dev", 'shift; ctest --test-dir build "$@"\n'
              'test "$1" = -N')
        self.assertFalse(self.run_suite()[0])
        self.assertEqual(set(self.entry()["programs"].values()), {ledger.FAILED})

    def test_a_build_that_fails_leaves_what_is_known(self):
        self.run_suite()
        before = self.entry()["programs"]
        self.change("log/b.h")
        write(self.folder, "dev", "exit 3")
        self.assertEqual(self.run_suite(), (False, []))
        self.assertEqual(self.entry()["programs"], before)
        self.assertFalse(self.state()[1])

    def test_nothing_is_noted_if_nothing_has_changed(self):
        self.run_suite()
        before = self.entry()
        self.assertEqual(self.run_suite(), (True, []))
        self.assertEqual(self.entry(), before)
        write(self.folder, "tests/nothing.h", "")
        git(self.folder, "add", "tests")
        git(self.folder, "commit", "-qm", "for scripts")
        self.assertRegex(self.state()[0], "2 of 4")  # client_test and the script

    def test_all_of_it_runs_if_that_is_asked_for(self):
        self.run_suite()
        self.assertEqual(self.run_suite(whole=True), (True, self.all_tests()))

    def test_an_older_entry_is_judged_by_all_files(self):
        self.run_suite()
        entry = {name: self.entry()[name] for name in ledger.FIELDS}
        book = self.book()
        book.add(entry, 1)
        book.write()
        self.assertTrue(self.state()[1])
        self.change("tests/two.h")
        self.assertRegex(self.state()[0], "stale: what it is built from")
        self.assertEqual(self.run_suite(), (True, self.all_tests()))

    def test_without_a_configured_folder_all_files_count(self):
        self.run_suite()
        os.remove(os.path.join(self.folder, "build", "build.ninja"))
        self.assertTrue(self.state()[1])
        self.change("tests/two.h")
        said, green = self.state()
        self.assertFalse(green)
        self.assertIn("not known until build or build is configured", said)

    def test_few_tests_get_the_load_of_many(self):
        self.suite = self.suite._replace(tests=suites.Tests("build", load=3))
        with mock.patch.object(os, "cpu_count", return_value=2):
            self.run_suite()
            self.assertEqual(self.loops, [3 * 2 - 1])
        self.suite = self.suite._replace(tests=suites.Tests("build", load=1))
        with mock.patch.object(os, "cpu_count", return_value=2):
            self.run_suite(whole=True)
        self.assertEqual(self.loops[1:], [0])

    def test_a_part_that_runs_takes_its_share_of_the_minutes(self):
        self.assertEqual(deep.minutes_of(self.suite, self.tree, self.book()), 60)
        self.run_suite()
        self.change("log/b.h")
        self.assertEqual(deep.minutes_of(self.suite, self.tree, self.book()),
                         deep.MINUTES_TO_BUILD + 30)
        self.assertEqual(deep.minutes_of(self.suite, self.tree, self.book(),
                                         whole=True), 60)


class CtestTest(unittest.TestCase):

    def test_each_program_is_in_one_part_and_stays_there(self):
        names = [f"{word}_test" for word in ("core", "api", "sim", "log", "pmem",
                                             "base", "update", "fabric")]
        all_of_them = {name: [f"{name}.0", f"{name}.1"] for name in names}
        parts = [ctest.part(all_of_them, number, 4) for number in range(1, 5)]
        self.assertEqual({name: tests for part in parts
                          for name, tests in part.items()}, all_of_them)
        self.assertEqual(sum(map(len, parts)), len(names))
        del all_of_them["core_test"]
        for number, part in enumerate(parts, 1):
            part.pop("core_test", None)
            self.assertEqual(ctest.part(all_of_them, number, 4), part)

    def test_what_came_of_each_test(self):
        with tempfile.TemporaryDirectory() as folder:
            write(folder, "CTestTestfile.cmake", """
                add_test(good true)
                add_test(bad false)
                add_test(absent /no/program)
                add_test(skipped sh -c "exit 77")
                set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
                add_test(off true)
                set_tests_properties(off PROPERTIES DISABLED ON)
                add_test(later sh -c "echo >>runs; test $(wc -l <runs) -lt 3")
                """)
            told = os.path.join(folder, "tests.xml")
            self.assertEqual(ctest.good_tests(told), set())
            subprocess.run(["ctest", "--test-dir", folder, "--repeat",
                            "until-fail:3", "--output-junit", told], check=False,
                           capture_output=True)
            self.assertEqual(ctest.good_tests(told), {"good", "skipped"})


class SuitesTest(unittest.TestCase):

    def test_names_are_unique_and_inputs_exist(self):
        names = [suite.name for suite in suites.SUITES]
        self.assertEqual(len(names), len(set(names)))
        for suite in suites.SUITES:
            for path in suite.inputs:
                listed = subprocess.run(
                    ["git", "-c", "safe.directory=*", "-C", ROOT, "ls-files",
                     "--", path], capture_output=True, text=True, check=True)
                self.assertNotEqual(listed.stdout, "", f"{suite.name}: {path}")

    def test_guests_are_those_of_the_guests_suites(self):
        listed = subprocess.run(
            [sys.executable, "-B", os.path.join(ROOT, "tests/vm/suites.py"),
             "--list"], capture_output=True, text=True, check=True)
        self.assertLessEqual(set(suites.GUESTS), set(listed.stdout.split()))

    def test_guests_that_are_skipped_count_nothing(self):
        with open(os.path.join(ROOT, "tools/dev"), encoding="utf-8") as file:
            said = re.search(r"vm-test: skipped because [^\"]*", file.read())
        for suite in suites.SUITES:
            if suite.name.startswith("guest-"):
                for line in (said.group(), f"dev: {said.group()}"):
                    self.assertIsNone(re.search(suite.counts, line), line)

    def test_suites_of_ctest_are_one_command_each(self):
        for suite in suites.SUITES:
            runs = [command for command in suite.commands
                    if "tools/dev test" in " ".join(command)]
            self.assertEqual(len(runs), 1 if suite.tests else 0, suite.name)
        parts = [suite.tests.part for suite in suites.SUITES
                 if suite.name.startswith("load-") and suite.tests.parts == 4]
        self.assertEqual(parts, [1, 2, 3, 4])

    def test_each_test_with_servers_is_under_load_by_one_suite(self):
        names = ["zookeeper_test.3", "ZookeeperFailOverTest.StatusTells",
                 "core_test.0", "StepDownTest.Aborts"]
        selected = {}
        for suite in suites.SUITES:
            if not suite.name.startswith("load-"):
                continue
            (command,) = suite.commands
            options = dict(zip(command, command[1:]))
            for name in names:
                is_slow = not re.search(r"_test\.\d$", name)
                if "-L" in options and not is_slow or (
                        "-LE" in options and is_slow):
                    continue
                if re.search(options.get("-R", ""), name) and not (
                        "-E" in options and re.search(options["-E"], name)):
                    selected.setdefault(name, set()).add(suite.name)
        fast = {f"load-{part}" for part in range(1, 5)}
        self.assertEqual(selected, {
            "zookeeper_test.3": {"load-servers"},
            "ZookeeperFailOverTest.StatusTells": {"load-servers"},
            "core_test.0": fast, "StepDownTest.Aborts": {"load-slow"}})

    def test_all_tests_with_servers_are_named(self):
        with open(os.path.join(ROOT, "tests/CMakeLists.txt"),
                  encoding="utf-8") as file:
            text = file.read()
        (of_program,) = re.findall(
            r"^alpheus_test\(zookeeper_test\b([^)]*)\)", text, re.MULTILINE)
        found = 0
        for path in ledger.Tree(ROOT).files(["tests/**.cc"]):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                source = file.read()
            if "fixtures/zookeeper_servers.h" not in source or (
                    path.removeprefix("tests/") in of_program):
                continue
            for name in re.findall(r"^TEST\w*\((\w+)", source, re.MULTILINE):
                self.assertRegex(f"{name}.", suites.WITH_SERVERS, path)
                found += 1
        self.assertGreater(found, 0)

    def test_scripts_that_read_less_are_tests(self):
        with open(os.path.join(ROOT, "tests/CMakeLists.txt"),
                  encoding="utf-8") as file:
            text = file.read()
        for name in programs.SCRIPTS + programs.WITHOUT_CPP:
            self.assertRegex(text, rf"(_test\(|NAME ){name}\b")

    def test_no_cpp_names_a_program_of_googletest(self):
        with open(os.path.join(ROOT, "tests/CMakeLists.txt"),
                  encoding="utf-8") as file:
            names = programs.GOOGLETEST.findall(file.read())
        self.assertGreater(len(names), 50)
        pattern = re.compile(rf"\b({'|'.join(names)})\b")
        for path in ledger.Tree(ROOT).files(suites.TESTED):
            if path.endswith(programs.CPP):
                with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                    text = programs.HARMLESS.sub("", file.read())
                text = programs.INCLUDE.sub("", text)
                self.assertIsNone(pattern.search(text), path)

    def test_inputs_are_all_that_the_programs_are_built_from(self):
        known = programs.of_folder(ledger.Tree(ROOT), suites.TESTED, "build")
        if known is None:
            self.skipTest("no build is configured")
        nodes = ["alpheus", "alpheusd", "alpheus-nemesis"]
        rounds = list(gate.KILL_ROUNDS)
        served = ["alpheus", "alpheusd", "service_rounds_writer"]
        run = {"nemesis": nodes, "service-failover": served, "kills": ["alpheus-demo", *nodes, *rounds],
               "guest-log": ["verbs_conformance_test", "verbs_guest_test",
                             "guest_log", *nodes],
               "simulator": ["alpheus-sim"], "mutants-by-seeds": ["alpheus-sim"],
               "simulator-requested": ["alpheus-sim"],
               "fuzz": [name for name in known.ninja.programs
                        if name.startswith("fuzz_")]}
        for suite in suites.SUITES:
            listed = ledger.Tree(ROOT).files(suite.inputs)
            for name in run.get(suite.name, ()):
                if name not in known.ninja.programs and name in rounds:
                    continue  # RocksDB is missing
                self.assertLessEqual(known.built_from(name), set(listed),
                                     f"{suite.name}: {name}")

    def test_documents_that_tests_read_are_inputs_of_the_tests(self):
        with open(os.path.join(ROOT, "tests/CMakeLists.txt"),
                  encoding="utf-8") as file:
            named = re.findall(r"\}/(docs/[\w/.]+)", file.read())
        with open(os.path.join(ROOT, ".ci/lint.py"), encoding="utf-8") as file:
            named += re.findall(r'GUIDE = "([^"]+)"', file.read())
        self.assertGreaterEqual(len(named), 2)
        for suite in suites.SUITES:
            if any(" test" in " ".join(command) for command in suite.commands):
                self.assertLessEqual(set(named), set(suite.inputs), suite.name)

    def test_the_ledger_is_no_input(self):
        tree = ledger.Tree(ROOT)
        for suite in suites.SUITES:
            listed = tree.git("ls-files", "--", *suite.inputs).splitlines()
            self.assertNotIn("docs/results/deep.json", listed, suite.name)

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        for command in ("deep", "gate"):
            done = subprocess.run(
                ["bash", "-c", f"{sys.executable} -B tools/rings/{command}.py "
                 "--list | head -c 1"], cwd=ROOT, capture_output=True, text=True,
                check=False)
            self.assertEqual((len(done.stdout), done.stderr), (1, ""))

    def test_the_inputs_of_a_build_have_all_that_it_compiles(self):
        for folder in suites.FOLDERS:
            self.assertIn(folder, suites.ALL)


if __name__ == "__main__":
    unittest.main()
