"""Answers on disk: their format, damage, and how often they are written."""

import hashlib
import os
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

from endpoint_resolver import Endpoint, Port, file_format, saver
from endpoint_resolver.directory import Directory
from endpoint_resolver.file_format import DamagedFile, Saved, decode, encode
from endpoint_resolver.handle import SetHandle
from endpoint_resolver.held import Held
from endpoint_resolver.set_name import SetName

WEB = SetName("default", "web")
POD = Endpoint(
    "eu", "web-1", ("10.0.0.1", "fd00::1"), (Port("http", 8080),), True, True, False, "eu-1", "n1", {"version": "2", "ü": "\n"}
)
SAVED = Saved(WEB, 1700000000000001, 1767225600, (POD, Endpoint("us", "web-2")))
# The format that all clients share.
TEXT = (
    rb'{"format":1,"set":"default/web","version":1700000000000001,"confirmedAt":"2026-01-01T00:00:00Z","endpoints":['
    rb'{"cluster":"eu","pod":"web-1","addresses":["10.0.0.1","fd00::1"],"ports":[{"name":"http","number":8080}],'
    rb'"ready":true,"serving":true,"terminating":false,"zone":"eu-1","node":"n1","labels":{"version":"2","\u00fc":"\n"}},'
    rb'{"cluster":"us","pod":"web-2","addresses":[],"ports":[],'
    rb'"ready":false,"serving":false,"terminating":false,"zone":"","node":"","labels":{}}]}'
)


def with_digest(text):
    return b"sha256:" + hashlib.sha256(text).hexdigest().encode() + b"\n" + text


class Format(unittest.TestCase):
    def test_d3_the_file_is_the_one_of_all_clients(self):
        self.assertEqual(encode(SAVED), with_digest(TEXT))
        self.assertEqual(decode(WEB, with_digest(TEXT)), SAVED)
        self.assertEqual(file_format.file_name(SetName("default", "web.v2")), "default.web.v2.json")

    def test_d3_another_client_may_write_spaces_and_more_fields(self):
        text = TEXT.replace(b'"format":1,', b'{"new": [null], "format": 1,'[1:]).replace(b'"zone":"",', b'"zone": "", "later": 2,')
        self.assertEqual(decode(WEB, with_digest(text + b"\n")), SAVED)

    def test_d3_a_file_cut_off_at_any_byte_is_damaged(self):
        data = encode(SAVED)
        for length in range(len(data)):
            with self.subTest(length), self.assertRaises(DamagedFile):
                decode(WEB, data[:length])

    def test_d3_a_file_with_any_flipped_bit_is_damaged(self):
        data = encode(SAVED)
        for at in range(len(data)):
            for bit in range(8):
                flipped = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
                with self.subTest(at=at, bit=bit), self.assertRaises(DamagedFile):
                    decode(WEB, flipped)

    def test_d3_foreign_content_is_damaged_also_with_its_digest(self):
        replacements = [
            (b'"format":1', b'"format":2'),
            (b"default/web", b"default/other"),
            (b'"version":1700000000000001', b'"version":0'),
            (b'"version":1700000000000001', b'"version":18446744073709551616'),
            (b'"version":1700000000000001', b'"version":true'),
            (b"2026-01-01T00:00:00Z", b"2026-01-01T00:00:00+01:00"),
            (b"8080", b"65536"),
            (b'"ready":true', b'"ready":1'),
            (b'"addresses":[]', b'"addresses":[1]'),
            (b'"labels":{}', b'"labels":{"a":1}'),
            (b'"pod":"web-2",', b""),
            (b'"endpoints":[{', b'"endpoints":[null,{'),
            (TEXT, b"[]"),
            (TEXT, b""),
            (TEXT, b"\xff"),
            (TEXT, b"[" * 100_000),
            (TEXT, b"1" * 10_000),
        ]
        for before, after in replacements:
            self.assertIn(before, TEXT)
            with self.subTest(after[:40]), self.assertRaises(DamagedFile):
                decode(WEB, with_digest(TEXT.replace(before, after)))


