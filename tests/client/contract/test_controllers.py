"""Controls as data."""

from __future__ import annotations

import numpy as np

from revolute.contract.controllers import Control


def test_inputs_of_steps_are_arrays_that_share_no_memory_with_the_callers() -> None:
    force = np.ones(2)
    control = Control(qfrc_applied=force, mocap_pos=[[0, 0, 1]])
    force[:] = 7.0
    for found in (control.inputs, control.to_dict(), control.arrays):
        assert list(found) == ["qfrc_applied", "mocap_pos"]
        assert found["qfrc_applied"].tolist() == [1.0, 1.0]
        assert found["mocap_pos"].dtype == np.float64 and not found["mocap_pos"].flags.writeable
