"""The gRPC transport: turns messages into documents, calls the verbs, and turns the answers back."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from revolute.codec.documents import read_message
from revolute.errors import ArgumentError
from revolute.v1 import (
    model_pb2,
    model_pb2_grpc,
    server_pb2,
    server_pb2_grpc,
    session_pb2,
    session_pb2_grpc,
    trajectory_pb2,
    trajectory_pb2_grpc,
)

from .answers import Document, document_bytes
from .calls import Calls
from .grpc_calls import CallInterceptor
from .grpc_messages import receive, send, whole
from .memory import Reservation
from .offered_memory import OpenBlocks
from .verbs import Verbs

Verb = Callable[..., Coroutine[Any, Any, Document]]
Undo = Callable[[Document], None]

_MOST = 2**31 - 1
"""Largest value of an option of gRPC."""

CHANNEL_OPTIONS = (
    # a client may send a part or two ahead of what was read: large arrays come in half the time
    ("grpc.http2.lookahead_bytes", 1024**2),
    # read in pieces of 8 KiB, as is the default, an array costs its reader twice the time
    ("grpc.experimental.tcp_read_chunk_size", 256 * 1024),
    # a second server on the same port is an error, not a silent sharing of its calls
    ("grpc.so_reuseport", 0),
    # by default calls that the event loop has not come to yet are dropped, as CANCELLED, when there are a
    # thousand of them or after 30 s; here each gets an answer or a reason, or reaches its deadline
    ("grpc.server.max_pending_requests", _MOST),
    ("grpc.server.max_pending_requests_hard_limit", _MOST),
    ("grpc.server_max_unrequested_time_in_server", _MOST),
    # clients may ping idle connections every 15 s, so that a dead peer is noticed
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 15_000),
    ("grpc.keepalive_permit_without_calls", 1),
)

_LARGEST_PART = ("grpc.max_receive_message_length", 2 * 1024**2)
"""Parts are at most 1 MiB. Protobuf parses 2 MiB of the worst kind in 50 ms, in which nothing else runs."""

SERVICES = tuple(
    descriptor.services_by_name[name].full_name
    for descriptor, name in (
        (model_pb2.DESCRIPTOR, "ModelService"),
        (session_pb2.DESCRIPTOR, "SessionService"),
        (trajectory_pb2.DESCRIPTOR, "TrajectoryService"),
        (server_pb2.DESCRIPTOR, "ServerService"),
    )
)


class Health:
    """`grpc.health.v1` for the server as a whole and for each service."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self._servicer = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def set_serving(self, serving: bool) -> None:
        """Report every service as serving or not."""
        names = health_pb2.HealthCheckResponse
        status = names.SERVING if serving else names.NOT_SERVING
        for service in ("", *SERVICES):
            await self._servicer.set(service, status)


