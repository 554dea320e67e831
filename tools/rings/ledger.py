# SPDX-License-Identifier: Apache-2.0
"""ledger: docs/results/deep.json, what came of the deep suites, and when.

One entry is one run of one suite:

    suite     its name (suites.py)
    commit    what was checked out
    inputs    hash of all files that the suite is built from and reads
    date      when the run ended
    machine   processor, cores, memory
    seconds   how long it took
    outcome   "ok" or "failed"
    counts    the lines of its output that say how much it did

and of a suite that ctest runs

    programs  hash of the inputs of each test program (programs.py) with which its
              tests were good last, in this run or an earlier one; "failed" if they
              failed in their last run
    ran       names of the programs whose tests this run ran

An entry is valid while the files that it depends on have the same contents,
whatever has happened to commits and other files since. With `programs` it is
valid program by program.
"""

import hashlib
import json
import os
import subprocess

FIELDS = ("suite", "commit", "inputs", "date", "machine", "seconds", "outcome",
          "counts")
FIELDS_OF_TESTS = ("programs", "ran")
FAILED = "failed"


class LedgerError(Exception):
    """The ledger can't be read, or git can't say what is checked out."""


class Tree:
    """The files of a checkout, as git has them."""

    def __init__(self, root):
        self.root = root

    def git(self, *arguments):
        # The clone may belong to another user than the one that runs this.
        done = subprocess.run(
            ["git", "-c", "safe.directory=*", "-C", self.root, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False)
        if done.returncode != 0:
            raise LedgerError(f"git {' '.join(arguments)} failed: "
                              f"{done.stderr.strip()}")
        return done.stdout

    def commit(self, name="HEAD"):
        """The whole hash of a commit, which may be named in short."""
        return self.git("rev-parse", "--verify", f"{name}^{{commit}}").strip()

    def inputs(self, paths):
        """Hash of all files that git has below these paths (pathspecs)."""
        return hashlib.sha256(self._listed(paths).encode()).hexdigest()[:16]

    def files(self, paths):
        """{path: git's hash of it} of the same files."""
        found = {}
        for line in self._listed(paths).splitlines():
            told, _, path = line.partition("\t")
            found[path] = told.split()[1]
        return found

    def _listed(self, paths):
        listed = self.git("ls-files", "--stage", "--", *paths)
        if not listed:
            raise LedgerError(f"git has nothing below {' '.join(paths)}")
        return listed

    def changes(self, paths):
        """Files below these paths that differ from what is committed."""
        status = self.git("status", "--porcelain", "--", *paths)
        return [line[3:] for line in status.splitlines()]


class Ledger:
    """The entries of a file, in the order of suites and dates."""

    def __init__(self, path):
        self.path = path
        self.entries = []
        if not os.path.exists(path):
            return
        try:
            with open(path, encoding="utf-8") as file:
                self.entries = json.load(file)
            for entry in self.entries:
                if set(entry) not in (set(FIELDS),
                                      set(FIELDS + FIELDS_OF_TESTS)):
                    raise ValueError(f"an entry has the fields "
                                     f"{', '.join(entry)} instead of "
                                     f"{', '.join(FIELDS)}, and maybe "
                                     f"{', '.join(FIELDS_OF_TESTS)}")
        except (ValueError, TypeError) as error:
            raise LedgerError(f"{path}: {error}; the newest good version is in "
                              "git") from error

    def of(self, suite):
        """Its entries, the oldest first."""
        return [entry for entry in self.entries if entry["suite"] == suite]

    def add(self, entry, keep):
        """Adds it; of the suite's entries the `keep` newest stay."""
        newest = (self.of(entry["suite"]) + [entry])[-keep:]
        self.entries = [old for old in self.entries
                        if old["suite"] != entry["suite"]] + newest
        self.entries.sort(key=lambda old: (old["suite"], old["date"]))

    def write(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        text = ",\n".join(
            json.dumps({name: entry[name] for name in FIELDS + FIELDS_OF_TESTS
                        if name in entry}, indent=1)
            for entry in self.entries)
        # The new file is written beside the old one first: an interrupted run
        # leaves the old one.
        beside = self.path + ".new"
        with open(beside, "w", encoding="utf-8") as file:
            file.write(f"[\n{text}\n]\n")
        os.replace(beside, self.path)
