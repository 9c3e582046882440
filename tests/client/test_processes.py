"""What a client meets in the life of its process and of its server: timeouts, forks, a server that dies."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import revolute
from testbed.server_process import ServerProcess, running_server

SCHEMES = ("grpc", "http")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_timeout(scheme: str, server: ServerProcess) -> None:
    with revolute.connect(getattr(server, scheme), timeout=0.5) as simulator:
        session = simulator.session(simulator.load_model("laikago"), 64)
        began = time.monotonic()
        with pytest.raises(
            revolute.DeadlineError, match=r"^timeout: expected the answer to Step within 0.5 s"
        ):
            session.step(np.zeros(12), steps=10**8)
        assert time.monotonic() - began < 5.0
        # all or nothing; and the server is free again
        assert session.state().step_count == 0
        assert session.step(np.zeros(12), steps=10).step_count == 10


FORK = """
import multiprocessing, sys
import revolute

def inherited(simulator, queue):
    try:
        queue.put(simulator.models())
    except revolute.UnavailableError as error:
        queue.put(str(error))

def new(address, queue):
    with revolute.connect(address, timeout=20) as simulator:
        queue.put(simulator.models())

context = multiprocessing.get_context("fork")
with revolute.connect(sys.argv[1]) as simulator:
    models = simulator.models()
    for target, argument in ((inherited, simulator), (new, sys.argv[1]), (new, sys.argv[1])):
        queue = context.Queue()
        child = context.Process(target=target, args=(argument, queue))
        child.start()
        answer = queue.get(timeout=20)
        child.join(20)
        print("equal" if answer == models else answer)
    assert simulator.models() == models
"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_fork(scheme: str, server: ServerProcess) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORK, getattr(server, scheme)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    refusal, *answers = done.stdout.splitlines()
    assert "expected the process that connected, got a fork of it; call revolute.connect()" in refusal
    assert answers == ["equal", "equal"]


MANY_FORKS = """
import multiprocessing, sys
import grpc  # before revolute can ask it for its support of forks
import numpy as np
import revolute

def new(address, queue):
    try:
        with revolute.connect(address, timeout=20) as simulator:
            models = simulator.models()
            for _ in range(2):
                simulator.rollout(simulator.load_model("pendulum1"), [0.0], [0.0], np.ones((20_000, 1)))
            queue.put(models)
    except revolute.RevoluteError as error:
        queue.put(str(error))

context = multiprocessing.get_context("fork")
with revolute.connect(sys.argv[1]) as simulator:
    model, models = simulator.load_model("pendulum1"), simulator.models()
    for _ in range(8):
        queue = context.Queue()
        children = [context.Process(target=new, args=(sys.argv[1], queue)) for _ in range(4)]
        for child in children:
            child.start()
        for _ in range(6):
            simulator.rollout(model, [0.0], [0.0], np.ones((20_000, 1)))
        for child in children:
            answer = queue.get(timeout=20)
            assert answer == models, answer
            child.join(20)
"""


def test_children_do_not_use_their_parents_connection(server: ServerProcess) -> None:
    """One in twenty failed before they had connections of their own."""
    command = [sys.executable, "-c", MANY_FORKS, server.grpc]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("scheme", SCHEMES)
def test_server_that_dies(scheme: str) -> None:
    with running_server() as server:
        address = getattr(server, scheme)
        simulator = revolute.connect(address)
        model = simulator.load_model("cartpole")
        trajectory = simulator.rollout(model, [0.0, 0.1], [0.0, 0.0], np.zeros((5, 1)))
        server.process.kill()
        server.process.wait()
        for call in (simulator.models, lambda: trajectory.backward(np.ones((6, 2)))):
            with pytest.raises(revolute.UnavailableError, match=f"^{address}: expected a revolute server"):
                call()
        assert trajectory.qpos.shape == (6, 2)
        simulator.close()


LONG_STEP = """
import signal, sys, revolute
# undoes what a shell does to the processes that it starts in the background
signal.signal(signal.SIGINT, signal.default_int_handler)
simulator = revolute.connect(*sys.argv[1:])
session = simulator.session(simulator.load_model("laikago"), 4)
print("ready", flush=True)
session.step([0.0] * 12, steps=10**8)
"""


@pytest.mark.parametrize("transport", ["in process", *SCHEMES])
def test_interrupt(transport: str, request: pytest.FixtureRequest) -> None:
    address = [] if transport == "in process" else [getattr(request.getfixturevalue("server"), transport)]
    command = [sys.executable, "-c", LONG_STEP, *address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stderr
        if process.stdout.readline() != "ready\n":
            raise AssertionError(process.stderr.read())
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")
