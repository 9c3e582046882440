"""A model that travelled as a document is the model that was loaded."""

from __future__ import annotations

import numpy as np
import pytest

import revolute_engine
from revolute_engine.model_document import from_document, to_document
from revolute_server.store.codec import decode, encode

FRAMES = """<mujoco>
<worldbody><body name="b"><joint name="x" type="slide"/><geom name="g" size=".1"/></body>
<geom size="1 1 1" type="box"/></worldbody>
<keyframe><key name="z" qpos="1"/><key name="a" qpos="2"/></keyframe>
</mujoco>"""


@pytest.mark.parametrize("source", ["laikago", "ant", FRAMES])
def test_a_model_is_the_same_on_the_other_side(source: str) -> None:
    model = revolute_engine.load_model(source, warn=False)
    sent = decode([b"".join(encode(to_document(model)))])
    other = from_document(sent, model.source_text, model.assets)
    assert other.info() == model.info()
    assert other.warnings == model.warnings and list(other.keyframes) == list(model.keyframes)
    assert other.native.bytes == model.native.bytes > 0
    for name, value in model.arrays.items():
        assert type(other.arrays[name]) is type(value), name
        np.testing.assert_array_equal(other.arrays[name], value)
        assert isinstance(value, int | float) or not other.arrays[name].flags.writeable
    engine, ctrl = revolute_engine.Engine(threads=1), np.zeros((5, model.nu))
    ours, theirs = (engine.rollout(which, which.qpos0, which.qvel0, ctrl) for which in (model, other))
    np.testing.assert_array_equal(ours.final_qpos, theirs.final_qpos)
