"""A model that a client sends never makes the server read a file of its own; the kernel is asked about it."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from revolute.contract.errors import ModelError, RevoluteError
from testbed.server_process import running_server
from testbed.wire import GrpcWire, HttpWire
from tests.revolute_engine.test_source import ATTACKS, BODY, TETRAHEDRON

Wire = GrpcWire | HttpWire

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")

IN_ACCESS, IN_OPEN = 0x1, 0x20
FILES = {
    "foot.obj": TETRAHEDRON,
    "body.xml": f"<mujoco>{BODY}</mujoco>".encode(),
    "model.xml": f"<mujoco>{BODY}</mujoco>".encode(),
    "picture.png": b"\x89PNG",
}


class Watch:
    """Says which files of a folder were opened or read since it was last asked."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK)
        for path in (folder, *folder.iterdir()):
            assert libc.inotify_add_watch(self._descriptor, os.fsencode(path), IN_ACCESS | IN_OPEN) >= 0

    def events(self) -> bytes:
        """Return the kernel's records; empty when nothing was touched."""
        try:
            return os.read(self._descriptor, 65536)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files that the attacks name."""
    folder = tmp_path_factory.mktemp("private")
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def wires(folder: Path) -> Iterator[dict[str, Wire]]:
    """Return the ways to a server that runs in that folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with running_server() as server:
            ways: dict[str, Wire] = {
                "grpc": GrpcWire(server.grpc_target),
                "json": HttpWire(server.http, npz=False),
                "npz": HttpWire(server.http, npz=True),
            }
            # what the first model makes Python load is loaded before anything is watched
            ways["grpc"].call("RegisterModel", {"text": f"<mujoco>{BODY}</mujoco>"})
            yield ways
            for way in ways.values():
                way.close()
    finally:
        os.chdir(before)


@pytest.fixture
def watch(folder: Path) -> Iterator[Watch]:
    """Return a watch on the folder."""
    watch = Watch(folder)
    yield watch
    watch.close()


@pytest.mark.parametrize("way", ["grpc", "json", "npz"])
def test_no_attack_opens_a_file(way: str, wires: dict[str, Wire], folder: Path, watch: Watch) -> None:
    for attack in ATTACKS:
        text = attack.replace("{folder}", str(folder))
        error, _ = wires[way].error("RegisterModel", {"text": text, "name": str(folder / "body.xml")})
        assert isinstance(error, ModelError), (attack, error)
        assert not watch.events(), attack


@pytest.mark.parametrize("way", ["grpc", "json", "npz"])
def test_what_is_not_simulated_is_not_opened(
    way: str, wires: dict[str, Wire], folder: Path, watch: Watch
) -> None:
    """Pictures and skins are left out; the model loads without them."""
    pictures = (
        f'<asset><texture name="t" type="2d" file="{folder}/picture.png"/><texture type="cube" '
        f'fileright="{folder}/picture.png"/><skin name="s" file="{folder}/foot.obj"/></asset>'
    )
    model = wires[way].call("RegisterModel", {"text": f"<mujoco>{pictures}{BODY}</mujoco>"})
    assert model["nv"] == 1
    assert not watch.events()


@pytest.mark.parametrize(
    "source", ["body.xml", "./body.xml", "{folder}/body.xml", "file://{folder}/body.xml"]
)
def test_names_are_no_paths(source: str, wires: dict[str, Wire], folder: Path, watch: Watch) -> None:
    for wire in wires.values():
        for field in ("builtin", "text"):
            error, _ = wire.error("RegisterModel", {field: source.replace("{folder}", str(folder))})
            assert isinstance(error, RevoluteError) and error.reason in ("NOT_FOUND", "INVALID_MODEL")
    assert not watch.events()


def test_the_watch_sees(folder: Path, watch: Watch) -> None:
    (folder / "foot.obj").read_bytes()
    assert watch.events()
