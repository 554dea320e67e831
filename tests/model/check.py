#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check: searches the models of the protocol with spin, and their weakenings.

Usage: check.py [--quick] [--trail] [--list] [NAME...]
The models, of epochs, of changes of their configuration, of where a log ends
and of ceilings that are told, must have no counterexample as they are, and each
weakening must have one.
Prints a line for each configuration and exits with 1 if one is not as it must
be, with 77 if spin or the compiler is not there. --trail prints the shortest
execution that refutes a weakening. docs/verify/models.md explains both.

Every search is exhaustive: nothing is hashed away, no bound is put on the
depth. A weakening is searched breadth first, so that what is found is shortest;
its states are those visited until then. DEPTH_FIRST ones are as large as the
sound ones: what is found is not the shortest, and alike replicas swap numbers.
"""

import argparse
import collections
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # ctest counts this as skipped

# macros: given to spin; sound: whether no counterexample may exist; quick:
# whether it is part of the short run; model: the file that is searched.
Configuration = collections.namedtuple("Configuration",
                                       "name macros sound quick model")


def sound(name, macros, quick=False):
    return Configuration(name, macros.split(), True, quick, "epochs.pml")


def weak(name, macros, quick=True):
    return Configuration(name, ["WEAKENED", "LSNS=1", name] + macros.split(),
                         False, quick, "epochs.pml")


def sound_change(name, macros, quick=False):
    return Configuration(name, macros.split(), True, quick,
                         "configurations.pml")


def weak_change(name, macros, quick=True):
    return Configuration(name, ["WEAKENED", "DEPTH_FIRST", "PRIMARIES=1", name] +
                         macros.split(), False, quick, "configurations.pml")


def sound_end(name, macros, quick=False):
    return Configuration(name, macros.split(), True, quick, "ends.pml")


def weak_end(name):
    return Configuration(name, ["WEAKENED", name], False, True, "ends.pml")


def sound_ceiling(name, macros, quick=False):
    return Configuration(name, macros.split(), True, quick, "ceilings.pml")


def weak_ceiling(name):
    return Configuration(name, ["WEAKENED", name], False, True, "ceilings.pml")


# In worlds as small as these three later rules alone hide some weakenings.
UNFINISHED = "UNFINISHED_SHOWN UNFINISHED_CHANGED ORIGIN_FORGOTTEN"

CONFIGURATIONS = (
    sound("openings", "LSNS=1 OPENINGS=4", quick=True),
    sound("openings_two_records", "LSNS=2 OPENINGS=3"),
    sound("four_epochs_two_records",
          "LSNS=2 OPENINGS=4 FORGET_STALE NO_CRASH"),
    sound("torn", "LSNS=1 OPENINGS=3 RESYNC TELL_TORN", quick=True),
    sound("resync", "LSNS=1 OPENINGS=4 RESYNC FORGET_STALE"),
    sound("resync_two_records",
          "LSNS=2 OPENINGS=3 RESYNC FORGET_STALE NO_CRASH"),
    sound("damage", "LSNS=1 OPENINGS=3 DAMAGE", quick=True),
    sound("damage_and_resync",
          "LSNS=1 OPENINGS=3 RESYNC DAMAGE FORGET_STALE NO_CRASH", quick=True),
    weak("PAPER_EPOCH_FIRST", "OPENINGS=3"),
    weak("PAPER_REPAIR_FIRST", "OPENINGS=5"),
    weak("JOINS_COUNTED_EARLY", "OPENINGS=3 RESYNC"),
    weak("INSTALL_WITHOUT_PROMISE", "OPENINGS=3"),
    weak("PROMISE_NOT_ENFORCED", "OPENINGS=3"),
    weak("LONGEST_LOG_WINS", "OPENINGS=3"),
    weak("NACKS_UNFENCED", "OPENINGS=3"),
    weak("NO_EPOCH_TABLE", "OPENINGS=3"),
    weak("EQUAL_BALLOTS", "OPENINGS=3"),
    sound_change("replace", "REPLACE OPENINGS=4"),
    sound_change("replace_in_turn", "REPLACE OPENINGS=5 PRIMARIES=1",
                 quick=True),
    sound_change("replace_often", "REPLACE_TWICE OPENINGS=6 PRIMARIES=1"),
    sound_change("rival_replacements", "RIVAL_REPLACE OPENINGS=6 PRIMARIES=1"),
    sound_change("rival_joins",
                 "RIVAL_REPLACE OTHER_NODES RIVAL_IDS OPENINGS=4 PRIMARIES=1"),
    sound_change("add", "ADD OPENINGS=5 PRIMARIES=1", quick=True),
    sound_change("remove", "REMOVE OPENINGS=5 PRIMARIES=1"),
    sound_change("rival_removals", "REMOVE RIVAL_IDS OPENINGS=5 PRIMARIES=1",
                 quick=True),
    sound_change("remove_half", "REMOVE_HALF OPENINGS=6 PRIMARIES=1"),
    sound_change("grow_and_shrink", "GROW_AND_SHRINK OPENINGS=5 PRIMARIES=1"),
    sound_change("grow_and_replace", "GROW_AND_REPLACE OPENINGS=5 "
                 "PRIMARIES=1"),
    sound_change("grow_or_replace", "GROW_OR_REPLACE OPENINGS=5 PRIMARIES=1"),
    sound_change("grow_by_two", "GROW_BY_TWO OPENINGS=5 PRIMARIES=1"),
    sound_change("remove_two", "REMOVE_TWO OPENINGS=5 PRIMARIES=1"),
    sound_change("replace_and_remove",
                 "REPLACE_AND_REMOVE OPENINGS=5 PRIMARIES=1"),
    sound_change("sizes", "SIZES OPENINGS=6 PRIMARIES=1", quick=True),
    sound_change("steps", "STEPS OPENINGS=6 PRIMARIES=1", quick=True),
    sound_change("grow", "GROW OPENINGS=6", quick=True),
    weak_change("OLDER_COUNTS", f"STEPS OPENINGS=5 {UNFINISHED}"),
    weak_change("UNRETIRED_NOT_INSTALLED", f"STEPS OPENINGS=4 {UNFINISHED}"),
    weak_change("R_ENDS", "REMOVE RIVAL_IDS OPENINGS=5"),
    weak_change("FEW_END", f"STEPS OPENINGS=5 {UNFINISHED}"),
    weak_change("OLDER_LIST_ASKS", f"SIZES OPENINGS=6 {UNFINISHED}"),
    weak_change("FEW_OPEN", "REMOVE_TWO OPENINGS=4"),
    weak_change("LAGGARDS_SKIP", f"GROW_AND_SHRINK OPENINGS=5 {UNFINISHED}"),
    weak_change("OPERATOR_KNOWS", "GROW_AND_REPLACE OPENINGS=5"),
    weak_change("NOT_FORESEEN", "REPLACE_TWICE OPENINGS=5 MUST_NOT_BLOCK"),
    weak_change("OLD_QUORUM_NOT_ASKED",
                f"REMOVE_HALF OPENINGS=3 {UNFINISHED}"),
    weak_change("OLD_QUORUM_NOT_INSTALLED", "REPLACE OPENINGS=4"),
    weak_change("NEWCOMERS_FIRST", "REPLACE OPENINGS=5"),
    weak_change("FORMER_MEMBER_RETURNS", "REPLACE OPENINGS=5"),
    weak_change("BLANK_NACKS_ALL", "REPLACE OPENINGS=4 DAMAGE"),
    sound_end("ends", "LSNS=6"),
    sound_end("ends_short", "LSNS=5 OPENINGS=2", quick=True),
    weak_end("CEILING_AFTER_BYTES"),
    weak_end("CEILING_OF_ANY_LAP"),
    weak_end("MARK_BEFORE_RECORDS"),
    weak_end("END_AT_THE_PLACE"),
    weak_end("PLACE_AFTER_THE_RECORD"),
    weak_end("HEAD_UNREAD"),
    sound_ceiling("ceilings", "LSNS=5 OPENINGS=2"),
    sound_ceiling("ceilings_openings", "LSNS=4 OPENINGS=3"),
    sound_ceiling("ceilings_short", "LSNS=4 OPENINGS=2", quick=True),
    weak_ceiling("POSTED_WHEN_TOLD"),
    weak_ceiling("ACKED_BEFORE_THE_SUPERLINE"),
    weak_ceiling("REPAIRED_BEYOND_THE_CEILING"),
    weak_ceiling("SUCCESSION_LOWERS"),
)

Result = collections.namedtuple(
    "Result", "violated complete states transitions depth megabytes seconds")


def run(command, folder, seconds):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=seconds)


def run_or_exit(command, folder):
    done = run(command, folder, 900)
    if done.returncode != 0:
        sys.exit(f"check: {' '.join(command)} failed:\n{done.stdout}")


def number(pattern, text):
    match = re.search(pattern, text)
    if match is None:
        sys.exit(f"check: no `{pattern}` in the output of the search:\n{text}")
    return float(match.group(1))


def is_breadth_first(configuration):
    return (not configuration.sound and
            "DEPTH_FIRST" not in configuration.macros)


def macros_of(configuration):
    macros = list(configuration.macros)
    if is_breadth_first(configuration):
        macros += ["NO_SYMMETRY", "BREADTH_FIRST"]
    return [f"-D{macro}" for macro in macros]


def search(configuration, folder, memory_mib):
    """Compiles and runs the search in `folder`. Ref: spin's manual of pan."""
    shutil.copy(os.path.join(FOLDER, configuration.model), folder)
    run_or_exit(["spin", "-a"] + macros_of(configuration) +
                [configuration.model], folder)
    options = ["-DSAFETY", f"-DMEMLIM={memory_mib}"]
    if is_breadth_first(configuration):
        options.append("-DBFS")
    # A short search spends most of its time on compiling: three times as much
    # with -O1 as with -O0.
    level = "-O0" if configuration.quick else "-O1"
    run_or_exit(["gcc", level, "-w", "-o", "pan", "pan.c"] + options, folder)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # More depth than any of them has: a search that is cut off is an error.
    done = run(["./pan", "-m1000000", "-w22"], folder, 1800)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    text = done.stdout
    return Result(
        violated="assertion violated" in text,
        complete=("max search depth too small" not in text and
                  "Search not completed" not in text and
                  done.returncode == 0),
        states=int(number(r"([\d.e+]+) states, stored", text)),
        transitions=int(number(r"([\d.e+]+) transitions", text)),
        depth=int(number(r"depth reached (\d+)", text)),
        megabytes=number(r"([\d.]+)\s+total actual memory usage", text),
        seconds=after.ru_utime + after.ru_stime - before.ru_utime -
        before.ru_stime)


