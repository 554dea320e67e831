#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Backups that the client in Python gets from a node that plays a part.

usage: backup_test.py, with the built package in PYTHONPATH
"""

import concurrent.futures
import hashlib
import os
import shutil
import struct
import tempfile
import threading
import unittest

import alpheus
import grpc

from alpheus.v1 import admin_service_pb2 as admin_pb
from alpheus.v1 import admin_service_pb2_grpc as admin_pb_grpc
from alpheus.v1 import log_service_pb2 as pb
from alpheus.v1 import log_service_pb2_grpc as pb_grpc

REGION_BYTES = 3000
PIECES = ((0, b"head"), (2000, b"a" * 500))


class Node(pb_grpc.LogServiceServicer, admin_pb_grpc.AdminServiceServicer):
    """A primary that sends these messages as a backup, and then ends, fails
    with `fails`, or says nothing until it is closed."""

    def __init__(self, messages, fails=None, is_silent=False):
        self._messages = messages
        self._fails = fails
        self._is_silent = is_silent
        self._closing = threading.Event()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
        pb_grpc.add_LogServiceServicer_to_server(self, self._server)
        admin_pb_grpc.add_AdminServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{port}"
        self._server.start()

    def close(self):
        self._closing.set()
        self._server.stop(None).wait()

    def GetStatus(self, request, context):
        return pb.GetStatusResponse(is_primary=True)

    def Backup(self, request, context):
        yield from self._messages
        if self._is_silent:
            self._closing.wait()
        if self._fails is not None:
            context.abort(self._fails, "a record was cleaned")


def begin():
    return admin_pb.BackupResponse(begin=admin_pb.BackupResponse.Begin(
        log="main", log_id="an id", epoch=5, head_lsn=2, end_lsn=9,
        region_bytes=REGION_BYTES))


def pieces():
    return [admin_pb.BackupResponse(piece=admin_pb.BackupResponse.Piece(
        offset=offset, data=data)) for offset, data in PIECES]


def end(count=len(PIECES), sum_of=PIECES):
    digest = hashlib.sha256()
    for offset, data in sum_of:
        digest.update(struct.pack("<Q", offset) + data)
    return admin_pb.BackupResponse(end=admin_pb.BackupResponse.End(
        pieces=count, sha256=digest.digest()))


class BackupTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="alpheus-backup-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "main.backup")

    def back_up(self, *messages, stall_seconds=60.0, **more):
        node = Node(messages, **more)
        self.addCleanup(node.close)
        log = alpheus.LogClient([node.address], stall_seconds=stall_seconds)
        self.addCleanup(log.close)
        return log.backup(self.path)

    def must_fail(self, error, pattern, *messages, **more):
        with self.assertRaisesRegex(error, pattern) as caught:
            self.back_up(*messages, **more)
        self.assertEqual(os.listdir(self.folder), [])
        return caught.exception

    def test_pieces_are_where_they_belong(self):
        backup = self.back_up(begin(), *pieces(), end())
        self.assertEqual(backup, alpheus.Backup("an id", 5, 2, 9))
        expected = bytearray(REGION_BYTES)
        for offset, data in PIECES:
            expected[offset:offset + len(data)] = data
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), expected)
        self.assertEqual(os.listdir(self.folder), ["main.backup"])

    def test_backup_without_its_end_is_none(self):
        self.must_fail(alpheus.AlpheusError, "no end", begin(), *pieces())
        self.must_fail(alpheus.AlpheusError, "does not begin")
        self.must_fail(alpheus.AlpheusError, "does not begin", *pieces())

    def test_sum_has_to_hold(self):
        for last in (end(count=3), end(sum_of=PIECES[:1]),
                     end(sum_of=PIECES[::-1])):
            self.must_fail(alpheus.DataLoss, "sum of the backup", begin(),
                           *pieces(), last)

    def test_error_of_the_node_is_told(self):
        error = self.must_fail(alpheus.AlpheusError, "was cleaned", begin(),
                               *pieces(), fails=grpc.StatusCode.ABORTED)
        self.assertEqual(error.code, "ABORTED")

    def test_node_that_says_nothing_is_given_up(self):
        self.must_fail(alpheus.AlpheusError, "says nothing", begin(),
                       *pieces(), is_silent=True, stall_seconds=0.2)

    def test_file_that_is_there_stays(self):
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("mine")
        with self.assertRaises(FileExistsError):
            self.back_up(begin(), *pieces(), end())
        with open(self.path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "mine")

    def test_folder_that_is_not_there_is_an_error(self):
        self.path = os.path.join(self.folder, "none", "main.backup")
        with self.assertRaises(FileNotFoundError):
            self.back_up(begin(), *pieces(), end())


if __name__ == "__main__":
    unittest.main()
