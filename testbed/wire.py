"""Calls a server the way a client in another language would: bare stubs over gRPC, bare requests over HTTP.

Both clients offer the same two things, `call(verb, document)` for an answer and `error(verb, document)` for
the error it ends with, so that one test judges both transports.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import httpx
import numpy as np

from revolute.contract.codec.documents import fill_message, read_message
from revolute.contract.codec.npz import pack_npz, unpack_npz
from revolute.contract.codec.parts import assemble, read_values, to_parts
from revolute.contract.codec.status import DETAILS_KEY, decode_status
from revolute.contract.errors import RevoluteError, error_from
from revolute.contract.v1 import model_pb2, server_pb2, session_pb2, trajectory_pb2
from revolute.contract.verbs import VERBS

from .stubs import Stub, service_of

Document = dict[str, Any]

MESSAGES = {
    "SessionJacobian" if messages is session_pb2 and rpc.name == "Jacobian" else rpc.name: messages
    for messages in (model_pb2, session_pb2, trajectory_pb2, server_pb2)
    for rpc in service_of(messages).methods
    if rpc.name != "StreamRollout"
}
"""Module of the messages of each verb that has one answer."""


WRAPPED = {
    "RegisterModel": "model",
    "GetModel": "model",
    "GetSession": "session",
    "CheckGradient": "report",
}
"""Field of the answer that holds the document, for unary answers that wrap it."""


def rpc_name(verb: str) -> str:
    """Return the name of a verb's rpc; two services have a Jacobian."""
    return "Jacobian" if verb == "SessionJacobian" else verb


def rpc_of(verb: str) -> Any:
    """Return the descriptor of a verb's rpc."""
    return service_of(MESSAGES[verb]).methods_by_name[rpc_name(verb)]


class _Bearer(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """Shows a token with every call of a channel."""

    def __init__(self, token: str) -> None:
        self._token = token

    def _call(self, continuation: Any, details: Any, request: Any) -> Any:
        shown = (*(details.metadata or ()), ("authorization", f"Bearer {self._token}"))
        return continuation(details._replace(metadata=shown), request)

    intercept_unary_unary: Any = _call
    intercept_unary_stream: Any = _call
    intercept_stream_unary: Any = _call
    intercept_stream_stream: Any = _call


class GrpcWire:
    """Bare gRPC with default channel settings."""

    name = "grpc"

    def __init__(self, target: str, token: str | None = None, *, ca: str | None = None) -> None:
        self.target = target
        if ca is None:
            self.channel = grpc.insecure_channel(target)
        else:
            credentials = grpc.ssl_channel_credentials(Path(ca).read_bytes())
            self.channel = grpc.secure_channel(target, credentials)
        if token:
            self.channel = grpc.intercept_channel(self.channel, _Bearer(token))

    def call(self, verb: str, document: Mapping[str, Any], timeout: float | None = 60.0) -> Document:
        """Carry out a verb; fails with grpc.RpcError."""
        answer = self._send(verb, document, timeout)
        if rpc_of(verb).server_streaming:
            return read_message(*assemble(answer))
        found = read_message(answer, read_values(answer))
        return found[WRAPPED[verb]] if verb in WRAPPED else found

    def start(self, verb: str, document: Mapping[str, Any]) -> Any:
        """Begin a verb with a streamed answer and return the call."""
        return self._send(verb, document, None)

    def _send(self, verb: str, document: Mapping[str, Any], timeout: float | None) -> Any:
        messages = MESSAGES[verb]
        method = getattr(Stub(messages, self.channel), rpc_name(verb))
        descriptor = rpc_of(verb)
        request_type = getattr(messages, descriptor.input_type.name)
        if isinstance(document.get("text"), str):
            document = {**document, "text": document["text"].encode()}
        if descriptor.client_streaming:
            request: Any = _parts(request_type, document)
        else:
            request = request_type()
            fill_message(request, document)
        return method(request, timeout=timeout)

    def error(self, verb: str, document: Mapping[str, Any]) -> tuple[RevoluteError, str]:
        """Return the error that a call ends with, and its gRPC code."""
        try:
            answer = self.call(verb, document)
        except grpc.RpcError as error:
            metadata: Any = error.trailing_metadata() or ()
            trailing = dict(metadata)
            found = decode_status(trailing[DETAILS_KEY])
            assert found is not None
            assert str(found) == error.details()
            return found, error.code().name
        raise AssertionError(f"{verb} was answered: {answer}")

    def close(self) -> None:
        self.channel.close()


class HttpWire:
    """Bare HTTP with JSON or npz bodies."""

    def __init__(self, address: str, *, npz: bool, token: str | None = None, ca: str | None = None) -> None:
        self.name = "npz" if npz else "json"
        self.npz = npz
        kind = "application/x-npz" if npz else "application/json"
        headers = {"accept": kind, "content-type": kind}
        if token:
            headers["authorization"] = f"Bearer {token}"
        verify = ssl.create_default_context(cafile=ca) if ca else True
        self.client = httpx.Client(base_url=address, timeout=60.0, headers=headers, verify=verify)

    def send(self, verb: str, document: Mapping[str, Any]) -> httpx.Response:
        """Send a verb's request."""
        route = VERBS[verb]
        body = {key: value for key, value in document.items() if key != route.id_field}
        path = route.http_path.format(document.get(route.id_field, ""))
        if route.http_method in ("GET", "DELETE"):
            return self.client.request(route.http_method, path, params=body)
        content = pack_npz(body) if self.npz else json.dumps(_lists(body))
        return self.client.request(route.http_method, path, content=content)

    def call(self, verb: str, document: Mapping[str, Any]) -> Document:
        """Carry out a verb; fails with AssertionError on a status that is no success."""
        response = self.send(verb, document)
        assert response.is_success, response.text
        if response.status_code == 204:
            return {}
        return unpack_npz(response.content) if self.npz else strict(response.content)

    def error(self, verb: str, document: Mapping[str, Any]) -> tuple[RevoluteError, str]:
        """Return the error that a call ends with, and its HTTP status."""
        response = self.send(verb, document)
        assert response.is_error, response.text
        return problem_of(response), str(response.status_code)

    def close(self) -> None:
        self.client.close()


def problem_of(response: httpx.Response) -> RevoluteError:
    """Return the exception of a problem document, after checking its form."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = strict(response.content)
    assert problem["status"] == response.status_code
    assert {"type", "title", "detail", "reason"} <= set(problem)
    return error_from(problem["reason"], problem["detail"], problem.get("argument"))


def strict(content: bytes) -> Any:
    """Parse JSON, refusing what RFC 8259 does not have."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(content.decode("utf-8"), parse_constant=refuse)


def numbers(value: Any) -> np.ndarray:
    """Return an answer's array, from JSON or as it is."""
    if isinstance(value, np.ndarray):
        return value
    return np.array(_floats(value), dtype=np.float64)


def _floats(value: Any) -> Any:
    return [_floats(entry) for entry in value] if isinstance(value, list) else float(value)


def _lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _lists(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_lists(entry) for entry in value]
    return value


def _parts(request_type: Any, document: Mapping[str, Any]) -> Iterator[Any]:
    start = request_type.DESCRIPTOR.fields_by_name["start"].message_type._concrete_class()
    return to_parts(request_type, start, fill_message(start, document))
