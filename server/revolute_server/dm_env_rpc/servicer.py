"""The dm_env_rpc service: one stream per agent, one answer per request, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar

import grpc
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from google.protobuf.message import DecodeError

from revolute.contract.arrays import Float64Array
from revolute.contract.codec.status import encode_status
from revolute.contract.errors import (
    ArgumentError,
    NotFoundError,
    RevoluteError,
    UnavailableError,
    kind_of,
)

from ..access.admission import Calls
from ..grpc.client import Client, UnreadError
from ..grpc.interceptor import host_of, metadata_of
from ..grpc.waits import Peers
from ..observe.incidents import public_error
from ..verbs import Verbs
from . import tensors
from .task import START_SETTINGS, check_names
from .world import World
from .worlds import Worlds

LARGEST_REQUEST = 512 * 1024
"""Most bytes of a request. Each agent that makes the server wait may hold so many; a larger model can be
registered by another client."""

_SERVICE = "dm_env_rpc.v1.Environment"
_METHOD = "Process"


class EnvironmentServicer:
    """`dm_env_rpc.v1.Environment`. The waits for agents have the limits of all gRPC calls.

    Args:
        verbs: registers models and has the service.
        calls: admits each request of a stream as a call.
        peers: records the streams of each connection.
    """

    def __init__(self, verbs: Verbs, calls: Calls, peers: Peers) -> None:
        self.worlds = Worlds(verbs)
        self._service = verbs.service
        self._calls = calls
        self._peers = peers
        self._stopping = asyncio.Event()

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the gRPC handler; gRPC does not decode requests, so that malformed ones get an answer."""
        process: Any = grpc.stream_stream_rpc_method_handler(self.process)
        return grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: process})

    def drain(self) -> None:
        """End each stream after its current request."""
        self._stopping.set()

    async def process(self, _requests: object, context: grpc.aio.ServicerContext) -> None:
        """Answer the requests of one stream."""
        metadata, peer = metadata_of(context), context.peer()
        budget, settings = self._service.budget, self._service.settings
        client = Client(context, budget, self._peers, settings, "idle_timeout", LARGEST_REQUEST)
        agent = _Agent(self.worlds)
        stopping = asyncio.create_task(self._stopping.wait(), name="dm_env_rpc drain")
        try:
            self._calls.access.admit(f"Environment.{_METHOD}", metadata.get("authorization"))
            with self._peers.working(peer):
                while (content := await _next(client, stopping)) is not None:
                    await client.write(await self._answer(agent, content, metadata, host_of(peer)))
            if self._stopping.is_set():
                raise UnavailableError(
                    "server: expected a running server, got one that is stopping; connect again later"
                )
        except UnreadError:
            self._peers.unread.add(peer)
            raise asyncio.CancelledError from None
        except RevoluteError as error:
            await context.abort(grpc.StatusCode[kind_of(error).grpc_code], error.message)
        finally:
            stopping.cancel()
            agent.close()

    async def _answer(self, agent: _Agent, content: bytes, metadata: Mapping[str, str], host: str) -> bytes:
        """Answer one request; an error is an answer too, and the stream continues."""
        response = pb.EnvironmentResponse()
        with self._calls.open("dm_env_rpc", metadata, host=host) as call:
            try:
                request = _decode(content)
                kind = request.WhichOneof("payload")
                call.verb = f"Environment.{kind}"
                self._calls.admit(call, metadata.get("authorization"))
                getattr(response, kind).CopyFrom(await agent.answer(request))
            except Exception as error:
                found = public_error(error, call.verb)
                found.call_id = call.id
                call.reason = kind_of(found).reason
                response.error.ParseFromString(encode_status(found))
        return response.SerializeToString()


def _decode(content: bytes) -> pb.EnvironmentRequest:
    try:
        request = pb.EnvironmentRequest.FromString(content)
    except DecodeError:
        found = f"{len(content)} bytes that are none"
        raise ArgumentError.expected("request", "an EnvironmentRequest", found) from None
    kind = request.WhichOneof("payload")
    if kind not in _Agent.KINDS:
        raise ArgumentError.expected("payload", f"one of {', '.join(_Agent.KINDS)}", kind or "nothing")
    return request


async def _next(requests: Client, stopping: asyncio.Task[Any]) -> bytes | None:
    """Return the bytes of the next request; None at the end of the stream or when the server stops."""
    if stopping.done():
        return None
    reading = asyncio.ensure_future(anext(requests, None))
    try:
        await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
        return reading.result() if reading.done() else None
    finally:
        reading.cancel()


