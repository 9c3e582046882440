"""Memory that client and server share: the same answers as over the connection, and whatever goes wrong."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import revolute
from revolute.contract.codec import buffers
from revolute.contract.codec import shared_memory as shm
from revolute.contract.codec.shared_memory import HEADER, OPENED, SharedMemory
from revolute.transports.deadline import Deadline
from revolute.transports.offered_memory import OfferedMemory
from revolute_server.grpc import offered_memory
from revolute_server.grpc.interceptor import _is_local
from revolute_server.grpc.offered_memory import OpenBlocks
from testbed.cart import CART
from testbed.server_process import ServerProcess, running_server
from testbed.wire import GrpcWire

pytestmark = pytest.mark.skipif(not shm.AVAILABLE, reason="the system has no memfd")

CARTS, STEPS = 50, 2000


class Traffic:
    """What went through shared memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.put = self.read = 0
        real_put, real_read = SharedMemory.put, SharedMemory.read

        def put(memory: SharedMemory, start: Any, values: Any) -> Any:
            left = real_put(memory, start, values)
            self.put += shm.array_bytes(values) - shm.array_bytes(left)
            return left

        def read(memory: SharedMemory, place: int, into: np.ndarray) -> int:
            count = real_read(memory, place, into)
            self.read += count
            return count

        monkeypatch.setattr(SharedMemory, "put", put)
        monkeypatch.setattr(SharedMemory, "read", read)


@pytest.fixture
def traffic(monkeypatch: pytest.MonkeyPatch) -> Traffic:
    return Traffic(monkeypatch)


def _inputs() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    return (
        generator.normal(size=(CARTS, 1)),
        generator.normal(size=(CARTS, 1)),
        generator.normal(size=(CARTS, STEPS, 1)),
    )


def _answers(simulator: revolute.Simulator) -> dict[str, np.ndarray]:
    """Return what a client gets from verbs whose arrays are large."""
    qpos, qvel, ctrl = _inputs()
    model = simulator.load_model(CART)
    found: dict[str, np.ndarray] = {}
    with simulator.rollout(model, qpos, qvel, ctrl) as trajectory:
        found |= {"qpos": trajectory.qpos, "qvel": trajectory.qvel}
        found["backward"] = trajectory.backward(qpos_bar=np.ones_like(trajectory.qpos)).ctrl
        again = simulator.trajectory(model, trajectory.id)
        found["again"] = np.asarray(again.qpos)
    loss = revolute.Loss([revolute.Term("qpos", target=np.ones((CARTS, 1)), when="final")])
    value, gradient = simulator.value_and_gradient(model, qpos, qvel, ctrl, loss)
    found |= {"value": value, "given loss": gradient.ctrl}

    def own(states: Any) -> tuple[Any, Any, Any]:
        return states.qpos.sum(), np.ones_like(states.qpos), states.qvel

    _, gradient = simulator.value_and_gradient(model, qpos, qvel, ctrl, own)
    found["own loss"] = gradient.ctrl
    many = 40_000
    with simulator.session(model, many) as session:
        session.reset(np.ones((many, 1)), np.zeros((many, 1)))
        found["step"] = session.step(np.linspace(0, 1, many)[:, None]).qvel
    return found


