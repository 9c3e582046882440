"""The interface of a transport, a way to reach an engine: in this process, over gRPC or over HTTP.

A transport takes a verb of the protocol and its document, and returns the answer's document. Documents have
the field names of the proto files, so the classes above a transport are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

IN_PROCESS = "in-process"
"""Address of the engine in this process, and name of its entry point."""

ENTRY_POINTS = "revolute.transports"
"""Group of the entry points of packages that offer a transport: callables that take the engine's threads."""


class Transport(Protocol):
    """One way to reach an engine."""

    address: str
    """Where the engine is, for people."""

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """Carry out one verb.

        Args:
            verb: name of the rpc, e.g. "Rollout"; of two rpcs with one name, that of a session is called
                "SessionJacobian".
            document: the request by field names, arrays as float64; None leaves a field unset.
            timeout: seconds that this call may take; None for the transport's own limit.

        Returns:
            The answer by field names; arrays are native and not shared with the request.

        Raises:
            RevoluteError: of the class that the failure has in `revolute.contract.errors`.
        """

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Carry out a verb whose answer is many documents; closing the iterator stops the verb.

        Args:
            verb: name of the rpc.
            document: the request, as for `call`.

        Yields:
            The documents, as soon as they are there.
        """

    def own_loss(
        self, document: Mapping[str, Any], respond: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Carry out ValueAndGradient for a loss of the caller's own.

        Args:
            document: `inputs` and `wrt` of ValueAndGradientInputs.
            respond: gets the document Trajectory and returns `qpos_bar` and `qvel_bar` of Cotangents.

        Returns:
            The document ValueAndGradientResult, without `value`.
        """

    def close(self) -> None:
        """Let go of connections and kept objects."""
