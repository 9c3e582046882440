"""Turns whatever a verb raises into the one description that both transports send.

Errors of revolute pass unchanged. Anything else is a fault of the server: it is logged whole under an
incident id, and the client gets that id and nothing of the server's files, stack or text.
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
    """Return the error that a client may see.

    Args:
        error: what the verb raised.
        where: the verb's name, for the log.

    Returns:
        `error` itself when it is one of revolute's, else an InternalError that names the logged incident.
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
    """Return the error of a call that the server's end cuts off."""
    return UnavailableError("server: expected a running server, got one that is stopping; call again later")
