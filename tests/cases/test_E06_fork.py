"""Case E06: a process that used a client forks; its children and itself go on, or are told at once."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from testbed.case_files import case_file, expected
from testbed.server_process import ServerProcess

CHILDREN = 4
SECONDS = 20.0
PROGRAM = """
import multiprocessing, sys, time
import numpy as np
import revolute

address, path, children = sys.argv[1], sys.argv[2], int(sys.argv[3])

def run(simulator):
    with simulator.session(simulator.load_model(path), batch=1) as session:
        state = session.step(np.ones(1), steps=1000)
        return f"{state.qvel[0, 0]:.9f} {state.qpos[0, 0]:.9f}"

def child(simulator, queue):
    began = time.monotonic()
    try:
        inherited = run(simulator)
    except revolute.UnavailableError as error:
        inherited = str(error)
    queue.put(("inherited", time.monotonic() - began, inherited))
    with revolute.connect(address, timeout=10) as own:
        queue.put(("new", 0.0, run(own)))
        session = own.session(own.load_model("laikago"), batch=64)
        began = time.monotonic()
        try:
            own._link.transport.call(
                "Step", {"session_id": session.id, "ctrl": np.zeros(12), "steps": 10**9}, timeout=0.3
            )
            late = "no timeout"
        except revolute.DeadlineError:
            late = "timeout"
        queue.put(("timeout", time.monotonic() - began, late))

context = multiprocessing.get_context("fork")
with revolute.connect(address) as simulator:
    with simulator.session(simulator.load_model(path), batch=1) as kept:
        kept.step(np.ones(1), steps=500)
        queue = context.Queue()
        processes = [context.Process(target=child, args=(simulator, queue)) for _ in range(children)]
        for process in processes:
            process.start()
        # the parent goes on meanwhile
        state = kept.step(np.ones(1), steps=500)
        for _ in range(3 * children):
            print(*queue.get(timeout=20), sep="|")
        for process in processes:
            process.join(20)
            assert process.exitcode == 0
        print("parent", 0.0, f"{state.qvel[0, 0]:.9f} {state.qpos[0, 0]:.9f}", sep="|")
        assert kept.state().step_count == 1000
"""


@pytest.mark.parametrize("scheme", ["grpc", "http"])
def test_children_and_parent_go_on(scheme: str, server: ServerProcess) -> None:
    numbers = expected("E06")
    answer = f"{numbers['v']:.9f} {numbers['x']:.9f}"
    began = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-c", PROGRAM),
            *(getattr(server, scheme), str(case_file("E06", "cart.xml")), str(CHILDREN)),
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < SECONDS
    lines = [line.split("|") for line in done.stdout.splitlines()]
    found = {kind: [(float(seconds), text) for k, seconds, text in lines if k == kind] for kind, *_ in lines}
    assert [text for _, text in found["parent"]] == [answer]
    assert [text for _, text in found["new"]] == CHILDREN * [answer]
    for seconds, text in found["inherited"]:
        assert text == answer or "got a fork of it; call revolute.connect()" in text
        assert seconds < 2.0
    assert [text for _, text in found["timeout"]] == CHILDREN * ["timeout"]
