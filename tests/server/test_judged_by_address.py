"""`pytest tests/conformance --address …` judges a server that it did not start, with TLS and tokens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import trustme

from revolute_server.access import tokens
from testbed.server_process import ServerProcess, running_server

ROOT = Path(__file__).parents[2]


def _judge(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/conformance", *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[str]]:
    """Return a folder with certificates and tokens, a token, and the server's flags."""
    folder = tmp_path_factory.mktemp("guarded")
    authority, token = trustme.CA(), tokens.new_token()
    certificate = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "tokens").write_text(tokens.token_line("judge", "run", token) + "\n")
    flags = ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "key.pem")]
    return folder, token, [*flags, "--tokens", str(folder / "tokens")]


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_a_guarded_server_conforms(scheme: str, guarded: tuple[Path, str, list[str]]) -> None:
    folder, token, flags = guarded
    with running_server(*flags) as server:
        address = getattr(server, scheme)
        assert address.startswith(f"{scheme}s://")
        done = _judge("--address", address, "--token", token, "--ca", str(folder / "ca.pem"))
        assert done.returncode == 0, done.stdout
        passed = re.search(r"(\d+) passed", done.stdout)
        assert passed and int(passed.group(1)) > 10


def test_a_server_that_does_not_conform_is_found_out(server: ServerProcess) -> None:
    """A port that answers gRPC with another service, and one that wants a token that is not given."""
    done = _judge("--address", server.http.replace("http://", "grpc://"), "-x")
    assert done.returncode == 1
