"""Case D02: memory of the gradient grows like a checkpoint scheme, not like a full tape.

Peaks of a process of its own, above what it held before the call, as Linux counts them; the inputs exist
before.
"""

import json
import os
import subprocess
import sys

import pytest

from testbed.case_files import case_file, expected

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="reads peaks of memory from /proc"
)

BYTES_PER_STEP = expected("D02")["bytes_per_step_state"]
SHORT, MIDDLE, LONG = expected("D02")["N"]
NOISE = 400_000
"""Bytes by which peaks differ between equal calls: pages of the allocator and of first calls."""

_PROGRAM = """
import json, sys
import numpy as np
import revolute

def memory(name):
    with open("/proc/self/status") as lines:
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))

def peak(call, steps):
    time, joint = np.arange(steps)[:, None], np.arange(10)[None]
    ctrl = 0.1 * np.sin(0.05 * time + joint)
    open("/proc/self/clear_refs", "w").write("5")
    before = memory("VmRSS")
    found = call(ctrl)
    return memory("VmHWM") - before

def rollout(ctrl, **options):
    with sim.rollout(model, qpos, qvel, ctrl, **options) as trajectory:
        return trajectory.final_qpos

def gradient(ctrl, **options):
    loss = revolute.Term("qpos")
    return sim.value_and_gradient(model, qpos, qvel, ctrl, loss, wrt=["ctrl"], **options)

sim = revolute.connect(threads=1)
model = sim.load_model(sys.argv[1])
qpos, qvel = 0.3 * (-1.0) ** np.arange(10), np.zeros(10)
calls = {
    "forward": lambda ctrl: rollout(ctrl, checkpoints="none"),
    "every": gradient,
    "slots": lambda ctrl: gradient(ctrl, checkpoints="slots=32"),
}
for call in calls.values():
    call(np.zeros((50, 10)))
print(json.dumps({name: [peak(call, int(n)) for n in sys.argv[2:]] for name, call in calls.items()}))
"""


@pytest.fixture(scope="module")
def peaks() -> dict[str, list[int]]:
    """Return the peaks at the three lengths, in bytes."""
    lengths = [str(SHORT), str(MIDDLE), str(LONG)]
    command = [sys.executable, "-c", _PROGRAM, str(case_file("D02", "ten_link.xml")), *lengths]
    # arrays are given back to the system when they are freed, so that each call shows its own, and come in
    # small pages: NumPy asks for those of 2 MB otherwise, which are there as a whole when one byte is
    environment = os.environ | {
        "MALLOC_MMAP_THRESHOLD_": "65536",
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "NUMPY_MADVISE_HUGEPAGE": "0",
    }
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    return json.loads(done.stdout)


def test_forward_with_the_final_state_is_flat(peaks: dict[str, list[int]]) -> None:
    assert max(peaks["forward"]) < NOISE


def test_the_default_holds_states_and_the_gradient_grows_in_their_place(peaks: dict[str, list[int]]) -> None:
    # a state that had its turn is given up, so that the gradient, half as large, takes nothing on top
    assert 0.95 * BYTES_PER_STEP * LONG < peaks["every"][2] < BYTES_PER_STEP * LONG + NOISE


def test_slots_take_next_to_nothing_beside_the_gradient(peaks: dict[str, list[int]]) -> None:
    for steps, found in zip((SHORT, MIDDLE, LONG), peaks["slots"], strict=True):
        by_ctrl = BYTES_PER_STEP / 2 * steps
        assert 0.95 * by_ctrl < found < by_ctrl + 32 * BYTES_PER_STEP + NOISE
