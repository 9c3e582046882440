"""The link from a simulator to its engine: a transport that is open in this process.

Sessions and trajectories call through it. The link also lists trajectories whose Python objects are gone, and
deletes them along with later calls.
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

_MAX_DELETIONS = 1000
"""Largest number of trajectories that a server deletes with one rollout."""


class Link:
    """An open transport.

    Args:
        transport: carries the calls; the link closes it.

    Attributes:
        address: address of the server, or "in-process".
        transport: carries the calls.
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
        """Send a message and yield the documents of its answer as they arrive."""
        self._check_open()
        check_text(document)
        self._delete_dropped()
        return self.transport.stream(verb, document)

    def rollout(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run a rollout, and delete unused trajectories on the server with the same call."""
        dropped = self._take_dropped()
        if not dropped:
            return self.call("Rollout", inputs)
        try:
            return self.call("Rollout", {**inputs, "forget": dropped})
        except BaseException as error:
            self._dropped.extend(dropped)
            if not isinstance(error, LimitError):
                raise
        # deleting the unused trajectories first may make room
        self._delete_dropped()
        return self.call("Rollout", inputs)

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Differentiate a Python loss function; see `Transport.custom_loss`."""
        self._check_open()
        check_text(document)
        return self.transport.custom_loss(document, respond)

    def delete_later(self, trajectory_id: str) -> None:
        """Delete a trajectory along with a later call. Safe to call from a finalizer."""
        self._dropped.append(trajectory_id)

    def close(self) -> None:
        """Delete unused trajectories, then close the transport."""
        if self._closed or self._process != os.getpid():
            return
        try:
            self._delete_dropped()
        except RevoluteError:
            self._dropped.clear()
        self._closed = True
        self.transport.close()

    def _check_open(self) -> None:
        """Raise an error after `close`, and in a forked process."""
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
        """Remove unused trajectories from the list, as many as one rollout can delete."""
        taken: list[str] = []
        with contextlib.suppress(IndexError):
            while len(taken) < _MAX_DELETIONS:
                taken.append(self._dropped.popleft())
        return taken

    def _delete_dropped(self) -> None:
        """Delete unused trajectories, one call each."""
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
