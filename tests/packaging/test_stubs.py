"""The checked-in stubs are what the proto files give."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKED_IN = ROOT / "client/revolute/contract/v1"


def test_stubs_are_up_to_date(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable}
    generate = [ROOT / "proto/revolute/v1/generate.sh", tmp_path]
    done = subprocess.run(generate, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = {path.name: path.read_bytes() for path in (tmp_path / "revolute/contract/v1").iterdir()}
    stubs = [*CHECKED_IN.glob("*_pb2*.py*"), CHECKED_IN / "comments.json"]
    kept = {path.name: path.read_bytes() for path in stubs}
    assert sorted(made) == sorted(kept)
    stale = [name for name in made if made[name] != kept[name]]
    assert not stale, f"run proto/revolute/v1/generate.sh; out of date: {stale}"


def test_an_interpreter_without_the_generator_is_named(tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')  # without site-packages
    other.chmod(0o755)
    done = subprocess.run(
        [ROOT / "proto/revolute/v1/generate.sh", tmp_path],
        env={**os.environ, "PYTHON": "./python"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"generate.sh: expected an interpreter with grpcio-tools 1.76.0, got none in {tmp_path}/./python; "
        "run make lint, or set PYTHON\n"
    )


BUF = shutil.which("buf") or shutil.which("buf", path=Path(sys.executable).parent)


@pytest.mark.skipif(BUF is None, reason="there is no buf")
def test_the_protocol_is_clean_to_buf(tmp_path: Path) -> None:
    environment = {**os.environ, "BUF_CACHE_DIR": str(tmp_path)}
    command = [str(BUF), "lint", str(ROOT / "proto")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_field_and_message_has_a_comment() -> None:
    bare = []
    for path in sorted((ROOT / "proto/revolute/v1").glob("*.proto")):
        lines = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            words = line.strip()
            declares = words.startswith(("message ", "rpc ", "service ", "oneof ")) or (
                words.endswith(";") and " = " in words and not words.startswith("syntax")
            )
            if declares and not lines[number - 1].strip().startswith("//"):
                bare.append(f"{path.name}:{number + 1}: {words}")
    assert not bare
