# SPDX-License-Identifier: Apache-2.0
"""ctest: the tests of a command of tools/dev, and what came of each.

Everything runs through tools/dev, which passes on to ctest what it doesn't know.
"""

import collections
import json
import os
import re
import subprocess
import xml.etree.ElementTree
import zlib

import child

LISTED = re.compile(r"^ *Test *#\d+: (\S+)")


def tests_by_program(command, folder, root):
    """{program: its tests} that a command runs, in ctest's order; None if it
    failed. A script counts as a program, whose name is that of its test. The
    command builds what it would run, and runs nothing."""
    names = []

    def show(line):
        found = LISTED.search(line)
        if found:
            names.append(found[1])
        else:
            print(line, flush=True)

    if child.run([*command, "-N"], root, show) != 0:
        return None
    of_test = programs_of_tests(os.path.join(root, folder))
    found = collections.defaultdict(list)
    for name in names:
        found[of_test[name]].append(name)
    return dict(found)


def programs_of_tests(folder):
    """{test: program} of all tests of a build folder."""
    listed = subprocess.run(
        ["ctest", "--test-dir", folder, "--show-only=json-v1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    found = {}
    for test in json.loads(listed.stdout)["tests"]:
        # Without a command its program is not built.
        program = test.get("command", [test["name"]])[0]
        inside = os.path.realpath(program).startswith(
            os.path.realpath(folder) + os.sep)
        found[test["name"]] = (os.path.basename(program) if inside
                               else test["name"])
    return found


def part(programs, number, parts):
    """Those of one part of several. A program stays in its part, whatever others
    there are; about as much time goes into each."""
    return {name: tests for name, tests in programs.items()
            if zlib.adler32(name.encode()) % parts == number - 1}


def selection(tests):
    """ctest's arguments for just these tests."""
    return ["-R", f"^({'|'.join(map(re.escape, tests))})$"]


def good_tests(path):
    """Names of the tests that passed, or that skipped themselves, by the file of
    ctest --output-junit; none without one."""
    if not os.path.exists(path):
        return set()
    good = set()
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped")
        if case.get("status") == "run" or (
                skipped is not None and
                skipped.get("message").startswith("SKIP_")):
            good.add(case.get("name"))
    return good
