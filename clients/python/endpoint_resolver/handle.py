"""A set that an application asks for: its last answer, without a lock, and waits for the next one."""

from __future__ import annotations

import threading
import time
from typing import Callable

from .answer import Answer, NoAnswer, Problem
from .held import Held
from .set_name import SetName

# Waits without a deadline wake up as often, in seconds: some platforms can't interrupt longer ones.
_LONGEST_WAIT = 3600.0


class SetHandle:
    """The endpoints of one EndpointSet, kept up to date until the resolver is closed. For any number of threads."""

    def __init__(self, name: SetName, held: Held) -> None:
        self.name = name
        # One thread at a time replaces it. Immutable: readers need no lock.
        self._held = held
        self._changed = threading.Condition()
        self._closed = False

    @property
    def held(self) -> Held:
        """What is known of the set, for the threads of the resolver."""
        return self._held

    @property
    def problem(self) -> Problem | None:
        """Why the last attempt had no answer, or None."""
        return self._held.problem

    def current(self) -> Answer | None:
        """The last good answer. None if there is none: also the disk had none. Never waits."""
        return self._held.answer(str(self.name), time.monotonic())

    def wait(self, timeout: float | None = None) -> Answer:
        """The first answer: at once if there is one, also one from the disk.

        Raises `NoAnswer` after `timeout` seconds, or if the resolver is closed.
        """
        self._wait_until(lambda: self._held.endpoints is not None, timeout)
        return self._require("no answer in time")

    def wait_for_change(self, version: int, timeout: float | None = None) -> Answer | None:
        """The answer as soon as it has another version than `version`; None after `timeout` seconds, or if the resolver is closed.

        Another version may have the same endpoints: each replica of the service has its own versions.
        """

        def is_changed() -> bool:
            held = self._held
            return held.endpoints is not None and held.version != version

        return self.current() if self._wait_until(is_changed, timeout) else None

    def addresses(self, port_name: str | None = None, family: int | None = None) -> tuple[str, ...]:
        """`Answer.addresses` of the last good answer. Raises `NoAnswer` if there is none: that is not an empty set."""
        return self._require("no answer yet").addresses(port_name, family)

    def replace(self, held: Held) -> None:
        """Replaces what is known of the set, for the thread that follows it."""
        with self._changed:
            self._held = held
            self._changed.notify_all()

    def close(self) -> None:
        """Ends all waits: nothing changes any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wait_until(self, condition: Callable[[], bool], timeout: float | None) -> bool:
        """Whether `condition` holds before the end of `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not condition() and not self._closed:
                left = _LONGEST_WAIT if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, _LONGEST_WAIT))
            return condition()

    def _require(self, otherwise: str) -> Answer:
        answer = self.current()
        if answer is None:
            raise NoAnswer(f"{self.name}: {'the resolver is closed' if self._closed else otherwise}", self.problem)
        return answer
