"""Finds out why a connection failed although something listens: TLS, certificates, or the wrong protocol.

gRPC and HTTP libraries report "Socket closed" or "handshake failed", which suggests that no server is there.
When the first call fails, this module connects once more with a bare socket, and the error says what to
change.
"""

from __future__ import annotations

import socket
import ssl

from ..contract.errors import UnavailableError
from .network import Address, Credentials

_SECONDS = 2.0
"""Time limit of each connection attempt in s."""

_SETTLING_SECONDS = 0.3
"""Time in s within which a server that requires a client certificate closes the connection."""

_EXPIRED, _NOT_YET, _OTHER_NAME, _OTHER_ADDRESS = 10, 9, 62, 64  # of OpenSSL's X509_V_ERR_…
_OTHER_SCHEME = {
    "grpc": "http",
    "http": "grpc",
    "grpcs": "https",
    "https": "grpcs",
    "unix": "http+unix",
    "http+unix": "unix",
}
_ENCRYPTED = {"grpc": "grpcs", "http": "https"}
_PLAIN = {"grpcs": "grpc", "https": "http"}


def explain_connection_error(
    error: UnavailableError, address: Address, credentials: Credentials
) -> UnavailableError:
    """Return an error with the cause of a failed connection, or `error` itself if no cause is found.

    Args:
        error: error of the first call.
        address: the server.
        credentials: credentials of the first call.
    """
    if error.permanent:
        return error
    if address.is_encrypted:
        text = _why_encrypted(address, credentials)
    else:
        text = _why_other_protocol(address) if address.is_unix else _why_plain(address)
    if text is None:
        return error
    found = UnavailableError(f"{address.text}: expected {text}")
    found.permanent = True
    return found


def _why_encrypted(address: Address, credentials: Credentials) -> str | None:
    """Try TLS; return the text after "expected" in the error, or None."""
    context = credentials.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with (
            socket.create_connection((address.host, address.port), _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=address.host) as secure,
        ):
            return _why_after_the_handshake(secure, address, credentials)
    except ssl.SSLCertVerificationError as error:
        return _why_not_trusted(error, address, credentials)
    except ssl.SSLError as error:
        if "ALERT" in (error.reason or ""):
            return _why_not_let_in(credentials)
        return (
            f"a server with TLS, got one without; connect to {_PLAIN[address.scheme]}://, "
            "or start the server with --tls-cert and --tls-key"
        )
    except OSError:
        return None


def _why_after_the_handshake(secure: ssl.SSLSocket, address: Address, credentials: Credentials) -> str | None:
    """Check the negotiated protocol, and whether the server closes the connection."""
    speaks_grpc = secure.selected_alpn_protocol() == "h2"
    if speaks_grpc != address.is_grpc:
        return _other_protocol(address)
    secure.settimeout(_SETTLING_SECONDS)
    try:
        hung_up = not secure.recv(1)
    except ssl.SSLError:
        hung_up = True
    except OSError:
        # a timeout: the server waits for a request
        hung_up = False
    # in TLS 1.3 the server checks the client's certificate after the client has finished the handshake
    return _why_not_let_in(credentials) if hung_up else None


def _why_not_trusted(error: ssl.SSLCertVerificationError, address: Address, credentials: Credentials) -> str:
    if error.verify_code == _EXPIRED:
        return (
            "a certificate that is valid now, got one that has expired; "
            "renew it on the server and send that SIGHUP, or check this machine's clock"
        )
    if error.verify_code == _NOT_YET:
        return "a certificate that is valid now, got one that is not yet; check this machine's clock"
    if error.verify_code in (_OTHER_NAME, _OTHER_ADDRESS):
        return (
            f"a certificate for {address.host}, got one for other names; connect by a name that the "
            "certificate has, or give the server one for this name"
        )
    known = f"signed by those in {credentials.ca}" if credentials.ca else "that this system trusts"
    return (
        f"a certificate {known}, got another ({error.verify_message}); "
        "give the certificate of who signed it as ca=..., if you trust that"
    )


def _why_not_let_in(credentials: Credentials) -> str:
    if credentials.cert is None:
        return (
            "to be let in without a certificate, got turned away; "
            "give one that the server's --tls-client-ca has signed, as cert=... and key=..."
        )
    return (
        f"the server to take the certificate in {credentials.cert}, got turned away; "
        "use one that the server's --tls-client-ca has signed"
    )


def _why_plain(address: Address) -> str | None:
    """Check whether the server speaks TLS, or the other protocol."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    where = address.host, address.port
    try:
        with (
            socket.create_connection(where, _SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=address.host),
        ):
            return (
                f"a server without TLS, got one with; connect to {_ENCRYPTED[address.scheme]}://, with "
                "ca=... if its certificate is signed by an authority of your own"
            )
    except OSError:
        pass
    return _why_other_protocol(address)


def _why_other_protocol(address: Address) -> str | None:
    """Check whether the server speaks the other protocol."""
    try:
        with _connected(address) as plain:
            plain.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            speaks_http = plain.recv(5) == b"HTTP/"
    except OSError:
        return None
    return None if speaks_http != address.is_grpc else _other_protocol(address)


def _connected(address: Address) -> socket.socket:
    """Open a bare connection."""
    if not address.is_unix:
        return socket.create_connection((address.host, address.port), _SECONDS)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_SECONDS)
        connection.connect(address.path)
    except BaseException:
        connection.close()
        raise
    return connection


def _other_protocol(address: Address) -> str:
    mine, other = ("gRPC", "HTTP") if address.is_grpc else ("HTTP", "gRPC")
    place = "socket" if address.is_unix else "port"
    return (
        f"a server that speaks {mine}, got one that speaks {other}; "
        f"connect to {_OTHER_SCHEME[address.scheme]}://, or use the server's {place} for {mine}"
    )
