"""Retries calls after transient failures.

A failure is transient if the server cannot be reached, is stopping, or says when to try again. A mutation
carries the same `request_id` in all attempts, so the server carries it out once even if its answer was lost.
"""

from __future__ import annotations

import itertools
import random
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..contract.errors import LimitError, RevoluteError, UnavailableError
from ..contract.transport import Transport
from ..contract.verbs import VERBS
from .deadline import Deadline
from .network import closed_during_call

_FIRST_SECONDS = 0.1
_MOST_SECONDS = 5.0


class RetryingTransport:
    """Wraps a transport and retries its calls.

    The pause before retry n = 0, 1, … is random between 50 % and 100 % of min(0.1 s 2^n, 5 s), or longer if
    the server asks for it. The time limit covers all attempts and pauses of a call.

    Args:
        inner: carries out each attempt.
        retries: largest number of attempts after the first.
        timeout: time limit of one call with all its attempts in s; None for no limit.
    """

    def __init__(self, inner: Transport, retries: int, timeout: float | None) -> None:
        self.address = inner.address
        self._inner = inner
        self._retries = retries
        self._timeout = timeout
        self._closed = threading.Event()

    def call(
        self,
        verb: str,
        document: Mapping[str, Any],
        *,
        timeout: float | None = None,
        explain: Callable[[UnavailableError], UnavailableError] = lambda error: error,
    ) -> dict[str, Any]:
        """Carry out one verb; see `Transport.call`.

        Args:
            verb: name of the verb.
            document: the request.
            timeout: time limit of all attempts in s; None for the transport's limit.
            explain: replaces an UnavailableError by a more precise one; a permanent one is not retried.
        """
        limit = self._timeout if timeout is None else timeout
        if VERBS[verb].mutation:
            document = _with_request_id(document)
        attempts = self._attempts(verb, limit)
        while True:
            try:
                return self._inner.call(verb, document, timeout=attempts.remaining())
            except RevoluteError as error:
                attempts.pause_after(explain(error) if isinstance(error, UnavailableError) else error)
            except (RuntimeError, ValueError):
                # the libraries raise these when another thread closes the connection
                if self._closed.is_set():
                    raise closed_during_call(verb) from None
                raise

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Carry out a streaming verb; see `Transport.stream`.

        After a failure, the stream is requested again, and the documents already delivered are skipped. A
        repeated request returns the same documents.
        """
        document = {**document, "inputs": _with_request_id(document["inputs"])}
        attempts = self._attempts(verb, self._timeout)
        taken = 0
        while True:
            source = self._inner.stream(verb, document)
            try:
                for found in itertools.islice(source, taken, None):
                    taken += 1
                    yield found
                return
            except RevoluteError as error:
                attempts.pause_after(error)
            finally:
                close = getattr(source, "close", None)
                if close is not None:
                    close()

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Carry out ValueAndGradient with a Python loss function; see `Transport.custom_loss`.

        The function is called at most once; failures after that call are not retried.
        """
        attempts = self._attempts("ValueAndGradient", self._timeout)
        asked = False

        def respond_once(trajectory: dict[str, Any]) -> Mapping[str, Any]:
            nonlocal asked
            asked = True
            return respond(trajectory)

        while True:
            try:
                return self._inner.custom_loss(document, respond_once)
            except RevoluteError as error:
                if asked:
                    raise
                attempts.pause_after(error)

    def _attempts(self, verb: str, limit: float | None) -> _Attempts:
        return _Attempts(verb, self._retries, limit, self._closed)

    def close(self) -> None:
        """Close the wrapped transport. Calls that are waiting for a retry fail."""
        self._closed.set()
        self._inner.close()


class _Attempts:
    """The attempts of one call.

    Args:
        verb: name of the verb.
        retries: largest number of attempts after the first.
        limit: time limit of all attempts in s; None for no limit.
        closed: set when the transport is closed.
    """

    def __init__(self, verb: str, retries: int, limit: float | None, closed: threading.Event) -> None:
        self._verb = verb
        self._closed = closed
        self._retries = retries
        self._deadline = Deadline(limit)
        self._failed = 0

    def remaining(self) -> float | None:
        """Return the time limit of the next attempt in s."""
        return self._deadline.remaining() if self._failed else self._deadline.seconds

    def pause_after(self, error: RevoluteError) -> None:
        """Wait before the next attempt.

        Raises:
            RevoluteError: `error`, if it is not transient or no retry or time is left.
            CancelledError: the transport was closed.
        """
        pause = max(_backoff(self._failed), error.retry_after or 0.0)
        rest = self._deadline.remaining()
        late = rest is not None and pause >= rest
        if self._failed >= self._retries or late or not is_transient(error):
            raise error
        self._failed += 1
        if self._closed.wait(pause):
            raise closed_during_call(self._verb)


def is_transient(error: RevoluteError) -> bool:
    """Return whether the same call may succeed later."""
    if isinstance(error, UnavailableError):
        return error.reason == UnavailableError.reason and not error.permanent
    return isinstance(error, LimitError) and error.retry_after is not None


def _with_request_id(document: Mapping[str, Any]) -> dict[str, Any]:
    """Add a new request id to a request."""
    return {**document, "request_id": str(uuid.uuid4())}


def _backoff(attempt: int) -> float:
    """Return the pause before a retry in s. It is random, so that clients do not retry simultaneously."""
    return min(_MOST_SECONDS, _FIRST_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)
