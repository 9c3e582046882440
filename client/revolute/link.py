"""The link from a simulator to its engine: a transport that is open in this process.

Sessions and trajectories call through it. It also remembers the trajectories that nobody holds any more, and
has them deleted with later calls.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .contract.codec.text import check_text
from .contract.errors import LimitError, NotFoundError, RevoluteError, UnavailableError
from .contract.transport import Transport

_MOST_FORGOTTEN = 1000
"""Trajectories that a server deletes with one rollout."""


class Link:
    """An open transport.

    Args:
        transport: the way to the engine; closed with the link.

    Attributes:
        address: address of the server, or "in-process".
        transport: the same.
    """

    def __init__(self, transport: Transport) -> None:
        self.address = transport.address
        self.transport = transport
        self._process = os.getpid()
        self._dropped: deque[str] = deque()
        self._closed = False

    def call(self, verb: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message and return the answer."""
        self._check_open()
        check_text(document)
        return self.transport.call(verb, document)

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a message and return the documents of its answer as they come."""
        self._check_open()
        check_text(document)
        self._delete_dropped()
        return self.transport.stream(verb, document)

    def rollout(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a rollout, and have the trajectories deleted that nobody holds any more."""
        dropped = self._take_dropped()
        if not dropped:
            return self.call("Rollout", inputs)
        try:
            return self.call("Rollout", {**inputs, "forget": dropped})
        except BaseException as error:
            self._dropped.extend(dropped)
            if not isinstance(error, LimitError):
                raise
        # perhaps there is room when they are gone
        self._delete_dropped()
        return self.call("Rollout", inputs)

    def own_loss(
        self, document: Mapping[str, Any], respond: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Differentiate a function of the caller's own; see `Transport.own_loss`."""
        self._check_open()
        check_text(document)
        return self.transport.own_loss(document, respond)

    def drop_later(self, trajectory_id: str) -> None:
        """Note a trajectory that nobody holds any more; safe while objects are collected."""
        self._dropped.append(trajectory_id)

    def close(self) -> None:
        """Close the transport; trajectories that nobody holds any more are deleted first."""
        if self._closed or self._process != os.getpid():
            return
        try:
            self._delete_dropped()
        except RevoluteError:
            self._dropped.clear()
        self._closed = True
        self.transport.close()

    def _check_open(self) -> None:
        """Refuse to work after `close` and in a fork."""
        if self._closed:
            raise UnavailableError(
                f"{self.address}: expected an open simulator, got a closed one; connect again"
            )
        if self._process != os.getpid():
            raise UnavailableError(
                f"{self.address}: expected the process that connected, got a fork of it; "
                "call revolute.connect() in each process"
            )

    def _take_dropped(self) -> list[str]:
        """Take the trajectories that nobody holds any more, as many as go with one rollout."""
        taken: list[str] = []
        with contextlib.suppress(IndexError):
            while len(taken) < _MOST_FORGOTTEN:
                taken.append(self._dropped.popleft())
        return taken

    def _delete_dropped(self) -> None:
        """Delete the trajectories that nobody holds any more."""
        while True:
            try:
                dropped = self._dropped.popleft()
            except IndexError:
                return
            try:
                self.call("DeleteTrajectory", {"trajectory_id": dropped})
            except NotFoundError:
                continue
            except RevoluteError:
                self._dropped.append(dropped)
                raise
