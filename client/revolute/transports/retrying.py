"""Calls again what a server could not answer for now.

Only what may succeed a moment later is called again: a server that cannot be reached or is stopping, and a
refusal with a hint when to return. A mutation carries a `request_id`, the same for all attempts, so that the
server carries it out once even when only its answer was lost; none is repeated without.
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
from .network import closed_meanwhile

_FIRST_SECONDS = 0.1
_MOST_SECONDS = 5.0


class RetryingTransport:
    """Another transport, whose calls are tried again.

    The pause before attempt n is half to all of 0.1 s 2^n, at most 5 s, or what the server says if that is
    longer; no pause goes beyond the call's limit of time, which is one for all attempts.

    Args:
        inner: carries out each attempt.
        retries: attempts after the first.
        timeout: seconds that one call may take with all its attempts; None for no limit.
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
            verb: what to do.
            document: the request.
            timeout: seconds for all attempts; None for those of the transport.
            explain: returns what to raise when the server cannot be reached; what is permanent ends the
                attempts.
        """
        limit = self._timeout if timeout is None else timeout
        if VERBS[verb].mutation:
            document = _named(document)
        attempts = self._attempts(verb, limit)
        while True:
            try:
                return self._inner.call(verb, document, timeout=attempts.rest())
            except RevoluteError as error:
                attempts.pause_after(explain(error) if isinstance(error, UnavailableError) else error)
            except (RuntimeError, ValueError):
                # the libraries' words for a connection that another thread has closed
                if self._closed.is_set():
                    raise closed_meanwhile(verb) from None
                raise

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Carry out a verb whose answer is many documents; see `Transport.stream`.

        What breaks off is asked for again and goes on where it broke off: a repeat gives the same documents.
        """
        document = {**document, "inputs": _named(document["inputs"])}
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

    def own_loss(
        self, document: Mapping[str, Any], respond: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Carry out ValueAndGradient for a loss of the caller's own; see `Transport.own_loss`.

        The caller's loss is evaluated once: what fails after that is not tried again.
        """
        attempts = self._attempts("ValueAndGradient", self._timeout)
        asked = False

        def respond_once(trajectory: dict[str, Any]) -> Mapping[str, Any]:
            nonlocal asked
            asked = True
            return respond(trajectory)

        while True:
            try:
                return self._inner.own_loss(document, respond_once)
            except RevoluteError as error:
                if asked:
                    raise
                attempts.pause_after(error)

    def _attempts(self, verb: str, limit: float | None) -> _Attempts:
        return _Attempts(verb, self._retries, limit, self._closed)

    def close(self) -> None:
        """Close the other transport; a call that pauses ends."""
        self._closed.set()
        self._inner.close()


class _Attempts:
    """The attempts of one call.

    Args:
        verb: what is called.
        retries: attempts after the first.
        limit: seconds for all of them; None for no limit.
        closed: set when there shall be no more.
    """

    def __init__(self, verb: str, retries: int, limit: float | None, closed: threading.Event) -> None:
        self._verb = verb
        self._closed = closed
        self._retries = retries
        self._deadline = Deadline(limit)
        self._failed = 0

    def rest(self) -> float | None:
        """Return the seconds that are left for an attempt."""
        return self._deadline.rest() if self._failed else self._deadline.seconds

    def pause_after(self, error: RevoluteError) -> None:
        """Wait before the next attempt.

        Raises:
            RevoluteError: `error`, when there is no sense in another attempt or no time for it.
            CancelledError: the transport is closed.
        """
        pause = max(_backoff(self._failed), error.retry_after or 0.0)
        rest = self._deadline.rest()
        late = rest is not None and pause >= rest
        if self._failed >= self._retries or late or not is_transient(error):
            raise error
        self._failed += 1
        if self._closed.wait(pause):
            raise closed_meanwhile(self._verb)


def is_transient(error: RevoluteError) -> bool:
    """Tell whether the same call may succeed a moment later."""
    if isinstance(error, UnavailableError):
        return error.reason == UnavailableError.reason and not error.permanent
    return isinstance(error, LimitError) and error.retry_after is not None


def _named(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request with a name of its own."""
    return {**document, "request_id": str(uuid.uuid4())}


def _backoff(attempt: int) -> float:
    """Return the seconds before the next attempt; random, so that clients do not come back together."""
    return min(_MOST_SECONDS, _FIRST_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)