def is_as_it_must_be(configuration, result):
    if configuration.sound:
        return result.complete and not result.violated
    return result.violated


def verdict(configuration, result):
    if result.violated:
        found = "counterexample"
    elif result.complete:
        found = "no counterexample"
    else:
        found = "not complete"
    if is_as_it_must_be(configuration, result):
        return found if configuration.sound else found + ", as it must be"
    return "WRONG: " + found


def trail(configuration, folder):
    """The lines that the model prints along the execution found."""
    done = run(["spin", "-t", "-T"] + macros_of(configuration) +
               [configuration.model], folder, 300)
    lines = []
    for line in done.stdout.splitlines():
        if re.match(r"\s*(epoch|opening|replica|record) ", line):
            lines.append("    " + line.strip())
        elif "text of failed assertion" in line:
            lines.append("    violates " + line.split("assertion: ")[1])
    return "\n".join(lines)


HEADER = (f"{'configuration':<26}{'states':>10}{'transitions':>13}{'depth':>7}"
          f"{'MiB':>7}{'CPU s':>7}  verdict")


def row(configuration, result):
    return (f"{configuration.name:<26}{result.states:>10,}"
            f"{result.transitions:>13,}{result.depth:>7,}"
            f"{result.megabytes:>7,.0f}{result.seconds:>7.1f}  "
            f"{verdict(configuration, result)}")


