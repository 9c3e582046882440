"""Who gets in: tokens and their roles, TLS in both directions, Unix sockets, and what logs must not have."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest
import trustme

import revolute
from revolute.contract.errors import ArgumentError
from revolute.contract.v1 import model_pb2, server_pb2, session_pb2, trajectory_pb2
from revolute_server.access import tokens as auth
from revolute_server.access.caller import ANONYMOUS, Role
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

ROLES = ("read", "run", "admin")


@dataclass
class Keyring:
    """A token of each role and the file that lets a server know them."""

    file: Path
    tokens: dict[str, str]


def make_keyring(folder: Path) -> Keyring:
    """Write a file with one token of each role."""
    tokens = {role: auth.new_token() for role in ROLES}
    lines = [auth.token_line(f"{role}er", role, token) for role, token in tokens.items()]
    file = folder / "tokens.txt"
    file.write_text("# one of each\n\n" + "\n".join(lines) + "\n")
    return Keyring(file, tokens)


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    return make_keyring(tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="module")
def guarded(keyring: Keyring) -> Iterator[ServerProcess]:
    """Return a server that asks for tokens and logs every call."""
    with running_server("--tokens", str(keyring.file), "--log-level", "debug") as server:
        yield server


@pytest.fixture(params=["grpc", "http"])
def address(request: pytest.FixtureRequest, guarded: ServerProcess) -> str:
    return getattr(guarded, request.param)


def test_every_verb_has_a_role() -> None:
    rpcs = {
        f"{service.name}.{method.name}"
        for file in (model_pb2, session_pb2, trajectory_pb2, server_pb2)
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }
    assert rpcs <= set(auth.ROLES)
    others = {auth.METRICS, auth.STATUS}
    rest = {verb for verb in auth.ROLES if not verb.startswith("Environment.")} - others
    assert rest == rpcs


@pytest.mark.parametrize("token", [None, "", "nonsense", "revolute_" + "A" * 43])
def test_without_a_known_token_nothing_is_answered(address: str, token: str | None) -> None:
    with pytest.raises(revolute.UnauthenticatedError, match=r"^token: expected a (bearer )?token"):
        revolute.connect(address, token=token)


def test_health_needs_no_token(guarded: ServerProcess) -> None:
    assert httpx.get(guarded.http + "/livez").status_code == 200
    assert httpx.get(guarded.http + "/readyz").status_code == 200


def test_what_each_role_may_do(address: str, keyring: Keyring) -> None:
    with revolute.connect(address, token=keyring.tokens["run"]) as runner:
        cart = runner.load_model(CART)
        trajectory = runner.rollout(cart, np.zeros(1), np.zeros(1), np.ones((3, 1)))
        assert trajectory.qvel[-1, 0] == pytest.approx(3e-3)
    with revolute.connect(address, token=keyring.tokens["read"]) as reader:
        assert reader.models()
        for refused in (
            lambda: reader.load_model(CART),
            lambda: reader.load_model("cartpole"),
        ):
            with pytest.raises(
                revolute.PermissionDeniedError, match=r"expected the role run for .*, got read"
            ):
                refused()
    with revolute.connect(address, token=keyring.tokens["admin"]) as admin:
        admin.load_model(CART)


def test_a_refused_call_is_not_read(guarded: ServerProcess) -> None:
    """A body of any size without a token costs the server nothing."""
    answer = httpx.post(guarded.http + "/v1/models", content=b"\x00" * 1000, headers={"content-type": "x/y"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["reason"] == "UNAUTHENTICATED"


def test_tokens_are_read_again_when_the_file_changes(tmp_path: Path) -> None:
    keyring = make_keyring(tmp_path)
    with running_server("--tokens", str(keyring.file)) as server:
        late = auth.new_token()
        revolute.connect(server.grpc, token=keyring.tokens["run"]).close()
        keyring.file.write_text(auth.token_line("late", "run", late) + "\n")
        revolute.connect(server.grpc, token=late).close()
        with pytest.raises(revolute.UnauthenticatedError):
            revolute.connect(server.grpc, token=keyring.tokens["run"])
        # a file that is broken locks nobody out
        keyring.file.write_text("no line of ours")
        revolute.connect(server.http, token=late).close()
        server.process.send_signal(signal.SIGHUP)
        revolute.connect(server.http, token=late).close()
        assert "name:role:sha256" in server.log.read_text()


def test_no_log_has_a_token(guarded: ServerProcess, keyring: Keyring) -> None:
    wrong = "revolute_wrong-token-of-somebody"
    for address in (guarded.grpc, guarded.http):
        revolute.connect(address, token=keyring.tokens["admin"]).close()
        with pytest.raises(revolute.UnauthenticatedError):
            revolute.connect(address, token=wrong)
    # a token in a place where it does not belong
    httpx.get(guarded.http + f"/v1/server?token={wrong}", headers={"authorization": f"Basic {wrong}"})
    log = guarded.log.read_text()
    assert "GetServerInfo" in log  # calls are logged
    for token in (*keyring.tokens.values(), wrong):
        assert token not in log
        assert token.removeprefix("revolute_") not in log


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a:run", "expected name:role:sha256, with :date, :calls=N and :steps=N at most, got 2 fields"),
        ("a:boss:" + "0" * 64, "role: expected read, run or admin, got 'boss'"),
        ("a b:run:" + "0" * 64, "name: expected"),
        ("a:run:revolute_abc", "expected a SHA-256"),
        ("a:run:" + "0" * 64 + ":soon", "expires: expected a day such as 2030-12-31, got 'soon'"),
        (f"{ANONYMOUS.name}:run:" + "0" * 64, "name: expected"),
    ],
)
def test_malformed_token_files_are_refused_with_the_line(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "tokens"
    file.write_text("# comment\n" + line + "\n")
    with pytest.raises(ArgumentError, match=message) as raised:
        auth.TokenFile(file)
    assert "line 2" in str(raised.value)


def test_a_missing_token_file_is_no_open_server(tmp_path: Path) -> None:
    ended = _start("--tokens", str(tmp_path / "none"))
    assert ended.returncode == 2
    assert "tokens: expected a file" in ended.stderr


def test_tokens_are_made_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    command = [sys.executable, "-m", "revolute", "token", "new", "--name", "ann", "--tokens", str(file)]
    made = [
        subprocess.run([*command, "--role", role], capture_output=True, text=True, check=True).stdout.strip()
        for role in ("run", "run")
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(set(made)) == 2
    for token in made:
        assert token not in file.read_text()
        found = auth.TokenFile(file).find(token)
        assert found is not None and (found.caller.name, found.caller.role) == ("ann", Role.RUN)
    assert auth.TokenFile(file).find(made[0] + "x") is None


def test_a_token_ends_after_its_last_day(tmp_path: Path) -> None:
    file, now = tmp_path / "tokens", datetime.now(timezone.utc)
    days = {
        name: (now + timedelta(days=shift)).date().isoformat() for name, shift in (("old", -1), ("new", 1))
    }
    tokens = {name: auth.new_token() for name in days}
    for name, day in days.items():
        auth.add_token(file, name, "run", auth.token_line(name, "run", tokens[name], day))
    with running_server("--tokens", str(file)) as server:
        for address in (server.grpc, server.http):
            revolute.connect(address, token=tokens["new"]).close()
            with pytest.raises(revolute.UnauthenticatedError, match=f"valid until {days['old']}"):
                revolute.connect(address, token=tokens["old"])


def test_a_name_has_one_role(tmp_path: Path) -> None:
    """A second role would break the file for a server that is started with it."""
    file = tmp_path / "tokens"

    def make(name: str, role: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "revolute", "token", "new", "--name", name, "--role", role]
        return subprocess.run(
            [*command, "--tokens", str(file)], capture_output=True, text=True, check=False, timeout=60
        )

    assert make("ann", "run").returncode == 0
    before = file.read_text()
    refused = make("ann", "admin")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("revolute token: role: expected run, which 'ann' has in")
    assert file.read_text() == before
    assert make("ben", "admin").returncode == 0 and make("ann", "run").returncode == 0
    file.write_text("no line of ours\n")
    broken = make("ann", "run")
    assert broken.returncode == 2 and "name:role:sha256" in broken.stderr
    assert file.read_text() == "no line of ours\n"


@dataclass
class Certificates:
    """Files of a server's certificate, a client's, and of who signed them."""

    ca: str
    cert: str
    key: str
    client_cert: str
    client_key: str
    stranger_cert: str
    stranger_key: str

    def server_flags(self) -> list[str]:
        return ["--tls-cert", self.cert, "--tls-key", self.key]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("tls")

    def write(name: str, blob: trustme.Blob) -> str:
        blob.write_to_path(str(folder / name))
        return str(folder / name)

    authority, other = trustme.CA(), trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    client, stranger = authority.issue_cert("ann@lab"), other.issue_cert("eve@lab")
    return Certificates(
        ca=write("ca.pem", authority.cert_pem),
        cert=write("cert.pem", server.cert_chain_pems[0]),
        key=write("key.pem", server.private_key_pem),
        client_cert=write("client.pem", client.cert_chain_pems[0]),
        client_key=write("client.key", client.private_key_pem),
        stranger_cert=write("stranger.pem", stranger.cert_chain_pems[0]),
        stranger_key=write("stranger.key", stranger.private_key_pem),
    )


def test_tls_on_both_transports(certificates: Certificates) -> None:
    with running_server(*certificates.server_flags()) as server:
        assert server.grpc.startswith("grpcs://") and server.http.startswith("https://")
        for address in (server.grpc, server.http):
            with revolute.connect(address, ca=certificates.ca) as simulator:
                assert simulator.load_model(CART).nv == 1
            # not signed by an authority of the system
            with pytest.raises(revolute.UnavailableError):
                revolute.connect(address, timeout=5)
            plain = address.replace("s://", "://")
            with pytest.raises(revolute.UnavailableError):
                revolute.connect(plain, timeout=5)


def test_mutual_tls(certificates: Certificates) -> None:
    with running_server(*certificates.server_flags(), "--tls-client-ca", certificates.ca) as server:
        for address in (server.grpc, server.http):
            own = {"cert": certificates.client_cert, "key": certificates.client_key}
            with revolute.connect(address, ca=certificates.ca, **own) as simulator:
                assert simulator.load_model(CART).nv == 1
            strangers = {"cert": certificates.stranger_cert, "key": certificates.stranger_key}
            for shown in ({}, strangers):
                with pytest.raises(revolute.UnavailableError):
                    revolute.connect(address, ca=certificates.ca, timeout=5, **shown)


def test_a_renewed_certificate_is_taken_at_sighup(tmp_path: Path) -> None:
    def issue() -> bytes:
        """Write a certificate into the server's files and return it in DER."""
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
        issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
        return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())

    def shown(address: str) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        host, _, port = address.partition("://")[2].rpartition(":")
        with socket.create_connection((host, int(port)), 10.0) as plain, context.wrap_socket(plain) as secure:
            found = secure.getpeercert(binary_form=True)
        assert found is not None
        return found

    def renew(server: ServerProcess, words: str) -> None:
        server.process.send_signal(signal.SIGHUP)
        _wait_for(server, words)

    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    first = issue()
    flags = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    with running_server(*flags, "--log-level", "info") as server:
        addresses = (server.grpc, server.http)
        assert [shown(address) for address in addresses] == [first, first]
        with revolute.connect(server.grpc, ca=str(tmp_path / "ca.pem")) as simulator:
            second = issue()
            renew(server, "read again, for new connections")
            assert [shown(address) for address in addresses] == [second, second]
            # a connection that is open goes on, and a file that is broken changes nothing
            (tmp_path / "key.pem").write_text("no key")
            renew(server, "the certificate stays as it was")
            assert [shown(address) for address in addresses] == [second, second]
            assert simulator.models()
        for address in addresses:
            revolute.connect(address, ca=str(tmp_path / "ca.pem")).close()