def create_server(
    verbs: Verbs, calls: Calls, memory: OpenBlocks | None = None
) -> tuple[grpc.aio.Server, Health]:
    """Build the gRPC server with all services, health and reflection; it is not yet bound to an address.

    Args:
        verbs: what it does.
        calls: the calls of all listeners.
        memory: what clients on this machine share with us; None where they shall not.
    """
    server = grpc.aio.server(
        interceptors=[CallInterceptor(calls, memory)], options=(*CHANNEL_OPTIONS, _LARGEST_PART)
    )
    model_pb2_grpc.add_ModelServiceServicer_to_server(ModelServicer(verbs), server)
    session_pb2_grpc.add_SessionServiceServicer_to_server(SessionServicer(verbs), server)
    trajectory_pb2_grpc.add_TrajectoryServiceServicer_to_server(TrajectoryServicer(verbs), server)
    server_pb2_grpc.add_ServerServiceServicer_to_server(ServerServicer(verbs), server)
    reported = Health(server)
    reflection.enable_server_reflection((*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    return server, reported


class _Servicer:
    """What the four services share: the verbs, and how a streamed request is answered."""

    def __init__(self, verbs: Verbs) -> None:
        self.verbs = verbs

    async def read(self, parts: Any, memory: Reservation) -> dict[str, Any]:
        """Read a streamed request."""
        return await receive(parts, memory, self.verbs.service.settings)

    async def read_one(self, parts: Any, memory: Reservation, first: str = "start") -> dict[str, Any]:
        """Read one message of a stream that goes on after it."""
        return await receive(parts, memory, self.verbs.service.settings, first, to_end=False)

    def memory(self) -> Reservation:
        """Count the memory of a request and its answer; nothing yet."""
        return self.verbs.service.budget.reserve("a request")

    def send(
        self, part_type: type[Message], start: Message, document: Document, first: str = "start"
    ) -> AsyncGenerator[Any, None]:
        """Write a message of an answer part by part; `first` names the field that begins it."""
        return send(part_type, start, document, self.verbs.service.telemetry, first)

    async def stream(
        self,
        parts: Any,
        verb: Verb,
        part_type: type[Message],
        start: Message,
        *,
        undo: Undo | None = None,
    ) -> AsyncGenerator[Any, None]:
        """Answer a streamed request with a stream.

        Args:
            parts: the request's parts.
            verb: what to do.
            part_type: message of the answer's parts.
            start: the answer's empty message.
            undo: forgets what the verb kept for the caller, who did not get the whole answer. The answer's
                arrays are counted while they are sent, unless they are those of a kept trajectory with all
                its states.
        """
        with self.memory() as memory:
            request = await self.read(parts, memory)
            document = await verb(request)
            try:
                if undo is None or document.get("checkpoints") != "every":
                    memory.grow(document_bytes(document))
                async for part in self.send(part_type, start, document):
                    yield part
            except BaseException:
                if undo is not None:
                    undo(document)
                raise


class ModelServicer(_Servicer, model_pb2_grpc.ModelServiceServicer):
    """ModelService over gRPC."""

    async def RegisterModel(self, request_iterator: Any, context: Any) -> Any:
        with self.memory() as memory:
            request = await self.read(request_iterator, memory)
            info = await self.verbs.register_model({**request, "text": _text(request.get("text", b""))})
        return whole(model_pb2.RegisterModelResponse(), {"model": info})

    async def GetModel(self, request: Any, context: Any) -> Any:
        return whole(model_pb2.GetModelResponse(), {"model": await self.verbs.get_model(request.model_id)})

    async def ListModels(self, request: Any, context: Any) -> Any:
        return whole(model_pb2.ListModelsResponse(), await self.verbs.list_models(read_message(request, {})))

    async def DeleteModel(self, request: Any, context: Any) -> Any:
        await self.verbs.delete_model(*_named(request, "model_id"))
        return model_pb2.DeleteModelResponse()


class SessionServicer(_Servicer, session_pb2_grpc.SessionServiceServicer):
    """SessionService over gRPC."""

    async def CreateSession(self, request: Any, context: Any) -> Any:
        document = await self.verbs.create_session(read_message(request, {}))
        return whole(session_pb2.CreateSessionResponse(), document)

    async def GetSession(self, request: Any, context: Any) -> Any:
        document = await self.verbs.get_session(request.session_id)
        return whole(session_pb2.GetSessionResponse(), {"session": document})

    async def ListSessions(self, request: Any, context: Any) -> Any:
        document = await self.verbs.list_sessions(read_message(request, {}))
        return whole(session_pb2.ListSessionsResponse(), document)

    async def KeepAlive(self, request: Any, context: Any) -> Any:
        document = await self.verbs.keep_alive(*_named(request, "session_id"))
        return whole(session_pb2.KeepAliveResponse(), document)

    async def ForkSession(self, request: Any, context: Any) -> Any:
        document = await self.verbs.fork_session(*_named(request, "session_id"))
        return whole(session_pb2.ForkSessionResponse(), document)

    def SetState(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        async def verb(request: dict[str, Any]) -> Document:
            return await self.verbs.set_state(request.pop("session_id"), request)

        return self.stream(request_iterator, verb, session_pb2.SetStateResponse, session_pb2.SessionState())

    def Reset(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        async def verb(request: dict[str, Any]) -> Document:
            return await self.verbs.reset(request.pop("session_id"), request)

        return self.stream(request_iterator, verb, session_pb2.ResetResponse, session_pb2.SessionState())

    def Step(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        async def verb(request: dict[str, Any]) -> Document:
            return await self.verbs.step(request.pop("session_id"), request)

        return self.stream(request_iterator, verb, session_pb2.StepResponse, session_pb2.SessionState())

    def Jacobian(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        async def verb(request: dict[str, Any]) -> Document:
            return await self.verbs.session_jacobian(request.pop("session_id"), request)

        answer = session_pb2.SessionServiceJacobianResponse, trajectory_pb2.StepJacobian()
        return self.stream(request_iterator, verb, *answer)

    async def GetState(self, request: Any, context: Any) -> AsyncGenerator[Any, None]:
        state = await self.verbs.get_state(request.session_id)
        async for part in self.send(session_pb2.GetStateResponse, session_pb2.SessionState(), state):
            yield part

    async def DeleteSession(self, request: Any, context: Any) -> Any:
        await self.verbs.delete_session(*_named(request, "session_id"))
        return session_pb2.DeleteSessionResponse()


class TrajectoryServicer(_Servicer, trajectory_pb2_grpc.TrajectoryServiceServicer):
    """TrajectoryService over gRPC."""

    def Rollout(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        answer = trajectory_pb2.RolloutResponse, trajectory_pb2.Trajectory()
        undo = self.verbs.undo_rollout
        return self.stream(request_iterator, self.verbs.rollout, *answer, undo=undo)

    async def StreamRollout(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        part_type = trajectory_pb2.StreamRolloutResponse
        with self.memory() as memory:
            request = await self.read(request_iterator, memory)
            async with contextlib.aclosing(self.verbs.stream_rollout(request)) as pieces:
                async for piece in pieces:
                    if "trajectory_id" not in piece:
                        async for part in self.send(part_type, trajectory_pb2.RolloutSegment(), piece):
                            yield part
                        continue
                    try:
                        yield part_type(end=whole(trajectory_pb2.RolloutEnd(), piece))
                    except BaseException:
                        self.verbs.undo_rollout(piece)
                        raise

    async def GetTrajectory(self, request: Any, context: Any) -> AsyncGenerator[Any, None]:
        states = request.states if request.HasField("states") else None
        answer = trajectory_pb2.GetTrajectoryResponse, trajectory_pb2.Trajectory()
        with self.memory() as memory:
            trajectory = await self.verbs.get_trajectory(request.trajectory_id, states)
            if trajectory["checkpoints"] != "every":
                memory.grow(document_bytes(trajectory))
            async for part in self.send(*answer, trajectory):
                yield part

    def Backward(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        async def verb(request: dict[str, Any]) -> Document:
            return await self.verbs.backward(request.pop("trajectory_id"), request)

        return self.stream(request_iterator, verb, trajectory_pb2.BackwardResponse, trajectory_pb2.Gradient())

    def Jvp(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        async def verb(request: dict[str, Any]) -> Document:
            return await self.verbs.jvp(request.pop("trajectory_id"), request)

        answer = trajectory_pb2.JvpResponse, trajectory_pb2.TrajectoryTangent()
        return self.stream(request_iterator, verb, *answer)

    def Jacobian(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        answer = trajectory_pb2.JacobianResponse, trajectory_pb2.StepJacobian()
        return self.stream(request_iterator, self.verbs.jacobian, *answer)

    async def CheckGradient(self, request_iterator: Any, context: Any) -> Any:
        with self.memory() as memory:
            report = await self.verbs.check_gradient(await self.read(request_iterator, memory))
        return whole(trajectory_pb2.CheckGradientResponse(), {"report": report})

    async def ValueAndGradient(self, request_iterator: Any, context: Any) -> AsyncGenerator[Any, None]:
        with self.memory() as memory:
            request = await self.read_one(request_iterator, memory)
            answers = self._given_loss if "loss" in request else self._own_loss
            async with contextlib.aclosing(answers(request, request_iterator, memory)) as parts:
                async for part in parts:
                    yield part

    async def _given_loss(
        self, request: dict[str, Any], request_iterator: Any, memory: Reservation
    ) -> AsyncGenerator[Any, None]:
        """Answer with the loss and its gradient."""
        async for _ in request_iterator:
            raise ArgumentError.expected("part", "the end of the stream", "one part more")
        document = await self.verbs.value_and_gradient(_with_default_words(request))
        memory.grow(document_bytes(document))
        answer = trajectory_pb2.ValueAndGradientResponse, trajectory_pb2.ValueAndGradientResult()
        async for part in self.send(*answer, document):
            yield part

    async def _own_loss(
        self, request: dict[str, Any], request_iterator: Any, memory: Reservation
    ) -> AsyncGenerator[Any, None]:
        """Send the trajectory, wait for the client's cotangents, and answer with the gradient."""
        part_type = trajectory_pb2.ValueAndGradientResponse
        async with self.verbs.own_loss(request) as (trajectory, differentiate):
            async for part in self.send(part_type, trajectory_pb2.Trajectory(), trajectory, "trajectory"):
                yield part
            cotangents = await self.read_one(request_iterator, memory, "cotangents")
            for name in ("trajectory_id", "wrt"):
                if cotangents.pop(name):
                    raise ArgumentError.expected(f"cotangents.{name}", "nothing", "a value")
            document = await differentiate(cotangents)
            memory.grow(document_bytes(document))
            async for part in self.send(part_type, trajectory_pb2.ValueAndGradientResult(), document):
                yield part

    async def DeleteTrajectory(self, request: Any, context: Any) -> Any:
        await self.verbs.delete_trajectory(*_named(request, "trajectory_id"))
        return trajectory_pb2.DeleteTrajectoryResponse()


class ServerServicer(_Servicer, server_pb2_grpc.ServerServiceServicer):
    """ServerService over gRPC."""

    async def GetServerInfo(self, request: Any, context: Any) -> Any:
        return whole(server_pb2.GetServerInfoResponse(), await self.verbs.get_server_info())


def _named(request: Message, name: str) -> tuple[str, dict[str, Any]]:
    """Return the id that a request names, and the rest of it."""
    document = read_message(request, {})
    return document.pop(name), document


def _text(content: bytes) -> str:
    """Return a model's text, which is sent as bytes."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {content[error.start]:#04x}"
        raise ArgumentError.expected("text", "a file in UTF-8", found, at=f"byte {error.start}") from None


def _with_default_words(request: dict[str, Any]) -> dict[str, Any]:
    """Leave out the words of a loss that were not set; the protocol has the empty string for that."""
    for term in request.get("loss", {}).get("terms", ()):
        for word in ("when", "form"):
            if not term[word]:
                del term[word]
    return request
