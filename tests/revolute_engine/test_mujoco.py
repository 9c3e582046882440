"""MuJoCo is imported without its renderer where that is broken; what it warns of becomes the model's."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import mujoco
import pytest

from revolute_engine import load_model
from revolute_engine._mujoco import collected_warnings

INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
NO_RANGE = f"""<robot name="arm"><link name="base">{INERTIAL}</link><link name="hand">{INERTIAL}</link>
<joint name="wrist" type="revolute"><parent link="base"/><child link="hand"/><limit lower="0.5" upper="0.5"/>
</joint></robot>"""
DEPRECATED = """<mujoco><compiler settotalmass="3"/>
<worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (NO_RANGE, "joint 'wrist': lower and upper limit are both 0.5; it moves without limits"),
        (DEPRECATED, "compiler attribute 'settotalmass' is deprecated"),
    ],
)
def test_what_mujoco_ignores_is_noted(text: str, warning: str, folder: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        models = [load_model(text, name="robot") for _ in range(2)]
    for model in models:
        (noted,) = model.warnings
        assert noted.startswith(warning) and noted in model.notes
    # two loads from one line are one warning, as always in Python
    assert [str(one.message) for one in caught] == [f"robot: {models[0].warnings[0]}"]
    assert caught[0].filename == __file__
    assert list(folder.iterdir()) == []


def test_warnings_as_errors_are_not_mujocos(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_model(DEPRECATED, warn=False).warnings
        with pytest.raises(UserWarning, match="XML text: compiler attribute"):
            load_model(DEPRECATED)


def test_handlers_are_given_back_and_other_threads_keep_theirs() -> None:
    heard: list[str] = []
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
    )

    def break_down() -> None:
        data = mujoco.MjData(model)
        data.qvel[0] = 1e300
        mujoco.mj_step(model, data)

    before, show = mujoco.get_mju_user_warning(), warnings.showwarning
    mujoco.set_mju_user_warning(heard.append)
    try:
        with collected_warnings() as texts:
            break_down()
            assert len(texts) == 1 and not heard
            other = threading.Thread(target=break_down)
            other.start()
            other.join()
            assert len(texts) == 1 and len(heard) == 1
        break_down()
        assert len(texts) == 1 and len(heard) == 2
        assert warnings.showwarning is show
    finally:
        mujoco.set_mju_user_warning(before)


@pytest.mark.parametrize("renderer", ["osmesa", "egl", "no such thing"])
def test_any_renderer_may_be_asked_for(renderer: str) -> None:
    code = (
        "import os, revolute_engine\n"
        "print(revolute_engine.load_model('pendulum1').name, os.environ['MUJOCO_GL'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MUJOCO_GL": renderer},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"pendulum1 {renderer}\n", done.stderr
    if renderer == "no such thing":
        assert "MUJOCO_GL='no such thing': MuJoCo cannot draw in this process" in done.stderr
