"""The format of a saved answer: other clients of discovery read and write the same files. Pure.

The first line is `sha256:` and the digest, in lower hex digits, of all bytes after it; then follows one JSON object.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .answer import Endpoint, Port
from .set_name import SetName
from .wire import MAX_UINT64

FORMAT = 1
_TIME = "%Y-%m-%dT%H:%M:%SZ"
# The end of the year 9999: the last second that `_TIME` can say.
_LAST_SECOND = 253_402_300_799


class DamagedFile(Exception):
    """The content of a file is not what a client has written for the set."""


@dataclass(frozen=True)
class Saved:
    """An answer on disk."""

    set: SetName
    version: int
    # When the service last confirmed it, in seconds since 1970.
    confirmed_at: int
    endpoints: tuple[Endpoint, ...]


def file_name(name: SetName) -> str:
    """Where the set's answer is. Unique: a namespace has no dot."""
    return f"{name.namespace}.{name.name}.json"


def encode(saved: Saved) -> bytes:
    """The content of the file."""
    value = {
        "format": FORMAT,
        "set": str(saved.set),
        "version": saved.version,
        "confirmedAt": time.strftime(_TIME, time.gmtime(min(max(saved.confirmed_at, 0), _LAST_SECOND))),
        "endpoints": [_endpoint_value(endpoint) for endpoint in saved.endpoints],
    }
    text = json.dumps(value, separators=(",", ":")).encode()
    return _first_line(text) + text


def decode(name: SetName, data: bytes) -> Saved:
    """The answer about the set `name`. Raises `DamagedFile`, and nothing else."""
    line, newline, text = data.partition(b"\n")
    if line + newline != _first_line(text):
        raise DamagedFile("its SHA-256 is another one than its first line says")
    try:
        value = _object(json.loads(text), "the file")
        if value.get("format") != FORMAT or value.get("set") != str(name):
            raise ValueError(f"it has not the format {FORMAT} or is not about {name}")
        endpoints = tuple(_endpoint(item) for item in _list(value, "endpoints"))
        version = _number(value, "version", MAX_UINT64)
        confirmed_at = calendar.timegm(time.strptime(_text(value, "confirmedAt"), _TIME))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(str(error)) from None
    return Saved(name, version, confirmed_at, endpoints)


def _first_line(text: bytes) -> bytes:
    return b"sha256:%s\n" % hashlib.sha256(text).hexdigest().encode()


def _endpoint_value(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "cluster": endpoint.cluster,
        "pod": endpoint.pod,
        "addresses": list(endpoint.addresses),
        "ports": [{"name": port.name, "number": port.number} for port in endpoint.ports],
        "ready": endpoint.ready,
        "serving": endpoint.serving,
        "terminating": endpoint.terminating,
        "zone": endpoint.zone,
        "node": endpoint.node,
        "labels": dict(sorted(endpoint.labels.items())),
    }


def _endpoint(value: Any) -> Endpoint:
    value = _object(value, "endpoints")
    labels = _object(value.get("labels"), "labels")
    return Endpoint(
        cluster=_text(value, "cluster"),
        pod=_text(value, "pod"),
        addresses=tuple(_texts(value, "addresses")),
        ports=tuple(_ports(value)),
        ready=_flag(value, "ready"),
        serving=_flag(value, "serving"),
        terminating=_flag(value, "terminating"),
        zone=_text(value, "zone"),
        node=_text(value, "node"),
        labels=MappingProxyType({key: _text(labels, key) for key in labels}),
    )


def _ports(value: dict[str, Any]) -> Iterator[Port]:
    for item in _list(value, "ports"):
        port = _object(item, "ports")
        yield Port(_text(port, "name"), _number(port, "number", 65535))


def _texts(value: dict[str, Any], key: str) -> Iterator[str]:
    for item in _list(value, key):
        if type(item) is not str:
            raise ValueError(f"{key}: has something else than strings")
        yield item


def _object(value: Any, what: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise ValueError(f"{what}: has something else than objects")
    return value


def _list(value: dict[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    if type(found) is not list:
        raise ValueError(f"{key}: is not a list")
    return found


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    if type(found) is not str:
        raise ValueError(f"{key}: is not a string")
    return found


def _flag(value: dict[str, Any], key: str) -> bool:
    found = value.get(key)
    if type(found) is not bool:
        raise ValueError(f"{key}: is not true or false")
    return found


def _number(value: dict[str, Any], key: str, maximum: int) -> int:
    found = value.get(key)
    if type(found) is not int or not 1 <= found <= maximum:
        raise ValueError(f"{key}: is not a number from 1 to {maximum}")
    return found
