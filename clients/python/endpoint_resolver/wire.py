"""The wire format of Protocol Buffers: numbers, and the fields of a message. Knows no messages.

Only what the messages of discovery need: groups, fixed-width numbers and packed lists are skipped, not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

VARINT = 0
FIXED64 = 1
LENGTH = 2
GROUP_START = 3
GROUP_END = 4
FIXED32 = 5

MAX_UINT64 = (1 << 64) - 1
MAX_FIELD_NUMBER = (1 << 29) - 1
# As in other decoders: a group in a group, and so on.
MAX_GROUP_DEPTH = 100


class DecodeError(ValueError):
    """Bytes that are not the message that they should be."""


class Span(NamedTuple):
    """Where the content of a field is: from `start` to before `end`."""

    start: int
    end: int


class Field(NamedTuple):
    """A field of a message: a number for `VARINT`, a `Span` for `LENGTH`."""

    number: int
    wire_type: int
    value: int | Span


def fields(data: bytes, span: Span) -> Iterator[Field]:
    """The fields of the message in `span`, in their order. Skips numbers of fixed width, and groups.

    Raises `DecodeError` at the first field that is malformed.
    """
    at = span.start
    while at < span.end:
        (number, wire_type), at = _tag(data, at, span.end)
        if wire_type == VARINT:
            value, at = _varint(data, at, span.end)
            yield Field(number, VARINT, value)
        elif wire_type == LENGTH:
            content, at = _content(data, at, span.end)
            yield Field(number, LENGTH, content)
        else:
            at = _skipped(data, at, span.end, (number, wire_type))


def varint(value: int) -> bytes:
    """The varint of `value`, which is from 0 to 2^64 - 1."""
    if not 0 <= value <= MAX_UINT64:
        raise ValueError(f"{value} is not from 0 to 2^64 - 1")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(number: int, value: int) -> bytes:
    """A field with the number `value`."""
    return varint(number << 3 | VARINT) + varint(value)


def content_field(number: int, content: bytes) -> bytes:
    """A field with a string or a message."""
    return varint(number << 3 | LENGTH) + varint(len(content)) + content


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    # Most numbers have one byte.
    if at < end and data[at] < 0x80:
        return data[at], at + 1
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise DecodeError("a number is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MAX_UINT64:
                break
            return value, at
    raise DecodeError("a number has more than 64 bits")


def _tag(data: bytes, at: int, end: int) -> tuple[tuple[int, int], int]:
    """The number and wire type of the field at `at`, and where its value begins."""
    tag, at = _varint(data, at, end)
    number = tag >> 3
    if not 1 <= number <= MAX_FIELD_NUMBER:
        raise DecodeError(f"{number} is not the number of a field")
    return (number, tag & 7), at


def _content(data: bytes, at: int, end: int) -> tuple[Span, int]:
    """The content whose length is at `at`, and where it ends."""
    length, start = _varint(data, at, end)
    if length > end - start:
        raise DecodeError(f"a field of {length} bytes is cut off")
    return Span(start, start + length), start + length


def _skipped(data: bytes, at: int, end: int, tag: tuple[int, int]) -> int:
    """Where the field with `tag` ends, whose value begins at `at`. A loop, not a recursion: its depth is up to the sender."""
    groups: list[int] = []
    while True:
        at = _after_value(data, at, end, tag, groups)
        if not groups:
            return at
        tag, at = _tag(data, at, end)


def _after_value(data: bytes, at: int, end: int, tag: tuple[int, int], groups: list[int]) -> int:
    """Where the value at `at` ends; begins or ends the innermost of `groups`."""
    number, wire_type = tag
    if wire_type == VARINT:
        return _varint(data, at, end)[1]
    if wire_type == LENGTH:
        return _content(data, at, end)[1]
    if wire_type == GROUP_START and len(groups) < MAX_GROUP_DEPTH:
        groups.append(number)
        return at
    if wire_type == GROUP_END and groups and groups.pop() == number:
        return at
    width = {FIXED64: 8, FIXED32: 4}.get(wire_type)
    if width is None:
        raise DecodeError(f"field {number} has the wire type {wire_type}, which is not expected")
    if width > end - at:
        raise DecodeError("a number of fixed width is cut off")
    return at + width