def test_files_of_tls_are_checked_at_the_start(certificates: Certificates, tmp_path: Path) -> None:
    for flags, word in (
        (("--tls-cert", certificates.cert), "tls_key"),
        (("--tls-cert", certificates.cert, "--tls-key", certificates.client_key), "tls_cert"),
        (("--tls-cert", str(tmp_path / "no"), "--tls-key", certificates.key), "tls_cert"),
        ((*certificates.server_flags(), "--tls-client-ca", certificates.key), "tls_client_ca"),
    ):
        ended = _start(*flags)
        assert ended.returncode == 2, flags
        assert word in ended.stderr and "Traceback" not in ended.stderr


def test_files_of_tls_are_checked_by_the_client(certificates: Certificates) -> None:
    for address, files, word in (
        ("grpc://localhost", {"ca": certificates.ca}, "^ca: expected None for grpc://"),
        ("https://localhost", {"cert": certificates.cert}, "^key: expected a file beside cert"),
        ("grpcs://localhost", {"ca": "/no/such/file"}, "^ca: expected PEM certificates in /no/such/file"),
        ("grpcs://localhost", {"ca": certificates.key}, "^ca: expected PEM certificates"),
        ("https://localhost", {"ca": 3}, "^ca: expected the path of a file"),
        (None, {"ca": certificates.ca}, "^ca: expected None without an address"),
    ):
        with pytest.raises(ArgumentError, match=word):
            revolute.connect(address, **files)


