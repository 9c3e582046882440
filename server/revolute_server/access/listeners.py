"""Addresses to listen on: TCP sockets, Unix sockets, and TLS."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from revolute.contract.errors import ArgumentError

from ..settings import Settings


class Tls:
    """Certificate, key and the authority of clients; may be read again while the server runs.

    Args:
        settings: names the files.

    Raises:
        ArgumentError: a file cannot be read, or certificate and key do not belong together.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._configuration = self._read()

    def reload(self) -> None:
        """Read the files again, for connections that begin from now on.

        Raises:
            ArgumentError: as at the start; what was read before stays in use.
        """
        self._configuration = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Return what one gRPC server needs; it asks for a newer configuration with each connection."""
        given = [self._configuration]

        def newer() -> Any:
            if self._configuration is given[0]:
                return None  # the one that is in use stays
            given[0] = self._configuration
            return given[0]

        asks = self._settings.tls_client_ca is not None
        return grpc.dynamic_ssl_server_credentials(given[0], newer, require_client_authentication=asks)

    def for_uvicorn(self) -> dict[str, Any]:
        """Return the arguments of `uvicorn.Config`."""
        settings = self._settings
        return {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_ca_certs": settings.tls_client_ca,
            "ssl_cert_reqs": ssl.CERT_REQUIRED if settings.tls_client_ca else ssl.CERT_NONE,
        }

    def load_into(self, context: ssl.SSLContext) -> None:
        """Give the files to a context, such as uvicorn's.

        Raises:
            ArgumentError: certificate and key do not belong together, or a file is no PEM.
        """
        settings = self._settings
        assert settings.tls_cert and settings.tls_key
        try:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
        except ssl.SSLError as error:
            raise _no_pem("tls_cert", "a PEM certificate and its private key", error) from None
        if settings.tls_client_ca:
            try:
                context.load_verify_locations(settings.tls_client_ca)
            except ssl.SSLError as error:
                raise _no_pem("tls_client_ca", "PEM certificates", error) from None

    def _read(self) -> grpc.ServerCertificateConfiguration:
        settings = self._settings
        assert settings.tls_cert and settings.tls_key
        certificate, key = _read("tls_cert", settings.tls_cert), _read("tls_key", settings.tls_key)
        authority = _read("tls_client_ca", settings.tls_client_ca) if settings.tls_client_ca else None
        self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=authority)


def bind_tcp(host: str, port: int, *, setting: str) -> socket.socket:
    """Open a TCP socket, so that a port that is taken is found before anything is served.

    Raises:
        ArgumentError: the address cannot be bound.
    """
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only on sockets that name their protocol
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bare, port))
    except OSError as error:
        listener.close()
        raise taken(setting, join(host, port), error) from error
    listener.setblocking(False)
    return listener


def check_free(host: str, port: int, *, setting: str) -> None:
    """Refuse a port that is taken, before gRPC tries it, which would print a line of its own.

    Raises:
        ArgumentError: the address cannot be bound.
    """
    if port:
        bind_tcp(host, port, setting=setting).close()


def bind_unix(path: str, *, setting: str) -> socket.socket:
    """Open a Unix socket that only this user may connect to.

    Raises:
        ArgumentError: the path cannot be bound, or a server listens there.
    """
    clear_unix(path, setting=setting)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with private_files():
            listener.bind(path)
    except OSError as error:
        listener.close()
        raise taken(setting, path, error) from error
    listener.setblocking(False)
    return listener


def clear_unix(path: str, *, setting: str) -> None:
    """Remove a socket that a killed server left behind.

    Raises:
        ArgumentError: a server listens there, the path is no socket, or its folder does not exist.
    """
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ArgumentError.expected(setting, "a path in a folder that exists", path)
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise ArgumentError.expected(setting, "a path for a socket", f"{path}, another kind of file")
    except FileNotFoundError:
        return
    except OSError as error:
        raise taken(setting, path, error) from error
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:
            raise taken(setting, path, error) from error
    raise taken(setting, path)


@contextlib.contextmanager
def private_files() -> Iterator[None]:
    """Make files and sockets that only this user may use."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def remove_unix(path: str | None) -> None:
    """Remove the socket of a listener that has stopped."""
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)


def taken(setting: str, address: str, cause: OSError | None = None) -> ArgumentError:
    """Return the error for an address that cannot be bound, with what the system says where it is known."""
    advice = "another program may use it"
    if not setting.endswith("_socket"):
        advice += "; port 0 takes a free one"
    got = f"{address} ({cause.strerror or cause})" if cause else address
    return ArgumentError.expected(setting, "an address this machine can listen on", got, advice=advice)


def join(host: str, port: int) -> str:
    """Write host and port, an IPv6 host in brackets."""
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def _read(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError.expected(setting, f"a file that can be read at {path}", error.strerror) from None


def _no_pem(setting: str, what: str, error: ssl.SSLError) -> ArgumentError:
    return ArgumentError.expected(setting, what, error.reason or "neither")
