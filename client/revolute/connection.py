"""`connect`: returns a simulator for an address."""

from __future__ import annotations

import functools
import os
from typing import Any

from .contract.errors import ArgumentError
from .contract.scalars import positive_number, whole_number
from .contract.transport import Transport
from .local_engine import local_engine
from .simulator import Simulator
from .transports.handshake import explain_connection_error
from .transports.network import CONNECT_SECONDS, Address, Credentials, other_version, parse_address
from .transports.retrying import RetryingTransport

API_VERSION = "v1"
"""Version of the protocol that this client speaks."""

DEFAULT_TIMEOUT = 600.0
"""Default time limit of one call over the network, in s."""

DEFAULT_RETRIES = 5
"""Default number of retries. With the pauses between them, they outlast a server's restart."""


def connect(
    address: str | None = None,
    *,
    threads: int | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    retries: int = DEFAULT_RETRIES,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> Simulator:
    """Return a simulator, in this process or on a server.

    Args:
        address: "grpc://host:port", "grpcs://…", "http://…", "https://…", or a Unix socket as
            "unix:///path" (gRPC) or "http+unix:///path"; None for the engine in this process.
        threads: largest number of threads of the engine in this process; None for one per core. Small calls
            use fewer. A server has its own setting.
        timeout: seconds that one call over the network may take, with all its retries; None for no limit.
        retries: number of retries of a call over the network when the server cannot be reached, is stopping,
            or asks to try again later. A call that changes something carries the same request id in all
            attempts, so the server carries it out once.
        token: bearer token for the server.
        ca: file with the certificates (PEM) of the authorities that may sign the server's certificate, for
            grpcs:// and https://; None for the system's.
        cert: file with the client's certificate (PEM), if the server requires one.
        key: file with the private key of `cert`.

    Returns:
        A simulator; use it as a context manager, or close it.

    Raises:
        ArgumentError: the address or another argument is malformed.
        UnavailableError: no server answers at the address, or no engine is installed.
        UnauthenticatedError: the server requires a token, and `token` is missing or unknown.
    """
    credentials = Credentials(token, _path("ca", ca), _path("cert", cert), _path("key", key))
    if timeout is not None:
        timeout = positive_number("timeout", timeout, "a positive number of seconds, or None")
    retries = whole_number("retries", retries, least=0)
    if address is None:
        return _in_process(threads, credentials)
    if not isinstance(address, str):
        raise ArgumentError.expected(
            "address", "text such as 'grpc://127.0.0.1:50051'", type(address).__name__
        )
    if threads is not None:
        raise ArgumentError.expected(
            "threads", "None for a server", threads, advice="start the server with --threads instead"
        )
    where = parse_address(address)
    credentials.check(where)
    return _over_network(where, timeout, retries, credentials)


def models() -> list[str]:
    """Return the names of the built-in models of the engine in this process.

    Raises:
        UnavailableError: no engine is installed; `connect(address).models()` asks a server.
    """
    with _in_process(None, Credentials()) as simulator:
        return simulator.models()


def _in_process(threads: int | None, credentials: Credentials) -> Simulator:
    for name in ("token", "ca", "cert", "key"):
        if getattr(credentials, name) is not None:
            raise ArgumentError.expected(name, "None without an address", f"a {name}")
    if threads is not None:
        threads = whole_number("threads", threads, least=1)
    return Simulator(local_engine()(threads))


def _over_network(
    address: Address, timeout: float | None, retries: int, credentials: Credentials
) -> Simulator:
    """Return a simulator after the server has answered with a supported protocol version."""
    transport = RetryingTransport(_network_transport(address, timeout, credentials), retries, timeout)
    try:
        first = CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
        explain = functools.partial(explain_connection_error, address=address, credentials=credentials)
        info = transport.call("GetServerInfo", {}, timeout=first, explain=explain)
        if API_VERSION not in info["api_versions"]:
            raise other_version(address, API_VERSION, info)
    except BaseException:
        transport.close()
        raise
    return Simulator(transport)


def _network_transport(address: Address, timeout: float | None, credentials: Credentials) -> Transport:
    if address.is_grpc:
        from .transports.grpc import GrpcTransport

        return GrpcTransport(address, timeout=timeout, credentials=credentials)
    from .transports.http import HttpTransport

    return HttpTransport(address, timeout=timeout, credentials=credentials)


def _path(name: str, path: Any) -> str | None:
    if path is None:
        return None
    try:
        return os.fsdecode(path)
    except TypeError:
        raise ArgumentError.expected(name, "the path of a file, or None", type(path).__name__) from None
