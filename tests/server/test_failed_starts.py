"""A start that fails is one line on stderr and status 2, and leaves nothing behind."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from revolute_server import settings
from testbed.server_process import running_server


def start(folder: Path, *flags: str, variables: Mapping[str, str] | None = None) -> str:
    """Start a server that shall not start, and return the one line that it prints."""
    store = ("--store", f"sqlite:///{folder}/new/store.db")
    command = [sys.executable, "-m", "revolute_server", *store, *flags]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REVOLUTE_")}
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**clean, **(variables or {})}
    )
    assert ended.returncode == 2, ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    assert not ended.stdout
    assert ended.stderr.startswith("revolute serve: ")
    assert not (folder / "new").exists()
    return ended.stderr


@pytest.fixture
def taken() -> Iterator[str]:
    """Return a port on which somebody listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield str(listener.getsockname()[1])


@pytest.mark.parametrize("flag", ["--grpc-port", "--http-port", "--dm-env-rpc"])
def test_a_port_that_is_taken(tmp_path: Path, taken: str, flag: str) -> None:
    if flag == "--dm-env-rpc":
        pytest.importorskip("dm_env_rpc")
    line = start(tmp_path, "--grpc-port", "0", "--http-port", "0", flag, taken)
    assert flag.strip("-").replace("-", "_") in line and "Address already in use" in line


def test_a_port_file_that_cannot_be_written(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "ports.json", tmp_path):
        line = start(tmp_path, "--grpc-port", "0", "--http-port", "0", "--port-file", str(path))
        assert line == (
            f"revolute serve: port_file: expected a path in a folder that can be written, got {path}\n"
        )


def test_flags_and_variables_that_are_none(tmp_path: Path) -> None:
    for flags, words in (
        (("--lease", "100", "--max-lease", "50"), "lease: expected at most max_lease, 50 s, got 100"),
        (("--tokens", str(tmp_path)), "tokens: expected a file that can be read"),
        (("--memory", "4XB"), "--memory: expected a size such as 4GiB"),
        (("--nonsense",), "unrecognized arguments: --nonsense"),
    ):
        assert words in start(tmp_path, *flags)
    for variables, words in (
        ({"REVOLUTE_ISA": "v9"}, "REVOLUTE_ISA: expected one of v4"),
        ({"REVOLUTE_LEASE": "1e9"}, "lease: expected at most max_lease"),
    ):
        assert words in start(tmp_path, variables=variables)


def test_a_shorter_bound_of_leases_needs_no_other_default() -> None:
    found = settings.from_arguments(argparse.Namespace(max_lease=60.0), {})
    assert (found.lease, found.max_lease) == (60.0, 60.0)


def test_a_misspelt_variable_is_warned_of() -> None:
    variables = {"REVOLUTE_MEMROY": "1GiB", "REVOLUTE_TOKEN": "x", "REVOLUTE_QUEUE": "1", "PATH": "/"}
    assert settings.unknown_variables(variables) == [
        "REVOLUTE_MEMROY: expected the variable of a setting, got an unknown one; "
        "did you mean REVOLUTE_MEMORY?"
    ]
    os.environ["REVOLUTE_MEMROY"] = "1GiB"
    try:
        with running_server() as server:
            assert "WARNING revolute.server: REVOLUTE_MEMROY: expected" in server.log.read_text()
    finally:
        del os.environ["REVOLUTE_MEMROY"]
