"""Whether the store answers, asked for again and again, so that readiness is known before a call fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from revolute.contract.errors import RevoluteError

from ..store import Store

_log = logging.getLogger("revolute.server")

_EVERY_SECONDS = 0.4
_ANSWER_SECONDS = 1.0
"""Time for a sign of life. A store that dies is known after both times at most, well within 2 s."""


class StoreWatch:
    """Asks a store for signs of life.

    Args:
        store: the store, open.

    Attributes:
        answers: whether it gave the last one.
        changed: called when `answers` has changed.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self.answers = True
        self.changed: Callable[[], Awaitable[None]] = _nothing

    def start(self) -> None:
        """Ask from time to time, until `stop`."""
        self._task = asyncio.create_task(self._ask_always(), name="store watch")

    async def stop(self) -> None:
        """Ask no more."""
        if self._task:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _ask_always(self) -> None:
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            fault = await self._fault()
            if self.answers != (fault is None):
                self.answers = fault is None
                if fault is None:
                    _log.warning("the store answers again; ready")
                else:
                    _log.warning("the store does not answer; not ready until it does: %s", fault)
                await self.changed()

    async def _fault(self) -> str | None:
        """Return what is wrong with the store; None for a sign of life."""
        try:
            await asyncio.wait_for(self._store.check(), _ANSWER_SECONDS)
        except asyncio.TimeoutError:
            return f"no answer within {_ANSWER_SECONDS:g} s"
        except RevoluteError as error:
            return str(error)
        except Exception as error:
            _log.exception("the store cannot be asked")
            return type(error).__name__
        return None


async def _nothing() -> None:
    """Tell nobody."""
