"""What the network transports share: addresses, and errors that no server has written."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import ArgumentError, DeadlineError, UnavailableError

CONNECT_SECONDS = 10.0
"""Time in which a server has to answer the first time."""

DEFAULT_PORTS = {"grpc": 50051, "grpcs": 50051, "http": 8000, "https": 443}
_FORMS = "grpc://host:port, grpcs://host:port, http://host:port or https://host:port"


@dataclass(frozen=True)
class Address:
    """Where a server is.

    Attributes:
        text: the address as users write it, complete with the port.
        scheme: "grpc", "grpcs", "http" or "https".
        host: host name or IP address, without brackets.
        port: port number.
        path: path before `/v1` for HTTP, without a slash at its end.
    """

    text: str
    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def netloc(self) -> str:
        """Host and port, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether the address is this machine, so that no proxy has any business with it."""
        if self.host.lower() == "localhost" or self.host.lower().endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Read an address such as "grpc://127.0.0.1:50051".

    Raises:
        ArgumentError: it is not one.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = urlsplit(""), None, None
    plain = not (parts.query or parts.fragment or parts.username or parts.password)
    path = parts.path.rstrip("/")
    if (
        parts.scheme not in DEFAULT_PORTS
        or not host
        or not plain
        or (path and parts.scheme.startswith("grpc"))
    ):
        raise ArgumentError.expected("address", _FORMS, repr(text))
    address = Address("", parts.scheme, host, port or DEFAULT_PORTS[parts.scheme], path)
    return Address(f"{parts.scheme}://{address.netloc}{path}", parts.scheme, host, address.port, path)


def unreachable(address: Address, cause: str) -> UnavailableError:
    """Return the error for a server that does not answer.

    Args:
        address: where it should be.
        cause: one line of the library's own words.
    """
    port = "--grpc-port" if address.scheme.startswith("grpc") else "--http-port"
    return UnavailableError(
        f"{address.text}: expected a revolute server, got no connection ({_one_line(cause)}); "
        f"start one with `revolute serve --host {address.host} {port} {address.port}` or check the address"
    )


def not_a_server(address: Address, cause: str) -> UnavailableError:
    """Return the error for something that answers but is no revolute server of this version."""
    return UnavailableError(
        f"{address.text}: expected a revolute server with API v1, got {_one_line(cause)}; "
        "check the address and the versions of client and server"
    )


def too_late(verb: str, timeout: float | None) -> DeadlineError:
    """Return the error for an answer that did not come in time."""
    limit = "the server's deadline" if timeout is None else f"{timeout:g} s"
    return DeadlineError(
        f"timeout: expected the answer to {verb} within {limit}, got none; "
        "connect with a larger timeout or ask for less at once",
        argument="timeout",
    )


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:197]}..."
