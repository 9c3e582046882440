"""The verb of ServerService."""

from __future__ import annotations

from .. import answers
from ..answers import Document
from .base import ServiceVerbs


class ServerVerbs(ServiceVerbs):
    """Describes the server."""

    async def get_server_info(self) -> Document:
        return answers.server_info(self.service.info)
