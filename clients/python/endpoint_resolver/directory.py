"""Answers on disk: one file for each set, replaced as a whole."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from pathlib import Path

from . import file_format
from .file_format import DamagedFile, Saved
from .set_name import SetName

log = logging.getLogger("endpoint_resolver")

# The longest file that is read, in bytes. A longer one is none of a client.
MAX_FILE = 256 << 20
_TEMPORARY_PREFIX = ".endpoint-resolver-"
_TEMPORARY_SUFFIX = ".tmp"
# No write takes as long: such a temporary file is left by a process that ended in it.
_LEFT_AFTER_SECONDS = 3600


class Directory:
    """The files of a directory. Several processes may use it: each file is one of them, whole."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        try:
            self._path.mkdir(parents=True, exist_ok=True)
            self._remove_left_files()
        except OSError as error:
            log.warning("could not prepare the directory of answers: %s", error)

    def read(self, name: SetName) -> Saved | None:
        """The answer about the set; None if there is none, or, with a warning, if its file is damaged or can't be read."""
        path = self._path / file_format.file_name(name)
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_FILE + 1)
            if len(data) > MAX_FILE:
                raise DamagedFile(f"it has more than {MAX_FILE} bytes")
            return file_format.decode(name, data)
        except FileNotFoundError:
            return None
        except (DamagedFile, OSError) as error:
            log.warning("ignored the saved answer %s until there is another one: %s", path, error)
            return None

    def write(self, saved: Saved) -> None:
        """Replaces the answer about the set in one step: a reader, and a power failure, see the one before or this one.

        Raises `OSError`; the answer before is still there then.
        """
        data = file_format.encode(saved)
        # Below the names of answers, and short: the name of a set may leave no place for a suffix.
        handle, temporary = tempfile.mkstemp(_TEMPORARY_SUFFIX, _TEMPORARY_PREFIX, self._path)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path / file_format.file_name(saved.set))
        except BaseException:
            os.unlink(temporary)
            raise

    def _remove_left_files(self) -> None:
        before = time.time() - _LEFT_AFTER_SECONDS
        for path in self._path.glob(f"{_TEMPORARY_PREFIX}*{_TEMPORARY_SUFFIX}"):
            if path.stat().st_mtime < before:
                path.unlink()
