"""The gRPC server of dm_env_rpc."""

from __future__ import annotations

import grpc

from ..access import listeners
from ..access.admission import Calls
from ..grpc.connections import connection_options
from ..grpc.services import channel_options
from ..grpc.waits import Peers
from ..verbs import Verbs
from .servicer import LARGEST_REQUEST, EnvironmentServicer


class Listener:
    """Serves `dm_env_rpc.v1.Environment` on a separate port."""

    def __init__(self, verbs: Verbs, calls: Calls, peers: Peers) -> None:
        self._servicer = EnvironmentServicer(verbs, calls, peers)
        largest = ("grpc.max_receive_message_length", LARGEST_REQUEST)
        self._server = grpc.aio.server(
            options=(*channel_options(), *connection_options(verbs.service.settings), largest)
        )
        self._server.add_generic_rpc_handlers((self._servicer.handlers(),))

    def bind(self, host: str, port: int, tls: listeners.Tls | None) -> int:
        """Listen on an address and return its port.

        Raises:
            ArgumentError: the address cannot be bound.
        """
        return listeners.bind_grpc(self._server, host, port, tls, setting="dm_env_rpc")

    async def start(self) -> None:
        """Start to serve."""
        await self._server.start()

    def drain(self) -> None:
        """End idle streams now, and others after their current request."""
        self._servicer.drain()

    async def stop(self, grace: float) -> None:
        """End the remaining streams after `grace` seconds."""
        await self._server.stop(grace)