class Files(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.path = Path(temporary.name) / "new" / "answers"
        self.directory = Directory(self.path)
        self.file = self.path / "default.web.json"

    def test_d3_what_is_written_is_read(self):
        self.assertIsNone(self.directory.read(WEB))
        self.directory.write(SAVED)
        self.assertEqual(self.directory.read(WEB), SAVED)
        self.assertEqual(os.listdir(self.path), ["default.web.json"])

    def test_d3_a_damaged_file_is_ignored_with_a_warning_and_replaced(self):
        self.file.write_bytes(encode(SAVED)[:-1])
        with self.assertLogs("endpoint_resolver", "WARNING") as logs:
            self.assertIsNone(self.directory.read(WEB))
        self.assertIn("default.web.json", logs.output[0])
        self.directory.write(SAVED)
        self.assertEqual(self.directory.read(WEB), SAVED)

    def test_d3_a_write_that_fails_keeps_the_file_and_leaves_nothing(self):
        self.directory.write(SAVED)
        with mock.patch("os.replace", side_effect=OSError("disk full")), self.assertRaises(OSError):
            self.directory.write(Saved(WEB, 2, 0, ()))
        self.assertEqual(self.directory.read(WEB), SAVED)
        self.assertEqual(os.listdir(self.path), ["default.web.json"])

    def test_d3_files_of_a_process_that_ended_in_a_write_are_removed(self):
        left, current = self.path / ".endpoint-resolver-1.tmp", self.path / ".endpoint-resolver-2.tmp"
        left.touch()
        current.touch()
        os.utime(left, (0, 0))
        Directory(self.path)
        self.assertEqual([left.exists(), current.exists()], [False, True])

    def test_d3_a_directory_that_can_not_be_made_is_a_warning(self):
        self.file.touch()
        with self.assertLogs("endpoint_resolver", "WARNING"):
            directory = Directory(self.file)
        with self.assertLogs("endpoint_resolver", "WARNING"):
            self.assertIsNone(directory.read(WEB))


class Writes:
    """A directory that counts."""

    def __init__(self, failures=0):
        self.versions = []
        self.failures = failures
        self.changed = threading.Condition()

    def write(self, saved):
        with self.changed:
            self.versions.append(saved.version)
            self.changed.notify_all()
            if len(self.versions) <= self.failures:
                raise OSError("disk full")

    def wait(self, count):
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.versions) >= count, 10):
                raise AssertionError(f"waited for {count} writes: {self.versions}")


class Saver(unittest.TestCase):
    def test_d3_a_set_is_written_at_once_then_after_the_interval_and_at_the_end(self):
        handle, writes = SetHandle(WEB, Held()), Writes()
        with mock.patch.object(saver, "MIN_INTERVAL", 3600.0):
            thread = saver.Saver(writes)
            thread.start()
            for version in range(1, 100):
                handle.replace(Held((), version, confirmed=time.monotonic()))
                thread.changed(handle)
                writes.wait(1)
            thread.close()
            thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertEqual((len(writes.versions), writes.versions[-1]), (2, 99))

    def test_d3_the_interval_ends(self):
        handle, writes = SetHandle(WEB, Held()), Writes()
        with mock.patch.object(saver, "MIN_INTERVAL", 0.01):
            thread = saver.Saver(writes)
            thread.start()
            for version in range(1, 4):
                handle.replace(Held((), version, confirmed=time.monotonic()))
                thread.changed(handle)
                writes.wait(version)
            thread.close()
            thread.join(10)
        self.assertEqual(writes.versions, [1, 2, 3])

    def test_d3_a_write_that_fails_is_tried_again(self):
        handle, writes = SetHandle(WEB, Held((), 1)), Writes(failures=1)
        thread = saver.Saver(writes)
        with self.assertLogs("endpoint_resolver", "WARNING"):
            thread.start()
            thread.changed(handle)
            writes.wait(1)
            thread.close()
            thread.join(10)
        self.assertEqual(writes.versions, [1, 1])

    def test_d3_a_confirmation_without_a_change_is_written_now_and_then(self):
        handle, writes = SetHandle(WEB, Held((), 1)), Writes()
        with mock.patch.object(saver, "REFRESH_INTERVAL", 0.01):
            thread = saver.Saver(writes)
            thread.start()
            thread.changed(handle)
            writes.wait(1)
            handle.replace(Held((), 1, confirmed=time.monotonic()))
            writes.wait(2)
            thread.close()
            thread.join(10)
        self.assertEqual(writes.versions, [1, 1])
