#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Experiments on etcd and Redis say what they compare, and one that can't be
made is skipped in sight. Needs neither server.

usage: peer_faults_test.py
"""

import os
import socket
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import peer_faults  # noqa: E402
import peer_process  # noqa: E402


def run(*arguments, path="/nowhere"):
    return subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, "peer_faults.py"), *arguments],
        env=dict(os.environ, PATH=path), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, check=False)


class PeerFaultsTest(unittest.TestCase):

    def test_what_is_missing_or_strange_is_counted(self):
        acked = peer_faults.values(0, 3)
        self.assertEqual(peer_faults.compared(acked, acked),
                         "all 3 acknowledged records")
        self.assertEqual(
            peer_faults.compared([acked[0], b"other"], acked),
            "2 of 3 acknowledged records missing, 1 others")

    def test_damage_is_where_it_should_be(self):
        value = peer_faults.values(7, 1)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            with open(path, "wb") as file:
                file.write(b"before" + value + b"behind")
            self.assertFalse(peer_process.patch(path, b"not there",
                                                peer_process.flip))
            self.assertTrue(peer_process.patch(path, value, peer_process.flip))
            with open(path, "rb") as file:
                data = file.read()
            self.assertEqual(len(data), len(value) + 12)
            self.assertEqual(sum(bin(a ^ b).count("1") for a, b in zip(
                data, b"before" + value + b"behind")), 1)
            self.assertFalse(peer_faults.cut_from(path, value, zero=False))
            self.assertTrue(peer_faults.cut_from(path, b"value-000007",
                                                 zero=True))
            with open(path, "rb") as file:
                torn = file.read()
            self.assertEqual(torn, b"beforevalue-".ljust(len(data), b"\0"))

    def test_record_is_awaited_in_a_file_that_is_written_late(self):
        value = peer_faults.values(7, 1)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            parts = [value[:5], value[5:]]  # after a look at no file

            def paths():
                if os.path.exists(path) or looks:
                    with open(path, "ab") as file:
                        file.write(parts.pop(0))
                looks.append(path)
                return [path]

            looks = []
            peer_process.await_in_file(paths, value, "a file")
            self.assertEqual(parts, [])
            self.assertEqual(len(looks), 3)

    def test_server_that_is_not_installed_is_skipped_in_sight(self):
        ran = run()
        self.assertEqual(ran.returncode, 0, ran.stderr)
        lines = ran.stdout.splitlines()
        self.assertEqual(len(lines), len(peer_faults.EXPERIMENTS))
        for line in lines:
            self.assertIn("skipped: no ", line)

    def test_ports_go_to_who_names_them_and_to_nobody_else(self):
        for port in peer_process.free_ports(4):
            with socket.socket() as other, self.assertRaises(OSError):
                other.bind(("127.0.0.1", port))
            socket.create_server(("127.0.0.1", port)).close()

    def test_bad_usage_is_refused(self):
        self.assertNotEqual(run("--only", "nothing").returncode, 0)
        self.assertEqual(run("--list").stdout.split(),
                         list(peer_faults.EXPERIMENTS))


if __name__ == "__main__":
    unittest.main()
