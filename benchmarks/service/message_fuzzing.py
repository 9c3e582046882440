"""Sends damaged requests of every rpc to a server and looks at what comes back."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import random
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from .mutations import Parts, mutated
from .seeds import Rpc, request_of, rpcs

FAULTS = ("INTERNAL", "UNKNOWN", "UNAVAILABLE", "UNIMPLEMENTED", "DATA_LOSS")
"""Codes that no message may be answered with: faults, crashes, verbs that are not there."""

SECONDS = 0.5
"""Deadline of a call: a damaged number of steps may ask for years."""

PATIENCE = 30.0
"""Deadline of a call that is not damaged."""

_OF_THE_CLIENT = "Internal error from Core"
"""What grpc.aio's client says of a part that it could not send because the answer had come already: the
answer is lost, so the request is sent again by the blocking client, which keeps it."""

_ALL = ("ModelService.RegisterModel", "SessionService.CreateSession", "TrajectoryService.Rollout")
"""The verbs that make something."""

_REFRESH = 500
"""Requests after which there are new sessions and trajectories, since some requests delete theirs."""


@dataclasses.dataclass
class Report:
    """What a run found.

    Attributes:
        sent: requests sent.
        codes: how many were answered with each status.
        faults: the rpc, the parts in hexadecimal and the error of those that should not have been.
    """

    sent: int = 0
    codes: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    faults: list[dict[str, Any]] = dataclasses.field(default_factory=list)


async def fuzz(target: str, count: int, seed: int, *, concurrency: int = 16) -> Report:
    """Send `count` damaged requests to the server at `target`, reproducibly but for their order.

    Args:
        target: "host:port".
        count: how many.
        seed: of everything random.
        concurrency: requests under way at a time.
    """
    report, dice = Report(), random.Random(seed)
    async with _Client(target) as client:
        while report.sent < count:
            seeds = await _seeds(client)
            strangers = [part for parts in seeds.values() for part in parts]
            requests = iter(
                [
                    (rpc, _damaged(rpc, seeds[rpc], strangers, dice))
                    for rpc in dice.choices(list(seeds), k=min(_REFRESH, count - report.sent))
                ]
            )
            await asyncio.gather(*(_send_all(client, requests, report) for _ in range(concurrency)))
    return report


def _damaged(rpc: Rpc, parts: Parts, strangers: Parts, dice: random.Random) -> Parts:
    """Return a damaged request; one that is not streamed still has one part, which gRPC itself sees to."""
    damaged = mutated(parts, strangers, dice)
    return damaged if rpc.descriptor.client_streaming else [*damaged, b""][:1]


async def answers_to_valid_requests(target: str) -> dict[str, str]:
    """Return the status of an undamaged request of every rpc, so that a fuzzing of refusals is noticed."""
    async with _Client(target) as client:
        return {
            rpc.name: (await client.send(rpc, parts, PATIENCE))[0]
            for rpc, parts in (await _seeds(client)).items()
        }


class _Client:
    """Sends bytes to any rpc."""

    def __init__(self, target: str) -> None:
        self._target = target

    async def __aenter__(self) -> _Client:
        self._channel = grpc.aio.insecure_channel(self._target)
        self._blocking = grpc.insecure_channel(self._target)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._channel.close()
        self._blocking.close()

    async def send(self, rpc: Rpc, parts: Parts, seconds: float) -> tuple[str, Any]:
        """Return the status, and the answer's messages or the error's text."""
        stream: Any = self._channel.stream_stream(rpc.path)
        call = stream(iter(parts), timeout=seconds)
        try:
            return "OK", [answer async for answer in call]
        except asyncio.CancelledError:
            # grpc.aio's way to say that the server answered CANCELLED
            if call.cancelled():
                return "CANCELLED", "CANCELLED"
            raise
        except grpc.aio.AioRpcError as error:
            if error.details() == _OF_THE_CLIENT:
                return await asyncio.to_thread(self._send_blocking, rpc, parts, seconds)
            return _failure(error)

    def _send_blocking(self, rpc: Rpc, parts: Parts, seconds: float) -> tuple[str, Any]:
        try:
            stream: Any = self._blocking.stream_stream(rpc.path)
            return "OK", list(stream(iter(parts), timeout=seconds))
        except grpc.RpcError as error:
            return _failure(error)


def _failure(error: Any) -> tuple[str, str]:
    return error.code().name, f"{error.code().name}: {error.details()}"


async def _seeds(client: _Client) -> dict[Rpc, Parts]:
    """Return a valid request of every rpc; what is to be deleted is not what the others use."""
    used, spare = await _made(client, b"cart", *_ALL), await _made(client, b"tram", *_ALL)
    # a model can go only when nothing uses it
    alone = await _made(client, b"sled", *_ALL[:1])
    deleted = {"DeleteModel": alone, "DeleteSession": spare, "DeleteTrajectory": spare}
    return {rpc: request_of(rpc, deleted.get(rpc.descriptor.name, used)) for rpc in rpcs()}


async def _made(client: _Client, name: bytes, *verbs: str) -> dict[str, str]:
    """Make a model of some name, and what else the verbs make; return the ids."""
    by_name = {rpc.name: rpc for rpc in rpcs()}
    ids: dict[str, str] = {}
    for verb in verbs:
        parts = [part.replace(b"cart", name) for part in request_of(by_name[verb], ids)]
        code, answers = await client.send(by_name[verb], parts, PATIENCE)
        if code != "OK":
            raise RuntimeError(f"{verb} was answered with {answers}")
        ids |= _ids(by_name[verb], answers[0])
    return ids


async def _send_all(client: _Client, requests: Iterator[tuple[Rpc, Parts]], report: Report) -> None:
    for rpc, parts in requests:
        code, detail = await client.send(rpc, parts, SECONDS)
        report.sent += 1
        report.codes[code] += 1
        if code in FAULTS:
            report.faults.append({"rpc": rpc.name, "parts": [part.hex() for part in parts], "error": detail})
        elif code == "OK":
            await _forget(client, rpc, detail)


async def _forget(client: _Client, rpc: Rpc, answers: list[bytes]) -> None:
    """Delete what a request made, so that the server does not fill up."""
    made = _ids(rpc, answers[0]) if answers else {}
    for field, service, verb in (
        ("session_id", "SessionService", "DeleteSession"),
        ("trajectory_id", "TrajectoryService", "DeleteTrajectory"),
    ):
        if field in made and rpc.descriptor.name in ("CreateSession", "ForkSession", "Rollout"):
            delete = next(one for one in rpcs() if one.name == f"{service}.{verb}")
            await client.send(delete, request_of(delete, made), PATIENCE)


def _ids(rpc: Rpc, content: bytes) -> dict[str, str]:
    """Return the ids in an answer, wherever they stand in its first message."""
    with contextlib.suppress(DecodeError):
        return _ids_in(GetMessageClass(rpc.descriptor.output_type).FromString(content))
    return {}


def _ids_in(message: Message) -> dict[str, str]:
    found: dict[str, str] = {}
    for field, value in message.ListFields():
        if field.name in ("model_id", "session_id", "trajectory_id"):
            found[field.name] = value
        elif field.name in ("start", "model"):
            found |= _ids_in(value)
    return found
