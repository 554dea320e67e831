#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs Debian's db_bench and ldb, unmodified, with the plugin preloaded.

Usage: tools_test.py PLUGIN ALPHEUS. Without the tools it says so and is skipped (77).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PLUGIN = sys.argv[1]
ALPHEUS = sys.argv[2]


def run(*command, preload=True, uri=None):
    environment = dict(os.environ)
    if uri:
        environment["ALPHEUS_ROCKSDB_URI"] = uri
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

    def keys(self, preload=True):
        done = self.ldb("scan", preload=preload)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [line.replace(" : ", "=") for line in done.stdout.split("\n")
                if " : " in line]

    def put(self, key, value, preload=True):
        uri = [f"--fs_uri={self.uri}?create=1MiB"] if preload else []
        done = run("ldb", f"--db={self.db}", *uri, "--create_if_missing",
                   "put", key, value, preload=preload)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def alpheus(self, *arguments, status=0):
        done = subprocess.run([ALPHEUS, *arguments], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def log(self, name="wal"):
        return os.path.join(self.folder.name, name)

    def damage(self, text):
        with open(self.log(), "r+b") as file:
            bytes_ = bytearray(file.read())
            at = bytes_.find(text)
            self.assertGreater(at, 0)
            bytes_[at + 20] ^= 1
            file.seek(0)
            file.write(bytes_)

    def bench_with_damage(self):
        self.bench("--benchmarks=fillseq", "--num=300", "--sync=1")
        # The key of db_bench's 151st put.
        self.damage((150).to_bytes(8, "big") + b"0" * 8)
        refused = self.ldb("scan")
        self.assertNotEqual(refused.returncode, 0)
        said = refused.stdout + refused.stderr
        self.assertIn("alpheus salvage", said)
        self.assertIn(f"alpheus export-wal {self.log()} DIR", said)

    def test_goes_back_by_export_and_comes_again(self):
        self.put("a", "1")
        self.put("b", "2")
        self.alpheus("export-wal", self.log(), self.db)
        self.assertEqual(self.keys(preload=False), ["a=1", "b=2"])
        self.put("c", "3", preload=False)
        self.put("a", "4", preload=False)
        refused = self.ldb("put", "d", "5")
        self.assertIn("drop_wal=true", refused.stdout + refused.stderr)
        self.uri += "?drop_wal=true"
        self.ldb_says("put", "d", "5")
        self.uri = self.uri.partition("?")[0]
        self.assertEqual(self.keys(), ["a=4", "b=2", "c=3", "d=5"])

    def test_log_of_another_size_takes_the_wal(self):
        self.put("a", "1")
        self.put("b", "2")
        self.alpheus("export-wal", self.log(), self.db)
        self.uri = f"alpheus://{self.log('larger')}?create=4MiB&adopt=true"
        self.ldb_says("put", "c", "3")
        self.uri = f"alpheus://{self.log('larger')}"
        self.assertEqual(self.keys(), ["a=1", "b=2", "c=3"])
        self.assertEqual(self.plain_wal_files(), [])

    def test_damaged_log_is_salvaged_and_opened(self):
        self.bench_with_damage()
        self.alpheus("salvage", self.log(), self.log("saved"), status=3)
        os.rename(self.log(), self.log("damaged"))
        os.rename(self.log("saved"), self.log())
        # RocksDB reads up to the damage, as with a WAL of its own that is
        # damaged there.
        self.assertEqual(len(self.ldb_says("scan", "--hex").splitlines()), 150)
        self.ldb_says("put", "a", "1")
        self.assertEqual(len(self.ldb_says("scan", "--hex").splitlines()), 151)

    def test_damaged_log_is_exported_and_opened_without_the_plugin(self):
        self.bench_with_damage()
        self.alpheus("export-wal", self.log(), self.db, status=3)
        done = self.ldb("scan", "--hex", preload=False)
        self.assertEqual(len(done.stdout.splitlines()), 150, done.stderr)

    def test_remedy_of_a_log_that_is_not_there(self):
        done = self.ldb("--create_if_missing", "put", "a", "1")
        said = done.stdout + done.stderr
        remedy = f"{self.uri}?create=1GiB"
        self.assertIn(remedy, said)
        self.uri = remedy.replace("1GiB", "1MiB")
        self.ldb_says("--create_if_missing", "put", "a", "1")

    def test_folder_that_is_not_there_is_told(self):
        self.uri = f"alpheus://{self.folder.name}/not/there/wal?create=1MiB"
        done = self.ldb("--create_if_missing", "put", "a", "1")
        self.assertIn(f"the folder {self.folder.name}/not/there is not there",
                      done.stdout + done.stderr)
        os.makedirs(os.path.join(self.folder.name, "not", "there"))
        self.ldb_says("--create_if_missing", "put", "a", "1")

    def test_paths_that_are_no_log_are_told(self):
        folder = self.log("folder")
        os.mkdir(folder)
        with open(self.log("text"), "w", encoding="ascii") as file:
            file.write("text\n")
        for path, told in ((folder, "is a folder"),
                           (self.log("text"), "not a log region"),
                           (self.log("text") + "/wal", "Not a directory"),
                           ("wal", "alpheus:///wal")):
            for create in ("", "?create=1MiB"):
                self.uri = f"alpheus://{path}{create}"
                done = self.ldb("--create_if_missing", "put", "a", "1")
                self.assertIn(told, done.stdout + done.stderr)
                self.assertNotIn("export-wal", done.stdout + done.stderr)
        self.assertFalse(os.path.exists(self.db + "/CURRENT"))

    def test_log_that_nobody_made_is_not_followed(self):
        self.uri += "?follow=true"
        done = self.ldb("scan")
        self.assertIn("there is no log to follow", done.stdout + done.stderr)

    def test_older_copy_of_the_log_is_told(self):
        self.put("a", "1")
        shutil.copy(self.log(), self.log("old"))
        self.ldb_says("compact")
        self.put("c", "3")
        shutil.move(self.log(), self.log("new"))
        shutil.copy(self.log("old"), self.log())
        done = self.ldb("get", "a")
        self.assertIn("the log is an older copy", done.stdout + done.stderr)
        shutil.move(self.log("new"), self.log())
        self.assertEqual(self.keys(), ["a=1", "c=3"])

    def unchanged(self, uri, *command, status=0):
        done = run(*command, uri=uri)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_program_without_a_uri_is_put_on_a_log(self):
        uri = f"{self.uri}?create=1MiB"
        self.unchanged(uri, "ldb", f"--db={self.db}", "--create_if_missing",
                       "put", "a", "1")
        self.assertEqual(self.plain_wal_files(), [])
        out = self.unchanged(uri, "ldb", f"--db={self.db}", "scan")
        self.assertEqual(out.strip(), "a : 1")
        self.assertEqual(self.keys(), ["a=1"])

    def test_program_that_opens_no_database_makes_no_log(self):
        self.unchanged(f"{self.uri}?create=1MiB", "ldb", "--help")
        self.assertFalse(os.path.exists(self.log()))

    def test_uri_of_the_environment_that_says_nothing_ends_the_program(self):
        out = self.unchanged("alpheus:///x?size=1", "ldb", f"--db={self.db}",
                             "scan", status=1)
        self.assertIn("ALPHEUS_ROCKSDB_URI: no option is called `size`", out)

    def test_environment_of_the_program_is_told(self):
        out = self.unchanged(f"{self.uri}?create=1MiB", "ldb",
                             "--fs_uri=posix://", f"--db={self.db}",
                             "--create_if_missing", "put", "a", "1")
        self.assertIn("not with that of ALPHEUS_ROCKSDB_URI", out)

    def test_folder_has_a_log_for_each_database(self):
        os.mkdir(self.log("wals"))
        uri = f"alpheus://{self.log('wals')}/?create=1MiB"
        for name in ("one", "two"):
            db = self.log(name)
            self.unchanged(uri, "db_bench", f"--db={db}", "--num=1000",
                           "--benchmarks=fillseq", "--sync=1")
            self.unchanged(uri, "ldb", f"--db={db}", "put", name, "1")
        self.assertEqual(len(os.listdir(self.log("wals"))), 2)
        for name, other in (("one", "two"), ("two", "one")):
            db = self.log(name)
            self.unchanged(uri, "ldb", f"--db={db}", "get", name)
            self.unchanged(uri, "ldb", f"--db={db}", "get", other, status=1)

    def test_ring_is_flushed_before_it_is_full(self):
        out = run("db_bench", f"--db={self.db}", "--benchmarks=fillseq",
                  "--num=50000", f"--fs_uri={self.uri}?create=4MiB")
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        self.assertNotIn("full", out.stdout + out.stderr)

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
