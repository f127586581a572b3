"""The thread that writes answers to disk: no wait for a disk delays an answer."""

from __future__ import annotations

import logging
import threading
import time

from .directory import Directory
from .file_format import Saved
from .handle import SetHandle
from .held import Held

log = logging.getLogger("endpoint_resolver")

# The shortest time between two writes of one set, in seconds.
MIN_INTERVAL = 1.0
# As often, in seconds, the time of the last confirmation is written: by so much, and no more, an answer looks older after a crash.
REFRESH_INTERVAL = 300.0


class Saver(threading.Thread):
    """Writes what changes: each set at most once a second, and at the end."""

    def __init__(self, directory: Directory) -> None:
        super().__init__(name="endpoint-resolver-saver", daemon=True)
        self._directory = directory
        self._wake = threading.Condition()
        self._closed = False
        # When each set is due, in monotonic seconds.
        self._due: dict[SetHandle, float] = {}
        # When each set was last due.
        self._looked: dict[SetHandle, float] = {}
        # What was written last: the version and when it was confirmed. Only this thread uses it, and those that failed.
        self._written: dict[SetHandle, tuple[int, int]] = {}
        self._failing: set[SetHandle] = set()

    def changed(self, handle: SetHandle) -> None:
        """There is another answer."""
        with self._wake:
            due = self._looked.get(handle, -MIN_INTERVAL) + MIN_INTERVAL
            self._due[handle] = min(due, self._due.get(handle, due))
            self._wake.notify()

    def close(self) -> None:
        """Writes what is not written yet, and ends the thread. `join` waits for that."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    def run(self) -> None:
        """Writes until `close`."""
        closed = False
        while not closed:
            due, closed = self._next()
            for handle in due:
                self._save(handle)

    def _next(self) -> tuple[list[SetHandle], bool]:
        """Waits for sets that are due, and whether they are the last ones: then all are."""
        with self._wake:
            while True:
                now = time.monotonic()
                due = [handle for handle, at in self._due.items() if at <= now or self._closed]
                if due or self._closed:
                    for handle in due:
                        self._looked[handle] = now
                        self._due[handle] = now + REFRESH_INTERVAL
                    return due, self._closed
                self._wake.wait(min(self._due.values()) - now if self._due else None)

    def _save(self, handle: SetHandle) -> None:
        held = handle.held
        saved = _saved(handle, held)
        if saved is None or self._written.get(handle) == (saved.version, saved.confirmed_at):
            return
        try:
            self._directory.write(saved)
            self._written[handle] = (saved.version, saved.confirmed_at)
            self._failing.discard(handle)
        except OSError as error:
            # Said once: it is tried again at each change.
            if handle not in self._failing:
                log.warning("could not save the answer about %s: %s", handle.name, error)
            self._failing.add(handle)


def _saved(handle: SetHandle, held: Held) -> Saved | None:
    if held.endpoints is None:
        return None
    now = time.monotonic()
    # Down to whole seconds: rather too old than too new.
    confirmed_at = int(time.time() - (now - held.confirmed_at(now)))
    return Saved(handle.name, held.version, confirmed_at, held.endpoints)
