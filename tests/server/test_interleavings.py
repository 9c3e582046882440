"""Random orders of rollout, backward, step, fork, evict, kill and restart, against the engine alone."""

import hypothesis

from testbed.interleavings import Interleavings

TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = hypothesis.settings(
    max_examples=6, stateful_step_count=25, deadline=None, derandomize=True
)
"""Short form; benchmarks/service/interleavings.py has 10,000."""
