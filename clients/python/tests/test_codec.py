"""The codec: against bytes that were encoded by hand, and against random ones."""

import random
import unittest
from unittest import mock

from endpoint_resolver import codec, messages
from endpoint_resolver.codec import decode, encode
from endpoint_resolver.wire import DecodeError, content_field, number_field, varint

from . import samples

SEED = 20
CASES = 10_000

# Each message of the proto, with all of its fields, and its bytes encoded by hand.
KEY = (messages.EndpointKey("eu", "a"), b"\x0a\x02eu\x12\x01a")
PORT = (messages.Port("http", 8080), b"\x0a\x04http\x10\x90\x3f")
SET = (messages.SetId("default", "web"), b"\x0a\x07default\x12\x03web")
STALE = (messages.StaleMember("us", 300), b"\x0a\x02us\x10\xac\x02")
ENDPOINT = (
    messages.Endpoint(KEY[0], ("10.0.0.1", "fd00::1"), (PORT[0],), True, True, True, "z", "n", {"k": "v"}),
    b"\x0a\x07" + KEY[1] + b"\x12\x0810.0.0.1\x12\x07fd00::1\x1a\x09" + PORT[1] + b"\x20\x01\x28\x01\x30\x01"
    b"\x3a\x01z\x42\x01n\x4a\x06\x0a\x01k\x12\x01v",
)
ENDPOINTS = (messages.Endpoints(5, (ENDPOINT[0],)), b"\x08\x05\x12\x3b" + ENDPOINT[1])
CHANGES = (
    messages.Changes(5, 300, (ENDPOINT[0],), (KEY[0],)),
    b"\x08\x05\x10\xac\x02\x1a\x3b" + ENDPOINT[1] + b"\x22\x07" + KEY[1],
)
PROBLEM = (messages.Problem(2, "no"), b"\x08\x02\x12\x02no")
BY_HAND = [
    KEY,
    PORT,
    SET,
    STALE,
    ENDPOINT,
    ENDPOINTS,
    CHANGES,
    PROBLEM,
    (messages.StaleMember("us"), b"\x0a\x02us"),
    (messages.StaleMember("us", 0), b"\x0a\x02us\x10\x00"),
    (messages.ResolveRequest(SET[0], 1), b"\x0a\x0e" + SET[1] + b"\x10\x01"),
    (
        messages.ResolveResponse((1 << 64) - 1, True, (ENDPOINT[0],), (STALE[0],)),
        b"\x08" + b"\xff" * 9 + b"\x01\x10\x01\x1a\x3b" + ENDPOINT[1] + b"\x22\x07" + STALE[1],
    ),
    (
        messages.WatchRequest((messages.WatchedSet(SET[0], 7), messages.WatchedSet(SET[0]))),
        b"\x0a\x12\x0a\x0e" + SET[1] + b"\x10\x07\x0a\x10\x0a\x0e" + SET[1],
    ),
    (
        messages.WatchResponse(SET[0], endpoints=ENDPOINTS[0], stale_members=(STALE[0],)),
        b"\x0a\x0e" + SET[1] + b"\x12\x3f" + ENDPOINTS[1] + b"\x2a\x07" + STALE[1],
    ),
    (messages.WatchResponse(SET[0], changes=CHANGES[0]), b"\x0a\x0e" + SET[1] + b"\x1a\x4b" + CHANGES[1]),
    (messages.WatchResponse(SET[0], problem=PROBLEM[0]), b"\x0a\x0e" + SET[1] + b"\x22\x06" + PROBLEM[1]),
    (messages.WatchResponse(), b""),
]

# Fields that no message has: a number, both fixed widths, a string, and a group with a group in it.
UNKNOWN = (
    number_field(99, 1 << 63)
    + varint(98 << 3 | 1)
    + bytes(8)
    + varint(97 << 3 | 5)
    + bytes(4)
    + content_field(96, b"\xff\xff")
    + varint(95 << 3 | 3)
    + number_field(1, 5)
    + varint(94 << 3 | 3)
    + content_field(2, b"x")
    + varint(94 << 3 | 4)
    + varint(95 << 3 | 4)
)


