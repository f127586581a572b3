"""From bytes to messages and back, for messages that are dataclasses: each field says its number and kind.

As the specification of Protocol Buffers says: unknown fields are skipped, of a number or a string the last one counts, parts of a
message are merged, and one member of a oneof clears the others. A known field of another wire type is an error.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from .wire import LENGTH, VARINT, DecodeError, Field, Span, content_field, fields, number_field

# The longest message, in bytes: some 300,000 endpoints.
MAX_MESSAGE = 64 << 20
# The most known fields of a message and of all messages in it. A field of two bytes may become an object of a hundred.
MAX_FIELDS = 4_000_000

M = TypeVar("M")


class Kind(enum.Enum):
    """What a field has."""

    UINT64 = enum.auto()
    UINT32 = enum.auto()
    BOOL = enum.auto()
    STRING = enum.auto()
    MESSAGE = enum.auto()
    # map<string, string>
    LABELS = enum.auto()


class Spec(NamedTuple):
    """How a field is encoded."""

    number: int
    kind: Kind
    message: type | None = None
    repeated: bool = False
    # Of the oneof: no message has two of them.
    oneof: bool = False


def scalar(number: int, kind: Kind, *, optional: bool = False) -> Any:
    """A number, truth value or string; if `optional`, it is None when absent."""
    default = {Kind.BOOL: False, Kind.STRING: ""}.get(kind, 0)
    return _field(Spec(number, kind), None if optional else default)


def scalars(number: int, kind: Kind) -> Any:
    """Strings."""
    return _field(Spec(number, kind, repeated=True), ())


def message(number: int, of: type, *, oneof: bool = False) -> Any:
    """A message, or None."""
    return _field(Spec(number, Kind.MESSAGE, of, oneof=oneof), None)


def messages(number: int, of: type) -> Any:
    """Messages."""
    return _field(Spec(number, Kind.MESSAGE, of, repeated=True), ())


def labels(number: int) -> Any:
    """A map of strings."""
    spec = Spec(number, Kind.LABELS)
    return dataclasses.field(default_factory=lambda: MappingProxyType({}), metadata={"spec": spec}, hash=False)


def decode(cls: type[M], data: bytes) -> M:
    """The message of `cls` in `data`.

    Raises `DecodeError`, and nothing else, if there is none, or one beyond `MAX_MESSAGE` or `MAX_FIELDS`.
    """
    if len(data) > MAX_MESSAGE:
        raise DecodeError(f"a message of {len(data)} bytes is longer than {MAX_MESSAGE}")
    decoded: M = _Decoder(data).message(cls, [Span(0, len(data))])
    return decoded


def encode(value: Any) -> bytes:
    """The bytes of a message. Fields follow by number, labels by key."""
    encoded = bytearray()
    for name, spec, default in _specs(value.__class__):
        content = getattr(value, name)
        if spec.kind is Kind.LABELS:
            encoded += _encoded_labels(spec.number, content)
        elif spec.repeated:
            for item in content:
                encoded += _encoded(spec, item)
        elif content != default:
            encoded += _encoded(spec, content)
    return bytes(encoded)


def _field(spec: Spec, default: Any) -> Any:
    return dataclasses.field(default=default, metadata={"spec": spec})


@functools.cache
def _specs(cls: Any) -> tuple[tuple[str, Spec, Any], ...]:
    """The names, specs and defaults of the fields of `cls`."""
    return tuple((field.name, field.metadata["spec"], field.default) for field in dataclasses.fields(cls))


@functools.cache
def _by_number(cls: Any) -> Mapping[int, tuple[str, Spec]]:
    return {spec.number: (name, spec) for name, spec, _ in _specs(cls)}


def _encoded(spec: Spec, item: Any) -> bytes:
    if spec.kind is Kind.MESSAGE:
        return content_field(spec.number, encode(item))
    if spec.kind is Kind.STRING:
        return content_field(spec.number, item.encode())
    return number_field(spec.number, int(item))


def _encoded_labels(number: int, content: Mapping[str, str]) -> bytes:
    entries = (content_field(1, key.encode()) + content_field(2, content[key].encode()) for key in sorted(content))
    return b"".join(content_field(number, entry) for entry in entries)


class _Decoder:
    """Decodes one message and those in it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fields_left = MAX_FIELDS

    def message(self, cls: Any, parts: list[Span]) -> Any:
        """The message of `cls` whose fields are in `parts`."""
        known = _by_number(cls)
        values: dict[str, Any] = {}
        for part in parts:
            for field in fields(self._data, part):
                if field.number in known:
                    name, spec = known[field.number]
                    if spec.oneof:
                        _clear_others(values, name, cls)
                    self._collect(values, name, spec, field)
        return cls(**{name: self._finished(cls, name, value) for name, value in values.items()})

    def _collect(self, values: dict[str, Any], name: str, spec: Spec, field: Field) -> None:
        """Adds `field` to `values`: a list of parts for a message, of items for what is repeated."""
        self._count()
        if spec.kind is Kind.LABELS:
            key, value = self._entry(_span(name, field))
            values.setdefault(name, {})[key] = value
        elif spec.kind is Kind.MESSAGE:
            part = _span(name, field)
            item = self.message(spec.message, [part]) if spec.repeated else part
            values.setdefault(name, []).append(item)
        elif spec.repeated:
            values.setdefault(name, []).append(self._scalar(name, spec, field))
        else:
            values[name] = self._scalar(name, spec, field)

    def _finished(self, cls: Any, name: str, value: Any) -> Any:
        """What was collected, in its final and immutable form."""
        if isinstance(value, dict):
            return MappingProxyType(value)
        if not isinstance(value, list):
            return value
        spec = next(spec for other, spec, _ in _specs(cls) if other == name)
        return tuple(value) if spec.repeated else self.message(spec.message, value)

    def _scalar(self, name: str, spec: Spec, field: Field) -> Any:
        if spec.kind is Kind.STRING:
            return self._text(_span(name, field))
        if field.wire_type != VARINT or isinstance(field.value, Span):
            raise DecodeError(f"{name}: has the wire type {field.wire_type}, not that of a number")
        if spec.kind is Kind.BOOL:
            return field.value != 0
        return field.value & 0xFFFFFFFF if spec.kind is Kind.UINT32 else field.value

    def _entry(self, span: Span) -> tuple[str, str]:
        """The key and value of a label."""
        pair = {1: "", 2: ""}
        for field in fields(self._data, span):
            if field.number in pair:
                self._count()
                pair[field.number] = self._text(_span("labels", field))
        return pair[1], pair[2]

    def _text(self, span: Span) -> str:
        try:
            return self._data[span.start : span.end].decode()
        except UnicodeDecodeError as error:
            raise DecodeError(f"a string is not UTF-8: {error.reason}") from None

    def _count(self) -> None:
        self._fields_left -= 1
        if self._fields_left < 0:
            raise DecodeError(f"a message has more than {MAX_FIELDS} fields")


def _span(name: str, field: Field) -> Span:
    if field.wire_type != LENGTH or not isinstance(field.value, Span):
        raise DecodeError(f"{name}: has the wire type {field.wire_type}, not that of strings and messages")
    return field.value


def _clear_others(values: dict[str, Any], name: str, cls: Any) -> None:
    for other, spec, _ in _specs(cls):
        if spec.oneof and other != name:
            values.pop(other, None)