def test_unix_sockets_beside_the_ports(tmp_path: Path) -> None:
    paths = {"grpc": tmp_path / "g.sock", "http": tmp_path / "h.sock"}
    flags = ("--grpc-socket", str(paths["grpc"]), "--http-socket", str(paths["http"]))
    with running_server(*flags) as server:
        for kind, scheme in (("grpc", "unix"), ("http", "http+unix")):
            assert server.addresses[f"{kind}_socket"] == f"{scheme}://{paths[kind]}"
            assert stat.S_IMODE(paths[kind].stat().st_mode) & 0o077 == 0
            with revolute.connect(f"{scheme}://{paths[kind]}") as simulator:
                cart = simulator.load_model(CART)
                trajectory = simulator.rollout(cart, np.zeros(1), np.zeros(1), np.ones((3, 1)))
                assert trajectory.qvel[-1, 0] == pytest.approx(3e-3)
        revolute.connect(server.grpc).close()
        assert server.stop() == 0
    assert not any(path.exists() for path in paths.values())


def test_unix_sockets_alone_and_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "g.sock"
    flags = ("--no-tcp", "--grpc-socket", str(path))
    with running_server(*flags) as server:
        assert set(server.addresses) == {"grpc_socket", "pid"}
        second = _start(*flags)
        assert second.returncode == 2 and "grpc_socket: expected" in second.stderr
        # the first one still serves
        revolute.connect(f"unix://{path}").close()
        server.process.kill()
        server.process.wait()
    assert path.exists()
    with running_server(*flags):
        revolute.connect(f"unix://{path}").close()