class Codec(unittest.TestCase):
    def test_d1_messages_are_the_bytes_of_the_proto(self):
        for message, by_hand in BY_HAND:
            with self.subTest(message=message):
                self.assertEqual(encode(message), by_hand)
                self.assertEqual(decode(type(message), by_hand), message)

    def test_d1_unknown_fields_are_skipped_in_every_message(self):
        for message, by_hand in BY_HAND:
            with self.subTest(message=message):
                self.assertEqual(decode(type(message), UNKNOWN + by_hand + UNKNOWN), message)

    def test_d1_fields_come_in_any_order_and_may_be_repeated(self):
        table = [
            ("the last number", messages.Port, number_field(2, 1) + number_field(2, 2), messages.Port("", 2)),
            ("default values", messages.Port, number_field(2, 0) + content_field(1, b""), messages.Port()),
            ("32 bits of a number", messages.Port, number_field(2, (1 << 32) + 7), messages.Port("", 7)),
            ("any true value", messages.Endpoint, number_field(4, 7), messages.Endpoint(ready=True)),
            (
                "parts of a message",
                messages.Endpoint,
                content_field(1, content_field(1, b"eu")) + content_field(1, content_field(2, b"a")),
                messages.Endpoint(KEY[0]),
            ),
            (
                "the last member of a oneof",
                messages.WatchResponse,
                content_field(2, ENDPOINTS[1]) + content_field(4, PROBLEM[1]),
                messages.WatchResponse(problem=PROBLEM[0]),
            ),
            (
                "the last label of a key",
                messages.Endpoint,
                content_field(9, b"\x0a\x01k\x12\x01v") + content_field(9, b"\x12\x01w\x0a\x01k") + content_field(9, b""),
                messages.Endpoint(labels={"k": "w", "": ""}),
            ),
        ]
        for what, cls, data, expected in table:
            with self.subTest(what):
                self.assertEqual(decode(cls, data), expected)

    def test_d1_malformed_bytes_are_one_kind_of_error(self):
        table = [
            ("a field that is cut off", b"\x0a\x05web"),
            ("a tag that is cut off", b"\x80"),
            ("a number that is cut off", b"\x98\x06\x80"),
            ("a number of 11 bytes", b"\x98\x06" + b"\xff" * 10 + b"\x01"),
            ("a number of more than 64 bits", b"\x98\x06" + b"\xff" * 9 + b"\x02"),
            ("field 0", b"\x00\x00"),
            ("a field number beyond 2^29 - 1", varint(1 << 32) + b"\x00"),
            ("wire type 6", b"\x9e\x06"),
            ("a fixed number that is cut off", b"\x99\x06" + bytes(7)),
            ("a group without an end", b"\x9b\x06"),
            ("the end of another group", b"\x9b\x06\xa4\x06"),
            ("an end without a group", b"\x9c\x06"),
            ("groups in groups without an end", b"\x9b\x06" * 1000),
            ("a message that is a number", b"\x08\x01"),
            ("a string that is no UTF-8", content_field(1, content_field(1, b"\xff"))),
            ("a number that is a string", content_field(2, content_field(1, b"x"))),
        ]
        for what, data in table:
            with self.subTest(what), self.assertRaises(DecodeError):
                decode(messages.WatchResponse, data)

    def test_d1_sizes_are_bounded(self):
        with mock.patch.object(codec, "MAX_MESSAGE", 3), self.assertRaises(DecodeError):
            decode(messages.SetId, b"\x0a\x02eu")
        data = encode(samples.whole(1, samples.endpoint("a")))
        with mock.patch.object(codec, "MAX_FIELDS", 10), self.assertRaises(DecodeError):
            decode(messages.WatchResponse, data)

    def test_d1_random_bytes_never_hang_and_raise_nothing_else(self):
        rng = random.Random(SEED)
        valid = [message_bytes for _, message_bytes in BY_HAND]
        decoded = 0
        for _ in range(CASES):
            data = rng.choice([_random_bytes, _mutated, _fields])(rng, valid)
            cls = rng.choice([type(message) for message, _ in BY_HAND])
            try:
                message = decode(cls, data)
            except DecodeError:
                continue
            decoded += 1
            self.assertEqual(decode(cls, encode(message)), message)
        # Both ways were taken.
        self.assertTrue(100 < decoded < CASES - 100, decoded)


def _random_bytes(rng, _valid):
    return bytes(rng.randrange(256) for _ in range(rng.randrange(64)))


def _mutated(rng, valid):
    """Valid bytes with some that are changed, inserted or cut off."""
    data = bytearray(rng.choice(valid) + rng.choice(valid))
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.2 else data)


def _fields(rng, valid):
    """Well-formed fields with numbers of the messages."""
    fields = [
        number_field(rng.randrange(1, 10), rng.getrandbits(rng.randrange(1, 65))),
        content_field(rng.randrange(1, 10), rng.choice(valid)),
        content_field(rng.randrange(1, 10), b"eu"),
    ]
    return b"".join(rng.choice(fields) for _ in range(rng.randrange(6)))
