"""The entry: a resolver has the handles of all sets that a program asks for, and the threads behind them."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import grpc

from .channels import ChannelOptions, open_channel
from .directory import Directory
from .handle import SetHandle
from .held import Held
from .saver import Saver
from .set_name import SetName
from .watcher import Watcher

# For the ends of threads, in seconds: a disk may be slow.
CLOSE_TIMEOUT = 10.0


class Resolver:
    """Follows EndpointSets at the servers of `fedrs discovery`, in the background.

    `servers` are replicas of the service, as `HOST:PORT`: a random one is used, and the next one when it fails. `directory` keeps
    the last good answers, from which the next process starts; without it nothing is kept. `credentials` make the channels secure,
    with a `TokenFile` also say who the client is, and `channel_options` are those of grpcio.

    Make it after `os.fork`: threads are not inherited. Its threads are daemons, but only `close` writes what changed in the last
    second.
    """

    def __init__(
        self,
        servers: Sequence[str],
        directory: str | Path | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        channel_options: ChannelOptions = (),
    ) -> None:
        if isinstance(servers, str) or not servers:
            raise ValueError("servers: needs a list of at least one HOST:PORT")
        self._servers = tuple(dict.fromkeys(servers))
        self._open_channel = functools.partial(open_channel, credentials=credentials, options=tuple(channel_options))
        self._rng = random.Random()
        self._lock = threading.Lock()
        self._handles: dict[SetName, SetHandle] = {}
        self._watchers: list[Watcher] = []
        self._closed = False
        self._directory = None if directory is None else Directory(directory)
        self._saver = None if self._directory is None else Saver(self._directory)
        if self._saver is not None:
            self._saver.start()

    def endpoints(self, name: str) -> SetHandle:
        """The handle of the set `NAMESPACE/NAME`, always the same one. The first call reads its file; it waits for nothing else.

        Programs that need many sets ask for all of them before they wait for one: these share a call.
        Raises `ValueError` if the name is none, and `RuntimeError` if the resolver is closed.
        """
        key = SetName.parse(name)
        with self._lock:
            handle = self._handles.get(key)
            if handle is None:
                if self._closed:
                    raise RuntimeError("the resolver is closed")
                handle = self._handles[key] = SetHandle(key, self._from_disk(key))
                self._follow(handle)
            return handle

    def close(self) -> None:
        """Ends the threads and writes what is not written yet. Handles keep their answers, which only grow older."""
        with self._lock:
            self._closed = True
            watchers, handles = self._watchers, list(self._handles.values())
        for watcher in watchers:
            watcher.close()
        for watcher in watchers:
            watcher.join(CLOSE_TIMEOUT)
        # After the last answer.
        if self._saver is not None:
            self._saver.close()
            self._saver.join(CLOSE_TIMEOUT)
        for handle in handles:
            handle.close()

    def __enter__(self) -> Resolver:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _from_disk(self, name: SetName) -> Held:
        saved = self._directory.read(name) if self._directory is not None else None
        if saved is None:
            return Held()
        age = max(time.time() - saved.confirmed_at, 0.0)
        return Held(saved.endpoints, saved.version, confirmed=time.monotonic() - age)

    def _follow(self, handle: SetHandle) -> None:
        if self._watchers and self._watchers[-1].add(handle):
            return
        on_answer = self._saver.changed if self._saver is not None else lambda _: None
        watcher = Watcher(self._servers, self._open_channel, on_answer, self._rng)
        watcher.add(handle)
        watcher.start()
        self._watchers.append(watcher)
