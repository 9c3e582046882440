"""Listening sockets: TCP, Unix, and TLS certificates."""

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
    """Certificate, private key and client CA; can be reloaded while the server runs.

    Args:
        settings: has the paths of the files.

    Raises:
        ArgumentError: a file cannot be read, or certificate and key do not match.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._configuration = self._read()

    def reload(self) -> None:
        """Read the files again, for new connections.

        Raises:
            ArgumentError: as at the start; the old certificates stay in use.
        """
        self._configuration = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Return the credentials of one gRPC server; gRPC fetches the certificate for each connection."""
        in_use = [self._configuration]

        def fetch() -> Any:
            if self._configuration is in_use[0]:
                return None  # unchanged
            in_use[0] = self._configuration
            return in_use[0]

        mutual = self._settings.tls_client_ca is not None
        return grpc.dynamic_ssl_server_credentials(in_use[0], fetch, require_client_authentication=mutual)

    def for_uvicorn(self) -> dict[str, Any]:
        """Return the TLS arguments of `uvicorn.Config`."""
        settings = self._settings
        return {
            "ssl_certfile": settings.tls_cert,
            "ssl_keyfile": settings.tls_key,
            "ssl_ca_certs": settings.tls_client_ca,
            "ssl_cert_reqs": ssl.CERT_REQUIRED if settings.tls_client_ca else ssl.CERT_NONE,
        }

    def load_into(self, context: ssl.SSLContext) -> None:
        """Load the files into a TLS context, such as uvicorn's.

        Raises:
            ArgumentError: certificate and key do not match, or a file is not PEM.
        """
        settings = self._settings
        assert settings.tls_cert and settings.tls_key
        try:
            context.load_cert_chain(settings.tls_cert, settings.tls_key)
        except ssl.SSLError as error:
            raise _not_pem("tls_cert", "a PEM certificate and its private key", error) from None
        if settings.tls_client_ca:
            try:
                context.load_verify_locations(settings.tls_client_ca)
            except ssl.SSLError as error:
                raise _not_pem("tls_client_ca", "PEM certificates", error) from None

    def _read(self) -> grpc.ServerCertificateConfiguration:
        settings = self._settings
        assert settings.tls_cert and settings.tls_key
        certificate, key = _read("tls_cert", settings.tls_cert), _read("tls_key", settings.tls_key)
        authority = _read("tls_client_ca", settings.tls_client_ca) if settings.tls_client_ca else None
        self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=authority)


def bind_tcp(host: str, port: int, *, setting: str) -> socket.socket:
    """Bind a TCP socket, so that a taken port is reported before the server starts.

    Raises:
        ArgumentError: the address cannot be bound.
    """
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    # name the protocol: otherwise asyncio does not set TCP_NODELAY, and small answers are delayed
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
    """Check that a port is free before gRPC binds it; gRPC would print an error of its own.

    Raises:
        ArgumentError: the address cannot be bound.
    """
    if port:
        bind_tcp(host, port, setting=setting).close()


def bind_grpc(server: grpc.aio.Server, host: str, port: int, tls: Tls | None, *, setting: str) -> int:
    """Bind a gRPC server to an address, with TLS if `tls` is given, and return its port.

    Raises:
        ArgumentError: the address cannot be bound.
    """
    address = join(host, port)
    try:
        if tls:
            return server.add_secure_port(address, tls.credentials())
        return server.add_insecure_port(address)
    except RuntimeError as error:
        raise taken(setting, address) from error


def bind_unix(path: str, *, setting: str) -> socket.socket:
    """Bind a Unix socket that only this user may connect to.

    Raises:
        ArgumentError: the path cannot be bound, or another server listens there.
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
    """Remove the socket file of a server that was killed.

    Raises:
        ArgumentError: a server listens there, the path is not a socket, or its folder does not exist.
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
    """Create files and sockets in the block with access for this user only."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def remove_unix(path: str | None) -> None:
    """Remove the socket file of a listener that has stopped."""
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)


def taken(setting: str, address: str, cause: OSError | None = None) -> ArgumentError:
    """Return the error for an address that cannot be bound, with the system's message if there is one."""
    advice = "another program may use it"
    if not setting.endswith("_socket"):
        advice += "; port 0 takes a free one"
    got = f"{address} ({cause.strerror or cause})" if cause else address
    return ArgumentError.expected(setting, "an address this machine can listen on", got, advice=advice)


def join(host: str, port: int) -> str:
    """Return "host:port", with an IPv6 host in brackets."""
    bare = host.strip("[]")
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def _read(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ArgumentError.expected(setting, f"a file that can be read at {path}", error.strerror) from None


def _not_pem(setting: str, what: str, error: ssl.SSLError) -> ArgumentError:
    return ArgumentError.expected(setting, what, error.reason or "neither")