def select(names, quick):
    known = {configuration.name for configuration in CONFIGURATIONS}
    for name in names:
        if name not in known:
            sys.exit(f"check: no configuration {name}; --list prints all")
    return [configuration for configuration in CONFIGURATIONS
            if (configuration.name in names if names
                else configuration.quick or not quick)]


def check(configurations, with_trail, memory_mib=6144):
    """Runs them all; returns the names of those that are not as they must be.
    """
    wrong = []
    start = time.monotonic()
    print(HEADER, flush=True)
    for configuration in configurations:
        with tempfile.TemporaryDirectory() as folder:
            result = search(configuration, folder, memory_mib)
            print(row(configuration, result), flush=True)
            if result.violated and (with_trail or configuration.sound):
                print(trail(configuration, folder), flush=True)
        if not is_as_it_must_be(configuration, result):
            wrong.append(configuration.name)
    print(f"model: {len(configurations) - len(wrong)} of {len(configurations)} "
          f"as they must be, {time.monotonic() - start:.0f} s with compiling; "
          "all searches exhaustive")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true",
                        help="only those that take a few seconds")
    parser.add_argument("--trail", action="store_true",
                        help="print the executions that refute the weakenings")
    parser.add_argument("--list", action="store_true",
                        help="print names and macros")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    configurations = select(arguments.names, arguments.quick)
    if arguments.list:
        for configuration in configurations:
            print(f"{configuration.name:<26} {' '.join(configuration.macros)}")
        return 0
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            print(f"skipped: {program} is not there (tools/dev model installs "
                  "it)")
            return SKIPPED
    wrong = check(configurations, arguments.trail)
    if wrong:
        print(f"model: wrong: {' '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
