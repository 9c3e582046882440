"""`connect`: from an address to a simulator."""

from __future__ import annotations

import math
import numbers
from typing import Any

from .errors import ArgumentError, UnavailableError
from .session import whole_number
from .simulator import Simulator
from .transports import Transport
from .transports.network import CONNECT_SECONDS, Address, not_a_server, parse_address

API_VERSION = "v1"
"""Version of the protocol that this client speaks."""

DEFAULT_TIMEOUT = 600.0
"""Seconds that one call over the network may take unless told otherwise."""


def connect(
    address: str | None = None,
    *,
    threads: int | None = None,
    timeout: float | None = DEFAULT_TIMEOUT,
    token: str | None = None,
) -> Simulator:
    """Return a simulator, in this process or on a server.

    Args:
        address: "grpc://host:port", "grpcs://…", "http://…" or "https://…"; None for the engine in this
            process.
        threads: threads of the engine in this process, None for one per core; a server has its own setting.
        timeout: seconds that one call over the network may take, None for no limit.
        token: bearer token for the server.

    Returns:
        A simulator; use it as a context manager, or close it.

    Raises:
        ArgumentError: the address or another argument is malformed.
        UnavailableError: no server answers at the address, or no engine is installed.
    """
    if timeout is not None:
        timeout = _seconds(timeout)
    if address is None:
        return _in_process(threads, token)
    if not isinstance(address, str):
        raise ArgumentError.expected(
            "address", "text such as 'grpc://127.0.0.1:50051'", type(address).__name__
        )
    if threads is not None:
        raise ArgumentError.expected(
            "threads", "None for a server", threads, advice="start the server with --threads instead"
        )
    return _over_network(parse_address(address), timeout, token)


def models() -> list[str]:
    """Return the names of the built-in models of the engine in this process.

    Raises:
        UnavailableError: no engine is installed; `connect(address).models()` asks a server.
    """
    try:
        import revolute_engine
    except ImportError as error:
        raise _no_engine(error) from error
    return list(revolute_engine.models())


def _in_process(threads: int | None, token: str | None) -> Simulator:
    if token is not None:
        raise ArgumentError.expected("token", "None without an address", "a token")
    if threads is not None:
        threads = whole_number("threads", threads, least=1)
    try:
        from .transports.local import LocalTransport
    except ImportError as error:
        raise _no_engine(error) from error
    return Simulator(LocalTransport(threads))


def _over_network(address: Address, timeout: float | None, token: str | None) -> Simulator:
    """Return a simulator whose server has answered and speaks our version of the protocol."""
    transport = _network_transport(address, timeout, token)
    try:
        first = CONNECT_SECONDS if timeout is None else min(timeout, CONNECT_SECONDS)
        versions = transport.call("GetServerInfo", {}, timeout=first)["api_versions"]
        if API_VERSION not in versions:
            raise not_a_server(address, f"a server with {', '.join(versions) or 'none'}")
    except BaseException:
        transport.close()
        raise
    return Simulator(transport)


def _network_transport(address: Address, timeout: float | None, token: str | None) -> Transport:
    if address.scheme.startswith("grpc"):
        from .transports.grpc import GrpcTransport

        return GrpcTransport(address, timeout=timeout, token=token)
    from .transports.http import HttpTransport

    return HttpTransport(address, timeout=timeout, token=token)


def _no_engine(error: ImportError) -> UnavailableError:
    return UnavailableError(
        f"address: expected the engine in this process, got none ({error}); "
        'install it with `pip install "revolute[server]"` (from a clone: `pip install ./client .`), '
        'or connect to a server: revolute.connect("grpc://host:50051")',
        argument="address",
    )


def _seconds(timeout: Any) -> float:
    if isinstance(timeout, numbers.Real) and not isinstance(timeout, bool) and 0 < float(timeout) < math.inf:
        return float(timeout)
    raise ArgumentError.expected("timeout", "a positive number of seconds, or None", repr(timeout))
