"""Draws the pictures of the site: python docs/pictures.py writes them beside the pages."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import revolute
import revolute.render

DOCS = Path(__file__).parent


def run_blocks(page: str) -> dict[str, Any]:
    """Run the Python blocks of a page up to its picture, and return their names."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec("".join(blocks), names)
    return names


def timeline() -> None:
    """Draw states, controls and cotangents of a rollout."""
    figure, axes = plt.subplots(figsize=(7.2, 2.6))
    for place, name in enumerate(("0", "1", "2", "T−1", "T")):
        x = 2.4 * place
        axes.text(
            x, 1, f"state {name}", ha="center", va="center", bbox={"boxstyle": "round", "fc": "#dbe9f6"}
        )
        axes.text(x, 0.25, f"cotangent {name}", ha="center", va="center", color="#2a7d3f", fontsize=8)
        if place == 4:
            break
        style = {"arrowstyle": "->", "color": "black", "linestyle": ":" if place == 2 else "-"}
        axes.annotate("", (x + 1.6, 1), (x + 0.7, 1), arrowprops=style)
        axes.annotate("", (x + 0.9, 0.25), (x + 1.5, 0.25), arrowprops={**style, "color": "#2a7d3f"})
        if place != 2:
            axes.text(x + 1.15, 1.75, f"ctrl {name}", ha="center", color="#8a4b08")
            axes.annotate(
                "", (x + 1.15, 1.08), (x + 1.15, 1.68), arrowprops={"arrowstyle": "->", "color": "#8a4b08"}
            )
    axes.set(xlim=(-0.9, 10.5), ylim=(-0.1, 2.1))
    axes.axis("off")
    figure.savefig(DOCS / "timeline.svg", bbox_inches="tight")


def arm() -> None:
    """Draw the arm of start.md as a film strip."""
    text = (DOCS / "start.md").read_text(encoding="utf-8")
    (robot,) = re.findall(r'```xml title="arm.urdf"\n(.*?)```', text, re.DOTALL)
    names = {"load": robot}
    code = "".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL)).replace('"arm.urdf"', "load")
    names["moment"] = revolute.render.Camera(azimuth=90, elevation=-5)
    exec(code.replace('"arm.png"', repr(str(DOCS / "arm.png")) + ", size=(180, 240), camera=moment"), names)


def hop() -> None:
    """Draw examples/hop.py as a film strip."""
    names: dict[str, Any] = {}
    exec((DOCS.parent / "examples/hop.py").read_text(encoding="utf-8"), names)
    beside = revolute.render.Camera(azimuth=120, elevation=-8, distance=2.2)
    names["trajectory"].render(DOCS / "hop.png", size=(220, 200), camera=beside)


def arrows() -> None:
    """Draw Laikago as it pushes itself up, with contact forces and the gradient of its height."""
    with revolute.connect() as sim:
        model = sim.load_model("laikago")
        pose = model.keyframes["home"]
        trajectory = sim.rollout(model, pose, model.qvel0, np.tile(0.7 * pose[7:], (61, 1)))
        bar = np.zeros((1, model.nq))
        bar[0, 2] = -1.0
        gradient = trajectory.backward(bar, times=[-1], wrt=["ctrl"])
        moment = revolute.render.Camera(azimuth=120, elevation=-8, distance=1.5)
        trajectory.render(
            DOCS / "arrows.png", frames=3, size=(320, 260), contacts=True, gradient=gradient, camera=moment
        )


def horizon() -> None:
    """Draw the growth of the gradient in exploding.md."""
    names = run_blocks("exploding.md")
    largest: Callable[..., float] = names["largest"]
    feedback = revolute.Feedback(names["gain"], names["upright"], names["rest"])
    steps = np.array([25, 50, 100, 150, 200, 300, 400])
    figure, axes = plt.subplots(figsize=(6.4, 3.0))
    cases: dict[str, dict[str, Any]] = {
        "no control": {},
        "no control, clip=10": {"clip": 10.0},
        "feedback": {"feedback": feedback},
    }
    for name, options in cases.items():
        axes.semilogy(steps * 0.01, [largest(count, **options) for count in steps], "o-", label=name)
    axes.set(xlabel="horizon in s", ylabel="largest derivative by a control")
    axes.legend()
    figure.savefig(DOCS / "horizon.svg", bbox_inches="tight")


if __name__ == "__main__":
    plt.rcParams["svg.hashsalt"] = "revolute"
    for draw in (timeline, hop, arm, arrows, horizon):
        draw()
