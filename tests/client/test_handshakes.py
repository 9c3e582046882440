"""A connection that fails by TLS, by a certificate or by the other protocol says what to change."""

from __future__ import annotations

import datetime
import time
from pathlib import Path

import pytest
import trustme

import revolute
from testbed.server_process import ServerProcess, running_server

PLAIN = {"grpcs": "grpc", "https": "http"}
OTHER = {"grpc": "http", "http": "grpc", "grpcs": "https", "https": "grpcs"}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def flags(authority: trustme.CA, folder: Path, host: str, **dates: datetime.datetime) -> list[str]:
    """Write a certificate for a host and return the flags of a server that shows it."""
    issued = authority.issue_cert(host, **dates)
    cert, key = folder / f"{host}.pem", folder / f"{host}.key"
    issued.cert_chain_pems[0].write_to_path(str(cert))
    issued.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    return ["--tls-cert", str(cert), "--tls-key", str(key)]


def expect(address: str, text: str, **credentials: str) -> None:
    """Check that connecting fails for good, with a text that says what to do."""
    began = time.monotonic()
    with pytest.raises(revolute.UnavailableError) as caught:
        revolute.connect(address, **credentials)
    assert str(caught.value).startswith(f"{address}: expected ") and "\n" not in str(caught.value)
    assert text in str(caught.value) and "start one with" not in str(caught.value)
    assert caught.value.permanent
    assert time.monotonic() - began < 60


def scheme_changed(address: str, schemes: dict[str, str]) -> str:
    scheme, _, rest = address.partition("://")
    return f"{schemes[scheme]}://{rest}"


def test_a_server_with_tls(authority: trustme.CA, tmp_path: Path) -> None:
    with running_server(*flags(authority, tmp_path, "127.0.0.1")) as server:
        trustme.CA().cert_pem.write_to_path(str(tmp_path / "stranger.pem"))
        for address in (server.grpc, server.http):
            revolute.connect(address, ca=str(tmp_path / "ca.pem")).close()
            expect(address, "give the certificate of who signed it as ca=")
            expect(address, "stranger.pem, got another (", ca=str(tmp_path / "stranger.pem"))
            plain = scheme_changed(address, PLAIN)
            expect(plain, f"got one with; connect to {address.partition(':')[0]}://, with ca=")
            other = scheme_changed(address, OTHER)
            expect(other, f"connect to {address.partition(':')[0]}://", ca=str(tmp_path / "ca.pem"))


def test_a_server_without_tls(server: ServerProcess) -> None:
    for address in (server.grpc, server.http):
        scheme = address.partition(":")[0]
        expect(f"{scheme}s{address.removeprefix(scheme)}", f"got one without; connect to {scheme}://")
        expect(scheme_changed(address, OTHER), f"connect to {scheme}://")


def test_a_unix_socket_of_the_other_protocol(tmp_path: Path) -> None:
    sockets = {"unix": str(tmp_path / "g"), "http+unix": str(tmp_path / "h")}
    flags = ["--grpc-socket", sockets["unix"], "--http-socket", sockets["http+unix"]]
    with running_server(*flags):
        for scheme, path in sockets.items():
            revolute.connect(f"{scheme}://{path}").close()
            (other,) = sockets.keys() - {scheme}
            expect(f"{other}://{path}", f"; connect to {scheme}://, or use the server's socket for ")


def test_a_certificate_for_another_name(authority: trustme.CA, tmp_path: Path) -> None:
    with running_server(*flags(authority, tmp_path, "robots.example")) as server:
        for address in (server.grpc, server.http):
            expect(
                address, "a certificate for 127.0.0.1, got one for other names", ca=str(tmp_path / "ca.pem")
            )


def test_a_certificate_that_has_expired(authority: trustme.CA, tmp_path: Path) -> None:
    dates = {"not_before": datetime.datetime(2020, 1, 1), "not_after": datetime.datetime(2021, 1, 1)}
    with running_server(*flags(authority, tmp_path, "127.0.0.1", **dates)) as server:
        for address in (server.grpc, server.http):
            expect(address, "got one that has expired; renew it", ca=str(tmp_path / "ca.pem"))


def test_a_server_that_asks_for_certificates(authority: trustme.CA, tmp_path: Path) -> None:
    asks = ["--tls-client-ca", str(tmp_path / "ca.pem")]
    trusted = flags(authority, tmp_path, "127.0.0.1")
    _, cert, _, key = flags(trustme.CA(), tmp_path / "..", "stranger")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with running_server(*trusted, *asks) as server:
        for address in (server.grpc, server.http):
            expect(address, "as cert=... and key=...", ca=str(tmp_path / "ca.pem"))
            expect(address, "got turned away; use one", ca=str(tmp_path / "ca.pem"), cert=cert, key=key)


def test_nobody_there_is_still_said_so() -> None:
    for scheme in ("grpc", "grpcs", "http", "https"):
        with pytest.raises(revolute.UnavailableError, match=r"got no connection .* start one with"):
            revolute.connect(f"{scheme}://127.0.0.1:1")
