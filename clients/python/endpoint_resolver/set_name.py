"""The names of EndpointSets."""

from __future__ import annotations

import re
from typing import NamedTuple

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL)
_NAME = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_MAX_NAME = 253


class SetName(NamedTuple):
    """An EndpointSet. Both names are valid ones of Kubernetes, so that they are safe in file names, too."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> SetName:
        """From NAMESPACE/NAME. Raises `ValueError` if these are not names of Kubernetes."""
        namespace, _, name = text.partition("/")
        if not _NAMESPACE.fullmatch(namespace) or not _NAME.fullmatch(name) or len(name) > _MAX_NAME:
            raise ValueError(f"{text!r} is not NAMESPACE/NAME of an EndpointSet")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
