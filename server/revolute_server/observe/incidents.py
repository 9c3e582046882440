"""Converts exceptions of verbs to the errors that clients get, for all transports.

A RevoluteError passes unchanged. Any other exception is a fault of the server: it is logged with a traceback
under an incident id, and the client gets only that id, without file names, stack or text.
"""

from __future__ import annotations

import asyncio
import logging
import secrets

from revolute.contract.errors import (
    CancelledError,
    InternalError,
    LimitError,
    RevoluteError,
    UnavailableError,
)

from ..started_threads import no_thread

_log = logging.getLogger("revolute.server")


def public_error(error: BaseException, where: str) -> RevoluteError:
    """Return the error to send to the client.

    Args:
        error: the exception of the verb.
        where: name of the verb, for the log.

    Returns:
        `error` itself if it is a RevoluteError; a LimitError if memory or threads ran out; otherwise an
        InternalError with the id of the logged incident.
    """
    if isinstance(error, RevoluteError):
        return error
    if isinstance(error, asyncio.CancelledError):
        return CancelledError("call: expected a client that waits for the answer, got a cancellation")
    if isinstance(error, MemoryError):
        _log.error("%s ran out of memory", where)
        return LimitError.expected(
            "memory",
            "an answer that fits into the machine's memory",
            "no more memory",
            advice="ask for less at once",
        )
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        _log.error("%s got no thread from the system", where)
        return no_thread("a thread for the call")
    incident = secrets.token_hex(6)
    _log.error("incident %s in %s", incident, where, exc_info=error)
    return InternalError(
        f"server: expected no fault, got one in {where}; "
        f"its log has the cause under incident {incident}, please report it"
    )


def stopping() -> UnavailableError:
    """Return the error of a call that is ended because the server stops."""
    return UnavailableError("server: expected a running server, got one that is stopping; call again later")
