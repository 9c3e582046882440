"""Where the system starts no more threads, the engine computes with those that it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

COMPUTE = """
import resource
import numpy as np
import revolute_engine

model = revolute_engine.load_model("ant", warn=False)
ctrl = np.random.default_rng(0).normal(size=(64, 40, model.nu))
qpos, qvel = np.tile(model.qpos0, (64, 1)), np.zeros((64, model.nv))
loss = np.ones((64, 41, model.nq))


def computed(threads):
    engine = revolute_engine.Engine(threads=threads)
    rollout = engine.rollout(model, qpos, qvel, ctrl)
    gradient = engine.backward(model, rollout, loss)
    return rollout.final_qpos, *gradient.arrays.values()


alone = computed(1)
used = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize"))
# less than the stack of a thread
resource.setrlimit(resource.RLIMIT_AS, (1024 * used + 4 * 1024**2, -1))
import threading

try:
    threading.Thread(target=print).start()
except RuntimeError:
    pass
else:
    raise SystemExit("the limit does nothing")
for ours, theirs in zip(alone, computed(8), strict=True):
    np.testing.assert_array_equal(ours, theirs)
print("equal")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads are bounded in other ways")
def test_threads_that_do_not_start_are_done_without() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", COMPUTE], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stdout == "equal\n", ended.stderr