class _Agent:
    """One stream: the world that it has joined, and the worlds that it has created."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._world: World | None = None
        self._made: list[World] = []

    async def answer(self, request: pb.EnvironmentRequest) -> Any:
        """Answer one request."""
        kind = request.WhichOneof("payload")
        return await self.KINDS[kind](self, getattr(request, kind))

    def close(self) -> None:
        """Leave and release all worlds, at the end of the stream."""
        if self._world is not None:
            self._worlds.leave(self._world)
        for world in self._made:
            self._worlds.release(world)

    async def _create_world(self, request: Any) -> pb.CreateWorldResponse:
        world = await self._worlds.create(_settings(request.settings))
        self._made = [*(made for made in self._made if not made.destroyed), world]
        return pb.CreateWorldResponse(world_name=world.name)

    async def _join_world(self, request: Any) -> pb.JoinWorldResponse:
        if self._world is not None:
            raise ArgumentError.expected(
                "join_world", "a stream that is not joined", "one that is", advice="leave the world first"
            )
        check_names(request.settings, ())
        self._world = self._worlds.join(request.world_name)
        return pb.JoinWorldResponse(specs=self._world.specs)

    async def _step(self, request: Any) -> pb.StepResponse:
        world = self._joined()
        uids = sorted(set(request.requested_observations))
        for uid in uids:
            if uid not in world.specs.observations:
                known = ", ".join(map(str, sorted(world.specs.observations)))
                raise ArgumentError.expected("requested_observations", f"uids among {known}", uid)
        # the protocol ignores the actions of the step that starts an episode
        ctrl = _action(world, request.actions) if world.running else None
        moment = await world.step(ctrl)
        response = pb.StepResponse(state=moment.state)
        for uid in uids:
            response.observations[uid].CopyFrom(tensors.write(moment.observations[uid]))
        return response

    async def _reset(self, request: Any) -> pb.ResetResponse:
        world = self._joined()
        settings = _settings(request.settings)
        check_names(settings, START_SETTINGS)
        world.reset(settings)
        return pb.ResetResponse(specs=world.specs)

    async def _reset_world(self, request: Any) -> pb.ResetWorldResponse:
        world = self._worlds.get(request.world_name)
        settings = _settings(request.settings)
        check_names(settings, START_SETTINGS)
        if world is self._world:
            world.reset(settings)
        else:
            await world.interrupt(settings)
        return pb.ResetWorldResponse()

    async def _leave_world(self, request: Any) -> pb.LeaveWorldResponse:
        if self._world is not None:
            world, self._world = self._world, None
            self._worlds.leave(world)
        return pb.LeaveWorldResponse()

    async def _destroy_world(self, request: Any) -> pb.DestroyWorldResponse:
        if self._world is not None and self._world.name == request.world_name:
            raise ArgumentError.expected(
                "world_name", "a world that this stream is not joined to", "its own", advice="leave it first"
            )
        self._worlds.destroy(request.world_name)
        return pb.DestroyWorldResponse()

    def _joined(self) -> World:
        if self._world is None:
            raise ArgumentError.expected(
                "stream", "one that is joined to a world", "one that is not", advice="send join_world first"
            )
        if self._world.destroyed:
            raise NotFoundError.expected("world_name", "a world", "one that was destroyed", advice="leave it")
        return self._world

    KINDS: ClassVar[dict[str, Callable[[_Agent, Any], Awaitable[Any]]]] = {
        "create_world": _create_world,
        "join_world": _join_world,
        "step": _step,
        "reset": _reset,
        "reset_world": _reset_world,
        "leave_world": _leave_world,
        "destroy_world": _destroy_world,
    }
    """Handlers of the protocol's requests."""


def _settings(settings: Mapping[str, pb.Tensor]) -> dict[str, Any]:
    return {name: tensors.read(name, tensor) for name, tensor in settings.items()}


def _action(world: World, actions: Mapping[int, pb.Tensor]) -> Float64Array | None:
    """Return the controls in a step's actions, [nu]; None without actions."""
    ctrl = None
    for uid, tensor in actions.items():
        if uid not in world.specs.actions:
            known = ", ".join(map(str, sorted(world.specs.actions))) or "none"
            raise ArgumentError.expected("actions", f"uids among {known}", uid)
        spec = world.specs.actions[uid]
        ctrl = tensors.read_action(spec.name, tensor, spec)
    return ctrl
