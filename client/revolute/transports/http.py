"""The HTTP transport: every message is one NPZ file, every error a problem document (RFC 9457)."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np

from ..contract.codec import json_text, npz
from ..contract.codec.buffers import BUFFERS
from ..contract.errors import (
    ArgumentError,
    InternalError,
    NotFoundError,
    RevoluteError,
    UnavailableError,
    error_from,
)
from ..contract.verbs import VERBS
from .network import (
    CONNECT_SECONDS,
    Address,
    Credentials,
    closed_during_call,
    deadline_exceeded,
    missing_verb,
    not_a_server,
    trace_headers,
    unreachable,
)

_PROBLEM = "application/problem+json"
_FRAMES = "application/x-npz-frames"

_CONNECTED = frozenset(
    f"connection.{kind}.complete" for kind in ("connect_tcp", "connect_unix_socket", "start_tls")
)
"""Names of httpx trace events whose return value is a connection."""

_ID = re.compile(r"(?!\.+$)[A-Za-z0-9_.:~-]{1,256}")
"""Pattern of the ids that servers make. "." and ".." are excluded: they would change the path."""


class HttpTransport:
    """Carries verbs over HTTP.

    Args:
        address: the server.
        timeout: time limit for an answer in s; None for no limit.
        credentials: token and TLS files.
    """

    def __init__(self, address: Address, *, timeout: float | None, credentials: Credentials) -> None:
        self.address = address.text
        self._where = address
        self._timeout = timeout
        self._closed = False
        self._sockets: weakref.WeakSet[Any] = weakref.WeakSet()
        self._lock = threading.Lock()
        headers = {"Accept": npz.MEDIA_TYPE}
        if credentials.token:
            headers["Authorization"] = f"Bearer {credentials.token}"
        try:
            self._client = httpx.Client(
                base_url="http://localhost" if address.is_unix else address.text,
                headers=headers,
                transport=httpx.HTTPTransport(uds=address.path) if address.is_unix else None,
                verify=credentials.context() if address.is_encrypted else True,
                # never use a proxy for this machine
                trust_env=not address.is_loopback,
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise UnavailableError(
                f"{address.text}: expected proxy settings that are URLs, got a malformed one ({error}); "
                "check the variables http_proxy, https_proxy and all_proxy"
            ) from None

    def call(self, verb: str, document: Mapping[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """Carry out one verb; see `Transport.call`."""
        limit = self._timeout if timeout is None else timeout
        request = self._request(verb, document, limit)
        try:
            response = self._client.send(request, stream=True)
            try:
                content = _content(response)
            finally:
                response.close()
        except httpx.TimeoutException as error:
            raise self._late(error, verb, limit) from None
        except httpx.TransportError as error:
            raise self._broken(error, verb) from None
        return self._read(response, content, verb)

    def stream(self, verb: str, document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Carry out a streaming verb; see `Transport.stream`."""
        request = self._request(verb, document, self._timeout)
        try:
            response = self._client.send(request, stream=True)
            try:
                if response.is_error:
                    response.read()
                    raise self._error(response, _kind(response), verb)
                if _kind(response) != _FRAMES:
                    raise not_a_server(self._where, f"an answer of type {_kind(response) or 'unknown'}")
                yield from self._frames(response)
            finally:
                response.close()
        except httpx.TimeoutException as error:
            raise self._late(error, verb, self._timeout) from None
        except httpx.TransportError as error:
            raise self._broken(error, verb) from None

    def custom_loss(
        self, document: Mapping[str, Any], respond: Callable[[dict[str, Any]], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Differentiate a Python loss function with three requests; see `Transport.custom_loss`."""
        trajectory = self.call("Rollout", {**document["inputs"], "states": "all"})
        handle = {"trajectory_id": trajectory["trajectory_id"]}
        try:
            cotangents = respond(trajectory)
            chosen = {name: document.get(name) for name in ("wrt", "clip", "on_diverged", "gradient")}
            gradient = self.call("Backward", {**handle, **cotangents, **chosen})
        finally:
            with contextlib.suppress(NotFoundError):
                self.call("DeleteTrajectory", handle)
        return {
            "gradient": gradient,
            **{
                name: trajectory[name]
                for name in ("diverged_step", "unsettled_step", "residual", "report")
                if name in trajectory
            },
        }

    def close(self) -> None:
        """Close the connections. Waiting calls of other threads fail."""
        with self._lock:
            self._closed = True
            for found in self._sockets:
                # close alone would not wake a thread that is reading
                with contextlib.suppress(OSError):
                    found.shutdown(socket.SHUT_RDWR)
        self._client.close()

    def _watch(self, event: str, details: Mapping[str, Any]) -> None:
        """Record the socket of each new connection (a callback of httpx's extension "trace")."""
        if event not in _CONNECTED:
            return
        found = details["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(found)
            if self._closed:
                found.shutdown(socket.SHUT_RDWR)

    def _request(self, verb: str, document: Mapping[str, Any], limit: float | None) -> httpx.Request:
        """Build the HTTP request of a verb."""
        route = VERBS[verb]
        body = {
            name: value for name, value in document.items() if name != route.id_field and value is not None
        }
        path = route.http_path.format(_path_segment(route.id_field, str(document.get(route.id_field, ""))))
        sent: dict[str, Any] = {"params": body, "headers": trace_headers()}
        if route.http_method not in ("GET", "DELETE"):
            pieces = npz.npz_pieces(_files_as_arrays(body))
            size = str(sum(map(len, pieces)))
            sent = {
                # send blocks: a single large piece would be copied again after each partial send
                "content": npz.blocks(pieces),
                "headers": {"Content-Type": npz.MEDIA_TYPE, "Content-Length": size, **trace_headers()},
            }
        return self._client.build_request(
            route.http_method, path, timeout=_seconds(limit), extensions={"trace": self._watch}, **sent
        )

    def _frames(self, response: httpx.Response) -> Iterator[dict[str, Any]]:
        """Yield the documents of an answer in frames. The last frame may hold an error."""
        buffer = bytearray()
        for content in response.iter_raw():
            buffer += content
            while len(buffer) >= 8 and len(buffer) >= 8 + (size := int.from_bytes(buffer[:8], "little")):
                document = npz.unpack_npz(bytes(buffer[8 : 8 + size]))
                del buffer[: 8 + size]
                if "error" in document:
                    raise _problem_error(document["error"])
                yield document
        if buffer:
            raise unreachable(self._where, "the connection ended in the middle of an answer")

    def _read(self, response: httpx.Response, content: memoryview, verb: str) -> dict[str, Any]:
        """Return the document of an answer, or raise its error."""
        kind = _kind(response)
        if response.is_error:
            raise self._error(response, kind, verb)
        if response.status_code == httpx.codes.NO_CONTENT:
            return {}
        if kind != npz.MEDIA_TYPE:
            raise not_a_server(self._where, f"an answer of type {kind or 'unknown'}")
        try:
            return npz.unpack_npz(content)
        except ArgumentError as error:
            raise InternalError(
                f"{self.address}: expected an NPZ answer, got a damaged one ({error})"
            ) from error

    def _error(self, response: httpx.Response, kind: str, verb: str) -> RevoluteError:
        """Return the exception of a failed request."""
        if kind == _PROBLEM:
            problem = json_text.from_json(response.content)
            if isinstance(problem, dict) and "reason" in problem and "detail" in problem:
                if problem.get("argument") in ("path", "method") and verb != "GetServerInfo":
                    return missing_verb(self._where, verb)
                return _problem_error(problem)
        if response.status_code in (502, 503, 504):
            return unreachable(
                self._where, f"status {response.status_code} from a proxy or a starting server"
            )
        return not_a_server(self._where, f"status {response.status_code} of type {kind or 'unknown'}")

    def _broken(self, error: httpx.TransportError, verb: str) -> RevoluteError:
        if self._closed:
            return closed_during_call(verb)
        return unreachable(self._where, str(error) or type(error).__name__)

    def _late(self, error: httpx.TimeoutException, verb: str, limit: float | None) -> RevoluteError:
        if isinstance(error, httpx.ConnectTimeout):
            return unreachable(self._where, "no answer to the connection")
        return deadline_exceeded(verb, limit)


def _content(response: httpx.Response) -> memoryview:
    """Read the body of an answer. An NPZ body is read into a buffer that its arrays can keep using."""
    length = response.headers.get("content-length", "")
    if response.is_error or _kind(response) != npz.MEDIA_TYPE or not length.isdigit():
        return memoryview(response.read())
    try:
        # untouched pages take no memory
        buffer = BUFFERS.empty(int(length))
    except (MemoryError, ValueError):
        return memoryview(response.read())
    place = 0
    for part in response.iter_raw():
        buffer[place : place + len(part)] = np.frombuffer(part, np.uint8)
        place += len(part)
    return buffer.data


def _path_segment(field: str, identifier: str) -> str:
    """Return an id, quoted for a path.

    Raises:
        NotFoundError: no server makes such an id.
    """
    if field and not _ID.fullmatch(identifier):
        raise NotFoundError.missing(field.removesuffix("_id"), identifier)
    return quote(identifier, safe="")


def _problem_error(problem: Mapping[str, Any]) -> RevoluteError:
    """Return the exception for a problem document."""
    error = error_from(problem["reason"], problem["detail"], problem.get("argument"))
    error.retry_after = problem.get("retry_after")
    error.call_id = problem.get("call_id")
    return error


def _kind(response: httpx.Response) -> str:
    """Return the media type of an answer."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _seconds(limit: float | None) -> httpx.Timeout:
    """Return httpx's time limits of one call."""
    return httpx.Timeout(limit, connect=CONNECT_SECONDS if limit is None else min(limit, CONNECT_SECONDS))


def _files_as_arrays(body: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the body's files to uint8 arrays, their form in an NPZ file."""
    if "assets" not in body:
        return dict(body)
    files = {name: np.frombuffer(content, dtype=np.uint8) for name, content in body["assets"].items()}
    return {**body, "assets": files}
