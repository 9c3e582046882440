"""Models made to reach the network, fill the memory or stop the process: refused, and the server goes on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from revolute.contract.errors import ModelError, RevoluteError
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

BODY = '<worldbody><body><joint type="slide"/><geom size=".1"/></body></worldbody>'
GROWTH = 300 * 1024**2
"""Bytes by which the server's memory may grow while it reads all of these models, of a few KiB each."""

LAUGHS = "".join(f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9))
ENTITIES = f'<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>'
COPIES = '<replicate count="1000">'

REFUSED = {
    "entities": f'{ENTITIES}<mujoco model="&j;">{BODY}</mujoco>',
    "entities of a urdf": f'{ENTITIES}<robot name="&j;"><link name="a"/></robot>',
    "a file as entity": '<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    f'<mujoco model="&x;">{BODY}</mujoco>',
    "a host as entity": f'<!DOCTYPE m [<!ENTITY % x SYSTEM "{{url}}"> %x;]><mujoco>{BODY}</mujoco>',
    "a host as type": f'<!DOCTYPE mujoco SYSTEM "{{url}}"><mujoco>{BODY}</mujoco>',
    "xinclude": '<mujoco xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{url}" parse="text"/>'
    f"{BODY}</mujoco>",
    "an include by address": f'<mujoco><include file="{{url}}"/>{BODY}</mujoco>',
    "a mesh by address": '<mujoco><asset><mesh name="m" file="{url}.stl"/></asset><worldbody><body>'
    '<freejoint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>',
    "a mesh of a urdf by address": '<robot name="r"><link name="a"><collision><geometry>'
    '<mesh filename="{url}.stl"/></geometry></collision></link></robot>',
    "a plugin": f'<mujoco><extension><plugin plugin="mujoco.sdf.torus"/></extension>{BODY}</mujoco>',
    "a library": f'<mujoco><extension><plugin plugin="/tmp/evil.so"/></extension>{BODY}</mujoco>',
    "copies": f"<mujoco><worldbody>{COPIES * 3}"
    f'<body><joint type="slide"/><geom size=".1"/></body>{"</replicate>" * 3}</worldbody></mujoco>',
    "a height field": '<mujoco><asset><hfield name="h" nrow="60000" ncol="60000" size="1 1 1 1"/></asset>'
    f"{BODY}</mujoco>",
    "a grid": '<mujoco><worldbody><flexcomp name="f" type="grid" count="500 500 500" spacing="1 1 1" '
    'dim="3"/></worldbody></mujoco>',
    "depth": "<mujoco>" + "<body>" * 30_000 + "</body>" * 30_000 + "</mujoco>",
    "an endless name": f'<mujoco><default class="{"x" * 100_000}"/><worldbody><geom class="y"/></worldbody>'
    "</mujoco>",
}
SHRUNK = {
    "a texture": '<mujoco><asset><texture name="t" type="2d" builtin="checker" width="60000" '
    f'height="60000"/></asset>{BODY}</mujoco>',
    "memory": f'<mujoco><size memory="1T"/>{BODY}</mujoco>',
    "user data": f'<mujoco><size nuserdata="2000000000" nuser_body="2000000000"/>{BODY}</mujoco>',
    "keyframes": f'<mujoco><size nkey="100000000"/>{BODY}</mujoco>',
}
"""What asks for memory that no simulation needs loads without it."""


class Ear:
    """A socket that notes who connects."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/x"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, peer = self._socket.accept()
            except OSError:
                return
            self.heard.append(peer)
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def ear() -> Iterator[Ear]:
    ear = Ear()
    yield ear
    ear.close()


@pytest.fixture(scope="module")
def small() -> Iterator[tuple[ServerProcess, GrpcWire]]:
    with running_server("--workers", "1", "--threads", "1") as server:
        wire = GrpcWire(server.grpc_target)
        wire.call("RegisterModel", {"text": CART})
        yield server, wire
        wire.close()


def _peak(server: ServerProcess) -> int:
    """Largest memory that the process has had, in bytes."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


@pytest.mark.parametrize("attack", REFUSED)
def test_hostile_models_are_refused(attack: str, small: tuple[ServerProcess, GrpcWire], ear: Ear) -> None:
    server, wire = small
    before = _peak(server)
    error, code = wire.error("RegisterModel", {"text": REFUSED[attack].replace("{url}", ear.url)})
    assert isinstance(error, ModelError) and code == "INVALID_ARGUMENT"
    assert "root:" not in str(error) and len(str(error)) < 1100
    assert _peak(server) - before < GROWTH
    assert not ear.heard


@pytest.mark.parametrize("attack", SHRUNK)
def test_what_asks_for_memory_in_vain_gets_none(
    attack: str, small: tuple[ServerProcess, GrpcWire], ear: Ear
) -> None:
    server, wire = small
    before = _peak(server)
    assert wire.call("RegisterModel", {"text": SHRUNK[attack]})["nv"] == 1
    assert _peak(server) - before < GROWTH


MESH = (
    '<mujoco><asset><mesh name="m" file="{name}"/></asset><worldbody><body><freejoint/>'
    '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
)
HOSTILE_MESHES = {
    "laughs.dae": (ENTITIES + "<COLLADA><asset>&j;</asset></COLLADA>").encode(),
    "entity.dae": b'<!DOCTYPE m [<!ENTITY x SYSTEM "{url}">]><COLLADA>&x;</COLLADA>',
    "count.stl": bytes(80) + (2**32 - 1).to_bytes(4, "little") + bytes(50),
    "short.stl": bytes(10),
    "index.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4000000000\n",
    "negative.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -9 -8 -7\n",
    "library.obj": b"mtllib {url}\nv 0 0 0\n",
    "nan.stl": bytes(80) + (1).to_bytes(4, "little") + np.full(12, np.nan, "<f4").tobytes() + b"\0\0",
    "count.msh": np.array([2**31 - 1, 0, 0, 2**31 - 1], "<i4").tobytes(),
}


@pytest.mark.parametrize("name", HOSTILE_MESHES)
def test_hostile_meshes_are_refused(name: str, small: tuple[ServerProcess, GrpcWire], ear: Ear) -> None:
    server, wire = small
    before = _peak(server)
    content = HOSTILE_MESHES[name].replace(b"{url}", ear.url.encode())
    text = MESH.replace("{name}", name)
    error, _ = wire.error("RegisterModel", {"text": text, "assets": {name: content}})
    assert isinstance(error, RevoluteError) and error.reason == "INVALID_MODEL", error
    assert _peak(server) - before < GROWTH
    assert not ear.heard and server.process.poll() is None


def test_the_server_goes_on(small: tuple[ServerProcess, GrpcWire]) -> None:
    server, wire = small
    cart = wire.call("RegisterModel", {"text": CART})["model_id"]
    answer = wire.call(
        "Rollout", {"model_id": cart, "qpos": np.zeros(1), "qvel": np.zeros(1), "ctrl": np.ones((3, 1))}
    )
    assert answer["qvel"][-1, 0] == pytest.approx(3e-3)
    assert "Traceback" not in server.log.read_text()


def test_the_ear_hears(ear: Ear) -> None:
    port = int(ear.url.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port), 5.0) as connection:
        connection.recv(1)
    assert ear.heard