def test_a_file_in_the_place_of_a_socket_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    ended = _start("--http-socket", str(path), "--grpc-port", "0", "--http-port", "0")
    assert ended.returncode == 2 and "http_socket: expected a path for a socket" in ended.stderr
    assert path.read_text() == "mine"


@pytest.mark.parametrize("protection", ["tokens", "tls", "insecure"])
def test_other_machines_need_protection(
    protection: str, keyring: Keyring, certificates: Certificates
) -> None:
    assert _start("--host", "0.0.0.0").returncode == 2
    flags = {
        "tokens": ["--tokens", str(keyring.file)],
        "tls": certificates.server_flags(),
        "insecure": ["--insecure"],
    }
    with running_server("--host", "0.0.0.0", *flags[protection]) as server:
        assert server.process.poll() is None


def test_error_answers_name_the_call(guarded: ServerProcess, keyring: Keyring) -> None:
    """The id that a client chose, or one of the server's, is in the answer, in the error and in the log."""
    bearer = f"Bearer {keyring.tokens['read']}"
    answer = httpx.get(
        guarded.http + "/v1/models/none", headers={"authorization": bearer, "x-request-id": "my-call.7"}
    )
    assert answer.headers["x-request-id"] == answer.json()["call_id"] == "my-call.7"
    wire = GrpcWire(guarded.grpc_target)
    metadata = (("authorization", bearer), ("x-request-id", "my-call.8"))
    get = wire.channel.unary_unary(
        "/revolute.v1.ModelService/GetModel",
        request_serializer=model_pb2.GetModelRequest.SerializeToString,
        response_deserializer=model_pb2.GetModelResponse.FromString,
    )
    with pytest.raises(grpc.RpcError) as raised:
        get(model_pb2.GetModelRequest(model_id="none"), metadata=metadata, timeout=10)
    assert dict(raised.value.trailing_metadata())["x-request-id"] == "my-call.8"
    wire.close()
    for address in (guarded.grpc, guarded.http):
        with revolute.connect(address, token=keyring.tokens["read"]) as simulator:
            with pytest.raises(revolute.NotFoundError) as missing:
                simulator._link.transport.call("GetModel", {"model_id": "none"})
            assert missing.value.call_id
            _wait_for(guarded, missing.value.call_id)


def _wait_for(server: ServerProcess, text: str) -> None:
    """Wait until the log, which is written after the answer, has a text."""
    deadline = time.monotonic() + 10.0
    while text not in server.log.read_text():
        assert time.monotonic() < deadline, f"{text} is not in the log"
        time.sleep(0.02)


def _start(*flags: str) -> subprocess.CompletedProcess[str]:
    """Start a server that shall not start."""
    command = [sys.executable, "-m", "revolute_server", *flags]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REVOLUTE_")}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)