def _equal(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, array in one.items():
        assert np.asarray(array).tobytes() == np.asarray(other[name]).tobytes(), name


def test_answers_are_those_of_the_engine_here(
    in_process: revolute.Simulator, server: ServerProcess, traffic: Traffic
) -> None:
    with revolute.connect(server.grpc) as simulator:
        _equal(_answers(simulator), _answers(in_process))
    # rollout, gradients and steps took this way, both there and back
    assert traffic.put > 3e6 and traffic.read > 10e6


@pytest.mark.parametrize("flags", [(), ("--no-shared-memory",)])
def test_memory_that_is_used_again_is_nobody_elses(
    in_process: revolute.Simulator, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "LARGE", 10_000)
    with running_server(*flags) as server, revolute.connect(server.grpc) as simulator:
        first, second = _answers(simulator), _answers(simulator)
        _equal(first, _answers(in_process))
        _equal(first, second)
        del first
        # written where the first ones were
        _answers(simulator)
        _equal(second, _answers(in_process))


def test_what_is_large_is_copied_beside_other_calls(server: ServerProcess, traffic: Traffic) -> None:
    ctrl = np.random.default_rng(0).normal(size=(300_000, 1))
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
        with simulator.rollout(model, [0.0], [0.0], ctrl, checkpoints="interval=100", states="all") as found:
            # v_N = h sum u
            assert np.allclose(found.qvel[1:, 0], 0.001 * np.cumsum(ctrl), rtol=0, atol=1e-12)
    assert traffic.put == ctrl.nbytes and traffic.read == 2 * (ctrl.nbytes + 8)


def test_a_server_may_have_none_of_it(in_process: revolute.Simulator, traffic: Traffic) -> None:
    with running_server("--no-shared-memory") as server, revolute.connect(server.grpc) as simulator:
        _equal(_answers(simulator), _answers(in_process))
    assert traffic.put == traffic.read == 0


def test_an_http_client_shares_nothing(server: ServerProcess, traffic: Traffic) -> None:
    with revolute.connect(server.http) as simulator:
        simulator.rollout(simulator.load_model(CART), *_inputs())
    assert traffic.put == 0


def test_what_the_server_cannot_open_is_sent(
    in_process: revolute.Simulator, server: ServerProcess, monkeypatch: pytest.MonkeyPatch, traffic: Traffic
) -> None:
    """As after a server's restart in another container: it was asked before, and can no longer."""
    monkeypatch.setattr(OfferedMemory, "_acquire", lambda *_: _with_wrong_secret())
    with revolute.connect(server.grpc) as simulator:
        _equal(_answers(simulator), _answers(in_process))
    assert traffic.read == 0


def _with_wrong_secret() -> SharedMemory:
    memory = SharedMemory.create()
    process, descriptor, _, capacity = memory.offer.split(":")
    memory.offer = f"{process}:{descriptor}:{'0' * 64}:{capacity}"
    return memory


def test_a_server_that_takes_no_memory_any_more(
    in_process: revolute.Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a restart with another setting, or behind a proxy on this machine: the client was told that it
    could, and its request is in memory that the server does not look at."""
    monkeypatch.setattr(OfferedMemory, "_probe", lambda offered, *_: setattr(offered, "_usable", True))
    with running_server("--no-shared-memory") as server, revolute.connect(server.grpc) as simulator:
        _equal(_answers(simulator), _answers(in_process))


def test_a_loss_of_the_clients_own_is_evaluated_once(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OfferedMemory, "_acquire", lambda *_: _with_wrong_secret())
    calls = 0

    def own(states: Any) -> tuple[Any, Any, Any]:
        nonlocal calls
        calls += 1
        return 0.0, np.ones_like(states.qpos), None

    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
        # a small request whose answer is large
        simulator.value_and_gradient(model, [0.0], [0.0], np.zeros((7000, 1)), own)
    assert calls == 1


def test_calls_at_a_time_have_blocks_of_their_own(
    server: ServerProcess, in_process: revolute.Simulator
) -> None:
    with revolute.connect(server.grpc) as simulator, ThreadPoolExecutor(8) as pool:
        model, local = simulator.load_model(CART), in_process.load_model(CART)

        def check(seed: int) -> None:
            ctrl = np.random.default_rng(seed).normal(size=(9000, 1))
            with simulator.rollout(model, [0.0], [0.0], ctrl) as found:
                assert found.qpos.tobytes() == in_process.rollout(local, [0.0], [0.0], ctrl).qpos.tobytes()

        for done in [pool.submit(check, seed) for seed in range(40)]:
            done.result()


def test_a_block_is_used_again_but_not_after_a_failure() -> None:
    offered = OfferedMemory(lambda *_: True, True)
    with offered.lent(True) as first:
        assert first is not None
        with offered.lent(True) as second:
            assert second is not None and second.offer != first.offer
    with pytest.raises(KeyError), offered.lent(True) as again:
        assert again is first
        raise KeyError
    with offered.lent(True) as third:
        assert third is second
    with offered.lent(False) as none:
        assert none is None
    with pytest.raises(revolute.ArgumentError):
        SharedMemory.open(first.offer)
    offered.give_up()
    with offered.lent(True) as none:
        assert none is None


def test_a_server_that_does_not_answer_is_asked_again() -> None:
    answers: list[bool | None] = [None, True]
    offered = OfferedMemory(lambda *_: answers.pop(0), True)
    with offered.lent(True) as none:
        assert none is None
    with offered.lent(True) as memory:
        assert memory is not None
    assert not answers
    offered.give_up()


_FORKS = """
import os
from revolute.transports.offered_memory import OfferedMemory
offered = OfferedMemory(lambda *_: True, True)
with offered.lent(True) as first:
    pass
child = os.fork()
if child == 0:
    with offered.lent(True) as mine:
        os._exit(0 if mine is not None and mine.offer != first.offer else 1)
assert os.waitpid(child, 0)[1] == 0
with offered.lent(True) as again:
    assert again is first
"""


def test_a_forked_child_has_blocks_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", _FORKS], check=True, timeout=60)


def test_a_large_block_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from revolute.transports import offered_memory as clients

    monkeypatch.setattr(clients, "_KEPT_BYTES", 1000)
    offered = OfferedMemory(lambda *_: True, True)
    with offered.lent(True) as first:
        assert first is not None
        os.ftruncate(int(first.offer.split(":")[1]), 2000)
    with pytest.raises(revolute.ArgumentError):
        SharedMemory.open(first.offer)


def test_blocks_that_wait_have_one_bound_together(monkeypatch: pytest.MonkeyPatch) -> None:
    from revolute.transports import offered_memory as clients

    monkeypatch.setattr(clients, "_KEPT_BYTES", 5000)
    offered = OfferedMemory(lambda *_: True, True)
    with contextlib.ExitStack() as calls:
        blocks = [calls.enter_context(offered.lent(True)) for _ in range(4)]
        for block in blocks:
            assert block is not None
            os.ftruncate(int(block.offer.split(":")[1]), 2000)
    assert sum(_can_be_opened(block.offer) for block in blocks if block is not None) == 2
    # and what was lent again and grew is counted as it is
    with offered.lent(True) as block:
        assert block is not None
        os.ftruncate(int(block.offer.split(":")[1]), 4000)
    assert not _can_be_opened(block.offer)
    with offered.lent(True) as other, offered.lent(True) as another:
        assert other in blocks and another not in blocks
    offered.give_up()


def test_calls_beyond_some_number_send_their_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    from revolute.transports import offered_memory as clients

    monkeypatch.setattr(clients, "_MOST_BLOCKS", 2)
    offered = OfferedMemory(lambda *_: True, True)
    for _ in range(3):
        with pytest.raises(KeyError), offered.lent(True) as one, offered.lent(True) as two:
            assert one is not None and two is not None
            with offered.lent(True) as three:
                assert three is None
            raise KeyError
    with offered.lent(True) as one:
        assert one is not None
    offered.give_up()


_FEW_DESCRIPTORS = """
import contextlib, resource
from revolute.transports.offered_memory import OfferedMemory
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
offered = OfferedMemory(lambda *_: True, True)
with contextlib.ExitStack() as calls:
    lent = [calls.enter_context(offered.lent(True)) for _ in range(20)]
    assert sum(block is not None for block in lent) == 10
"""


def test_a_client_with_few_descriptors_has_some_for_other_files() -> None:
    subprocess.run([sys.executable, "-c", _FEW_DESCRIPTORS], check=True, timeout=60)


def test_a_connection_that_nobody_holds_keeps_no_memory(server: ServerProcess) -> None:
    simulator = revolute.connect(server.grpc)
    simulator.rollout(simulator.load_model(CART), [0.0], [0.0], np.zeros((20_000, 1)))
    ((block, _),) = simulator._link.transport._inner._memory._idle  # type: ignore[attr-defined]
    offer = block.offer
    del block
    assert _can_be_opened(offer)
    gc.disable()
    try:
        del simulator
        assert not _can_be_opened(offer)
    finally:
        gc.enable()


def _can_be_opened(offer: str) -> bool:
    try:
        SharedMemory.open(offer).close()
    except revolute.ArgumentError:
        return False
    return True


def test_the_server_is_asked_within_the_calls_own_time() -> None:
    asked: list[float] = []
    offered = OfferedMemory(lambda _offer, seconds: asked.append(seconds), True)
    for deadline in (Deadline(0.5), Deadline(100.0), Deadline(None)):
        with offered.lent(True, deadline) as none:
            assert none is None
    assert asked[0] <= 0.5 and asked[1] == asked[2] == 10.0


def test_a_server_that_stands_still_is_waited_for_no_longer_than_asked() -> None:
    with (
        running_server() as server,
        revolute.connect(server.grpc) as patient,
        revolute.connect(server.grpc, timeout=0.5, retries=0) as simulator,
    ):
        model = patient.load_model(CART)
        server.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(revolute.DeadlineError):
            simulator.rollout(model, [0.0], [0.0], np.zeros((9000, 1)))
        assert time.monotonic() - began < 5.0
        server.process.send_signal(signal.SIGCONT)
        # it was not asked in vain for good
        ctrl = np.ones((9000, 1))
        assert np.isclose(simulator.rollout(model, [0.0], [0.0], ctrl).qvel[-1, 0], 9.0)
        assert simulator._link.transport._inner._memory._usable  # type: ignore[attr-defined]


def test_the_server_holds_no_large_block_when_the_call_is_over() -> None:
    block = SharedMemory.create()
    os.ftruncate(int(block.offer.split(":")[1]), 2 * 1024**2)

    async def scenario() -> None:
        memory = OpenBlocks()
        found = memory.take(block.offer)
        memory.give_back(found)
        assert len(memory) == 0 and found.read(0, np.empty(32, np.uint8)) == 0

    asyncio.run(scenario())
    block.close()


def test_the_server_lets_go_of_blocks_that_nobody_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered_memory, "_IDLE_SECONDS", 0.05)
    blocks = [SharedMemory.create() for _ in range(3)]

    async def scenario() -> None:
        memory = OpenBlocks()
        taken = [memory.take(block.offer) for block in blocks]
        for found in taken:
            memory.give_back(found)
        assert len(memory) == 3
        assert memory.take(blocks[0].offer) is taken[0]
        await asyncio.sleep(0.2)
        assert len(memory) == 0
        # what was in use meanwhile is not touched
        assert taken[0].read(0, np.empty(32, np.uint8)) == 32
        memory.give_back(taken[0])
        await asyncio.sleep(0.2)
        assert len(memory) == 0 and taken[0].read(0, np.empty(32, np.uint8)) == 0

    asyncio.run(scenario())
    for block in blocks:
        block.close()


def test_the_server_keeps_few_blocks_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered_memory, "_MOST_IDLE", 2)
    blocks = [SharedMemory.create() for _ in range(4)]

    async def scenario() -> None:
        memory = OpenBlocks()
        for block in blocks:
            memory.give_back(memory.take(block.offer))
        # one block with two calls at a time
        twice = memory.take(blocks[3].offer), SharedMemory.open(blocks[3].offer)
        for found in twice:
            memory.give_back(found)
        assert len(memory) == 2
        memory.close()
        assert len(memory) == 0

    asyncio.run(scenario())
    for block in blocks:
        block.close()


def test_blocks_leave_descriptors_to_others() -> None:
    blocks = [SharedMemory.create() for _ in range(4)]

    async def scenario() -> None:
        memory = OpenBlocks(most=2)
        for block in blocks:
            # those that wait make room
            memory.give_back(memory.take(block.offer))
        used = [memory.take(block.offer) for block in blocks[:2]]
        assert len(memory) == 0
        with pytest.raises(revolute.ArgumentError) as caught:
            memory.take(blocks[2].offer)
        assert caught.value.argument == HEADER
        memory.give_back(used[0])
        # what could not be opened does not count
        for _ in range(3):
            with pytest.raises(revolute.ArgumentError):
                memory.take("nonsense")
        assert memory.take(blocks[3].offer).read(0, np.empty(32, np.uint8)) == 32
        memory.close()

    asyncio.run(scenario())
    for block in blocks:
        block.close()


def _blocks_of(process: int) -> int:
    """Return how many blocks a process has open."""
    count = 0
    for path in Path(f"/proc/{process}/fd").iterdir():
        # some are closed meanwhile
        with contextlib.suppress(OSError):
            count += os.readlink(path).startswith("/memfd:revolute ")
    return count


def test_a_server_with_few_descriptors_has_some_for_its_store(in_process: revolute.Simulator) -> None:
    """Each of these calls offers a block of its own, and they run at a time."""
    limited = "tests.server.limited_descriptors"
    with (
        running_server(module=limited) as server,
        revolute.connect(server.grpc) as simulator,
        ThreadPoolExecutor(30) as pool,
    ):
        model = simulator.load_model(CART)
        ctrl = np.ones((9000, 1))
        expected = in_process.rollout(in_process.load_model(CART), [0.0], [0.0], ctrl).qpos.tobytes()
        calls = [pool.submit(simulator.rollout, model, [0.0], [0.0], ctrl) for _ in range(90)]
        assert all(call.result().qpos.tobytes() == expected for call in calls)
        assert 0 < _blocks_of(server.process.pid) <= 16


def test_nothing_of_a_killed_client_stays(server: ServerProcess) -> None:
    """Its memory has no name, so that nothing is left but what the server has open for a moment."""
    program = (
        "import sys, revolute, numpy as np\n"
        "simulator = revolute.connect(sys.argv[1])\n"
        "model = simulator.load_model(sys.argv[2])\n"
        "print('ready', flush=True)\n"
        "while True: simulator.rollout(model, [0.0], [0.0], np.zeros((20000, 1)))\n"
    )
    before = set(Path("/dev/shm").glob("*")) if Path("/dev/shm").is_dir() else set()
    client = subprocess.Popen([sys.executable, "-c", program, server.grpc, CART], stdout=subprocess.PIPE)
    assert client.stdout is not None and client.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
        assert simulator.rollout(model, [0.0], [1.0], np.zeros((20000, 1))).qvel.shape == (20001, 1)
    after = set(Path("/dev/shm").glob("*")) if Path("/dev/shm").is_dir() else set()
    assert not {path for path in after - before if "revolute" in path.name}


def test_getserverinfo_says_whether_it_can_be_opened(grpc_wire: GrpcWire, server: ServerProcess) -> None:
    block = SharedMemory.create()
    with grpc.insecure_channel(server.grpc_target) as channel:
        ask: Any = channel.unary_unary("/revolute.v1.ServerService/GetServerInfo")

        def opened(offer: str) -> bool:
            _, call = ask.with_call(b"", metadata=((HEADER, offer),))
            return (HEADER, OPENED) in tuple(call.trailing_metadata())

        assert opened(block.offer)
        assert not opened(block.offer.replace(block.offer.split(":")[2], "1" * 64))
        assert not opened("nonsense")
    block.close()


@pytest.mark.parametrize("offer", [None, "1:1:" + "0" * 64 + ":1000", "nonsense"])
def test_arrays_in_memory_that_is_not_there(server: ServerProcess, cart: str, offer: str | None) -> None:
    from revolute.contract.v1 import trajectory_pb2

    request = trajectory_pb2.RolloutRequest()
    request.start.model_id = cart
    request.start.qpos.dtype, request.start.qpos.data = "<f8", bytes(8)
    request.start.qpos.shape[:] = [1]
    request.start.qvel.CopyFrom(request.start.qpos)
    request.start.ctrl.dtype, request.start.ctrl.shared = "<f8", 64
    request.start.ctrl.shape[:] = [1000, 1]
    with grpc.insecure_channel(server.grpc_target) as channel:
        call: Any = channel.unary_stream("/revolute.v1.TrajectoryService/Rollout")
        with pytest.raises(grpc.RpcError) as caught:
            list(call(request.SerializeToString(), metadata=((HEADER, offer),) if offer else ()))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    expected = "ctrl.shared: expected nothing" if offer is None else "x-shared-memory: expected"
    assert caught.value.details().startswith(expected)


def test_only_blocks_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is none is not even opened, and nobody is told what it is."""
    secret = os.urandom(32)
    fifo, file = tmp_path / "fifo", tmp_path / "memfd:revolute x"
    os.mkfifo(fifo)
    file.write_bytes(secret)
    other = os.memfd_create("another")
    os.pwrite(other, secret, 0)
    pathless = os.open(fifo, os.O_PATH)
    descriptors = [other, pathless, os.open(file, os.O_RDWR), *os.pipe(), 10**9]
    opened: list[int] = []
    real_open = os.open

    def noted(path: Any, flags: int, *more: Any, **named: Any) -> int:
        opened.append(flags)
        return real_open(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", noted)
    said = set()
    for process, descriptor in [*((os.getpid(), number) for number in descriptors), (1, 0), (2**31, 0)]:
        with pytest.raises(revolute.ArgumentError) as caught:
            SharedMemory.open(f"{process}:{descriptor}:{secret.hex()}:1000")
        said.add(str(caught.value))
    assert len(said) == 1
    assert all(flags & os.O_PATH for flags in opened)
    for descriptor in descriptors[:-1]:
        os.close(descriptor)
    block = SharedMemory.create()
    SharedMemory.open(block.offer).close()
    assert opened[-1] & os.O_RDWR
    block.close()


def test_a_block_that_becomes_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner puts another file under the same number, just when the name was looked at."""
    block = SharedMemory.create()
    number = int(block.offer.split(":")[1])
    file = tmp_path / "file"
    file.write_bytes(bytes(100))
    real_readlink = os.readlink

    def readlink(path: Any, **named: Any) -> Any:
        found = real_readlink(path, **named)
        with file.open("r+b") as other:
            os.dup2(other.fileno(), number)
        return found

    monkeypatch.setattr(os, "readlink", readlink)
    found = SharedMemory.open(block.offer)
    assert found.size() == 32  # the block, not the file
    found.close()
    block.close()


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        ("ipv4:127.0.0.1:4000", True),
        ("ipv4:127.3.0.1:4000", True),
        ("ipv6:[::1]:4000", True),
        ("ipv6:%5B::1%5D:4000", True),
        ("unix:", True),
        ("unix:/run/x.sock", True),
        ("ipv4:10.0.0.1:4000", False),
        ("ipv6:[fe80::1]:4000", False),
        ("", False),
    ],
)
def test_only_clients_on_this_machine_share(peer: str, local: bool) -> None:
    assert _is_local(peer) is local


def test_streamed_segments_are_sent(server: ServerProcess, traffic: Traffic) -> None:
    """Segments overtake each other: the next is written while the client reads the last."""
    with revolute.connect(server.grpc) as simulator:
        model = simulator.load_model(CART)
        ctrl = np.ones((60_000, 1))
        stream = simulator.stream_rollout(model, [0.0], [0.0], ctrl, segment_steps=20_000)
        assert np.concatenate([segment.qvel for segment in stream]).shape == (60_001, 1)
    assert traffic.put == traffic.read == 0
