#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Debian's db_bench and ldb, unmodified, with the plugin preloaded.

Usage: tools_test.py PLUGIN. Without the tools it says so and is skipped (77).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUGIN = sys.argv[1]


def run(*command, preload=True):
    environment = dict(os.environ)
    if preload:
        environment["LD_PRELOAD"] = PLUGIN
    return subprocess.run(command, env=environment, capture_output=True,
                          text=True, check=False)


class ToolsTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(
            dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(self.folder.cleanup)
        self.db = os.path.join(self.folder.name, "db")
        self.uri = f"alpheus://{self.folder.name}/wal"

    def bench(self, *arguments):
        done = run("db_bench", f"--db={self.db}",
                   f"--fs_uri={self.uri}?create=64MiB", *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def ldb(self, *arguments, preload=True):
        uri = [f"--fs_uri={self.uri}"] if preload else []
        return run("ldb", f"--db={self.db}", *uri, *arguments, preload=preload)

    def ldb_says(self, *arguments):
        done = self.ldb(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def plain_wal_files(self):
        return [name for name in os.listdir(self.db) if name.endswith(".log")
                and not os.path.islink(os.path.join(self.db, name))]

    def test_bench_writes_its_wal_into_the_log(self):
        out = self.bench("--benchmarks=fillrandom,readrandom", "--num=5000",
                         "--sync=1", "--threads=2")
        self.assertIn("fillrandom", out)
        self.assertIn("found)", out)
        self.assertEqual(self.plain_wal_files(), [])
        self.assertGreater(len(self.ldb_says("scan").splitlines()), 1000)

    def test_what_bench_wrote_is_read_again(self):
        self.bench("--benchmarks=fillseq", "--num=3000", "--value_size=100")
        self.assertEqual(len(self.ldb_says("scan", "--hex").splitlines()), 3000)

    def test_ldb_puts_and_gets(self):
        self.uri += "?create=1MiB"
        self.ldb_says("--create_if_missing", "put", "a", "1")
        self.assertEqual(self.ldb_says("get", "a").strip(), "1")
        self.ldb_says("put", "b", "2")
        self.ldb_says("delete", "a")
        self.assertIn("b : 2", self.ldb_says("scan"))
        self.assertEqual(self.plain_wal_files(), [])

    def test_ldb_follows_and_changes_nothing(self):
        self.bench("--benchmarks=fillseq", "--num=10")
        log = os.path.join(self.folder.name, "wal")
        with open(log, "rb") as file:
            before = file.read()
        self.uri += "?follow=true"
        secondary = os.path.join(self.folder.name, "secondary")
        out = self.ldb_says(f"--secondary_path={secondary}", "scan", "--hex")
        self.assertEqual(len(out.splitlines()), 10)
        self.assertIn("follow", self.ldb("put", "a", "1").stderr)
        with open(log, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_wal_is_dumped(self):
        self.bench("--benchmarks=fillseq", "--num=10")
        wal = next(os.path.join(self.db, name) for name in os.listdir(self.db)
                   if name.endswith(".log"))
        out = self.ldb_says("dump_wal", f"--walfile={wal}", "--header")
        self.assertGreaterEqual(out.count("PUT"), 10)

    def test_checkpoint_opens_without_the_plugin(self):
        self.bench("--benchmarks=fillseq", "--num=10")
        copy = os.path.join(self.folder.name, "checkpoint")
        self.ldb_says("checkpoint", f"--checkpoint_dir={copy}")
        self.db = copy
        done = self.ldb("scan", preload=False)
        self.assertEqual(len(done.stdout.splitlines()), 10, done.stderr)

    def test_without_the_plugin_the_database_is_not_opened(self):
        self.bench("--benchmarks=fillseq", "--num=10")
        done = self.ldb("scan", preload=False)
        self.assertIn("File name too long", done.stdout + done.stderr)

    def test_wrong_uri_is_explained(self):
        done = run("ldb", f"--db={self.db}", "--fs_uri=alpheus:///x?size=1",
                   "scan")
        self.assertIn("no option is called `size`", done.stdout + done.stderr)


if __name__ == "__main__":
    if not shutil.which("db_bench") or not shutil.which("ldb"):
        print("skipped: no db_bench and ldb (rocksdb-tools)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
