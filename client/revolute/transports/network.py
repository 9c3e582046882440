"""Addresses, credentials, and the errors that the client raises by itself; shared by gRPC and HTTP."""

from __future__ import annotations

import ipaddress
import ssl
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ..contract.errors import ArgumentError, CancelledError, DeadlineError, UnavailableError

CONNECT_SECONDS = 10.0
"""Time limit of the first call in s."""

DEFAULT_PORTS = {"grpc": 50051, "grpcs": 50051, "http": 8000, "https": 443}
_FORMS = (
    "grpc://host:port, grpcs://host:port, http://host:port, https://host:port, unix:///path (gRPC) or "
    "http+unix:///path"
)
_DISTRIBUTION = "revolute"
_UNIX = ("unix", "http+unix")


@dataclass(frozen=True)
class Address:
    """Address of a server.

    Attributes:
        text: the address as text, including the port.
        scheme: "grpc", "grpcs", "http", "https", "unix" (gRPC) or "http+unix".
        host: host name or IP address, without brackets; empty for a Unix socket.
        port: port number; 0 for a Unix socket.
        path: for HTTP, the path before `/v1` without a trailing slash; for a Unix socket, its path.
    """

    text: str
    scheme: str
    host: str
    port: int
    path: str = ""

    @property
    def netloc(self) -> str:
        """Host and port, with an IPv6 host in brackets; for a Unix socket, gRPC's target."""
        if self.is_unix:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_unix(self) -> bool:
        """Whether the address is a Unix socket."""
        return self.scheme in _UNIX

    @property
    def is_grpc(self) -> bool:
        """Whether the protocol is gRPC; otherwise it is HTTP."""
        return self.scheme in ("grpc", "grpcs", "unix")

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.scheme in ("grpcs", "https")

    @property
    def is_loopback(self) -> bool:
        """Whether the address is on this machine."""
        if self.is_unix:
            return True
        if self.host.lower() == "localhost" or self.host.lower().endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_address(text: str) -> Address:
    """Parse an address such as "grpc://127.0.0.1:50051".

    Raises:
        ArgumentError: `text` is not an address.
    """
    if text.partition(":")[0] in _UNIX:
        return _parse_unix(text)
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


def _parse_unix(text: str) -> Address:
    scheme, _, rest = text.partition("://")
    path = unquote(rest)
    if not path.startswith("/") or path.endswith("/"):
        raise ArgumentError.expected("address", _FORMS, repr(text), advice="the path is absolute")
    return Address(text, scheme, "", 0, path)


@dataclass(frozen=True)
class Credentials:
    """A client's token and TLS files.

    Attributes:
        token: bearer token, or None.
        ca: file with the certificates (PEM) of the authorities that may sign the server's certificate; None
            for the system's.
        cert: file with the client's certificate (PEM), or None.
        key: file with the private key of `cert`, or None.
    """

    token: str | None = field(default=None, repr=False)
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    def check(self, address: Address) -> None:
        """Check the credentials for an address.

        Raises:
            ArgumentError: the token does not fit in a header, TLS files are given without TLS, only one of
                `cert` and `key` is given, or a file is not PEM.
        """
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ArgumentError.expected(
                "token", "printable ASCII characters", "others", advice="remove line breaks"
            )
        files = {"ca": self.ca, "cert": self.cert, "key": self.key}
        for name, path in files.items():
            if path is not None and not address.is_encrypted:
                raise ArgumentError.expected(
                    name, f"None for {address.scheme}://", repr(path), advice="use grpcs:// or https://"
                )
        if (self.cert is None) != (self.key is None):
            missing, given = ("key", "cert") if self.key is None else ("cert", "key")
            raise ArgumentError.expected(missing, f"a file beside {given}", "None")
        if address.is_encrypted:
            self.context()

    def context(self) -> ssl.SSLContext:
        """Return the TLS settings for Python's sockets."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise _no_file("ca", "PEM certificates", self.ca, error) from None
        if self.cert and self.key:
            try:
                context.load_cert_chain(self.cert, self.key)
            except (OSError, ssl.SSLError) as error:
                raise _no_file("cert", "a PEM certificate and its key", self.cert, error) from None
        return context

    def read(self, name: str) -> bytes | None:
        """Return the content of the file "ca", "cert" or "key"; None if it is not set."""
        path = getattr(self, name)
        return Path(path).read_bytes() if path else None


def _no_file(name: str, what: str, path: str | None, error: OSError) -> ArgumentError:
    reason = getattr(error, "reason", None) or error.strerror or str(error)
    return ArgumentError.expected(name, f"{what} in {path}", reason)


def trace_headers() -> dict[str, str]:
    """Return the headers that attach the server's spans to the caller's trace (W3C Trace Context).

    The result is empty unless the program has already imported OpenTelemetry.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers)
    return headers


def unreachable(address: Address, cause: str) -> UnavailableError:
    """Return the error for a server that does not answer.

    Args:
        address: the server's address.
        cause: one line of the library's error text.
    """
    kind = "grpc" if address.is_grpc else "http"
    if address.is_unix:
        flags = f"--{kind}-socket {address.path}"
    else:
        flags = f"--host {address.host} --{kind}-port {address.port}"
    return UnavailableError(
        f"{address.text}: expected a revolute server, got no connection ({_one_line(cause)}); "
        f"start one with `revolute serve {flags}` or check the address"
    )


def not_a_server(address: Address, cause: str) -> UnavailableError:
    """Return the error for an answer that is not from a revolute server with API v1."""
    return _permanent(
        f"{address.text}: expected a revolute server with API v1, got {_one_line(cause)}; "
        "check the address and the versions of client and server"
    )


def other_version(address: Address, spoken: str, info: Mapping[str, Any]) -> UnavailableError:
    """Return the error for a server that does not support the client's API version.

    Args:
        address: the server.
        spoken: the client's API version, e.g. "v1".
        info: the server's answer to GetServerInfo.
    """
    versions = [str(version) for version in info["api_versions"]]
    numbers = [int(version[1:]) for version in versions if version[:1] == "v" and version[1:].isdigit()]
    cure = "check the address and the versions of client and server"
    if numbers:
        newer = min(numbers) > int(spoken[1:])
        cure = f"upgrade the client: pip install -U {_DISTRIBUTION}" if newer else "upgrade the server"
    release = info.get("version") or "unknown"
    return _permanent(
        f"{address.text}: expected a revolute server with API {spoken}, "
        f"got release {_one_line(release)} with API {', '.join(versions) or 'none'}; {cure}"
    )


def missing_verb(address: Address, verb: str) -> UnavailableError:
    """Return the error for a verb that an older server does not have."""
    return _permanent(
        f"{verb}: expected a server that has it, got {address.text}, which does not; upgrade the server"
    )


def closed_during_call(verb: str) -> CancelledError:
    """Return the error for a call whose simulator was closed by another thread."""
    return CancelledError(f"{verb}: expected an answer, got a simulator that was closed meanwhile")


def deadline_exceeded(verb: str, timeout: float | None) -> DeadlineError:
    """Return the error for an answer that did not arrive in time."""
    limit = "the server's deadline" if timeout is None else f"{timeout:g} s"
    return DeadlineError(
        f"timeout: expected the answer to {verb} within {limit}, got none; "
        "connect with a larger timeout or ask for less at once",
        argument="timeout",
    )


def _permanent(message: str) -> UnavailableError:
    error = UnavailableError(message)
    error.permanent = True
    return error


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:197]}..."
