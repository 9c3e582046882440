"""Base class of the verbs: limits on requests, and mutations that are carried out once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from revolute.contract.errors import LimitError

from ..answers import Document
from ..domain.request_ids import Ticket
from ..domain.service import Service
from .body import Deletion


class ServiceVerbs:
    """Base class of the verbs of one service of the protocol.

    Args:
        service: models, sessions and trajectories.
        with_ctrl: whether the answer of Rollout includes the controls.
    """

    def __init__(self, service: Service, *, with_ctrl: bool = False) -> None:
        self.service = service
        self._with_ctrl = with_ctrl

    def _check_batch(self, name: str, batch: int) -> None:
        """Refuse a batch of more environments than the setting `max_batch`."""
        settings = self.service.settings
        if batch > settings.max_batch:
            raise LimitError.expected(
                name,
                f"at most {settings.max_batch} environments",
                batch,
                advice=f"split them, or start the server with more than {settings.flag('max_batch')}",
            )

    def _once(self, request_id: str, *arguments: Any, **options: Any) -> Awaitable[Document]:
        """Carry out a mutation once, even if the request is repeated; see `Requests.once`."""
        return self.service.requests.once(request_id, *arguments, **options)

    async def _delete(
        self, verb: str, identifier: str, body: Deletion, delete: Callable[[str, Ticket], Awaitable[None]]
    ) -> Document:
        """Carry out a deletion once."""
        return await self._once(
            body.request_id,
            verb,
            {"id": identifier},
            lambda ticket: delete(identifier, ticket),
            lambda _nothing: {},
        )
