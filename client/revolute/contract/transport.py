"""The interface of a transport, which carries calls to an engine in process, over gRPC or over HTTP.

A transport takes a verb of the protocol and a request document, and returns the answer's document. Documents
use the field names of the proto files, so client classes do not depend on the transport.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

IN_PROCESS = "in-process"
"""Address of the engine in this process, and name of the in-process transport's entry point."""

ENTRY_POINTS = "revolute.transports"
"""Entry point group of transports. An entry point is a callable that takes the number of engine threads."""


class Transport(Protocol):
    """Carries calls to an engine."""

    address: str
    """Address of the engine, for messages."""

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """Carry out one verb.

        Args:
            verb: name of the verb, e.g. "Rollout"; see `contract.verbs`.
            document: the request by field names, arrays as float64; None leaves a field unset.
            timeout: time limit of this call in s; None for the transport's default.

        Returns:
            The answer by field names; arrays are native and do not share memory with the request.

        Raises:
            RevoluteError: the call failed; the class is one of `revolute.contract.errors`.
        """

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Carry out a verb whose answer is a stream of documents. Closing the iterator stops the verb.

        Args:
            verb: name of the verb.
            document: the request, as for `call`.

        Yields:
            The documents, as they arrive.
        """

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Carry out ValueAndGradient with a Python loss function.

        Args:
            document: `inputs` and `wrt` of ValueAndGradientInputs.
            respond: receives the document Trajectory; returns `qpos_bar` and `qvel_bar` of Cotangents.

        Returns:
            The document ValueAndGradientResult, without `value`.
        """

    def close(self) -> None:
        """Close connections and release kept objects."""
