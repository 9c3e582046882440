"""What verbs of all services share: the service, limits on requests, and mutations that happen once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from revolute.contract.errors import LimitError

from ..answers import Document
from ..domain.request_ids import Ticket
from ..domain.service import Service
from .body import Deletion


class ServiceVerbs:
    """The verbs of one service of the protocol.

    Args:
        service: what is held.
        with_ctrl: whether Rollout answers with the controls, which the caller knows.
    """

    def __init__(self, service: Service, *, with_ctrl: bool = False) -> None:
        self.service = service
        self._with_ctrl = with_ctrl

    def _check_batch(self, name: str, batch: int) -> None:
        """Refuse more environments than the server takes at once."""
        settings = self.service.settings
        if batch > settings.max_batch:
            raise LimitError.expected(
                name,
                f"at most {settings.max_batch} environments",
                batch,
                advice=f"split them, or start the server with more than {settings.flag('max_batch')}",
            )

    def _once(self, request_id: str, *arguments: Any, **options: Any) -> Awaitable[Document]:
        """Carry out a mutation once, however often it is asked for; see `Requests.once`."""
        return self.service.requests.once(request_id, *arguments, **options)

    async def _delete(
        self, verb: str, identifier: str, body: Deletion, delete: Callable[[str, Ticket], Awaitable[None]]
    ) -> Document:
        """Delete something, once."""
        return await self._once(
            body.request_id,
            verb,
            {"id": identifier},
            lambda ticket: delete(identifier, ticket),
            lambda _nothing: {},
        )
