"""Report of `check_gradient`: one verdict per input.

Engine and server return the same report. `to_dict` converts it to plain JSON types, `from_dict` back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

RIGHT, WRONG, ZERO = "right", "wrong", "zero"
RIGHT_BY_STEPS = "right step by step"
SWITCHING, SENSITIVE = "at a switching point", "sensitive"
"""Verdicts on an input. All but "wrong" pass.

* right: differences over the whole trajectory agree with the gradient.
* right step by step: differences of each single step agree with its derivative, and backward equals forward;
  over the whole trajectory differences are not exact enough to tell.
* wrong: the gradient is not the derivative of the simulated motion.
* zero: the input has no influence on the states.
* at a switching point: the derivative has two sides here, and the gradient is one of them.
* sensitive: wherever differences can tell, the gradient is right; but the motion amplifies perturbations, and
  with them rounding, too much for differences over all of it.
"""


@dataclass(frozen=True)
class EntryCheck:
    """One entry of a gradient beside its central difference.

    Attributes:
        name: the entry in words, e.g. "ctrl[137, FL_hip]".
        gradient: d loss / d entry.
        difference: d loss / d entry by central differences.
        error: their distance, relative to the largest compared entry.
    """

    name: str
    gradient: float
    difference: float
    error: float


@dataclass(frozen=True)
class InputCheck:
    """Result for one input.

    Attributes:
        name: the input: "qpos", "qvel", "ctrl" or a model parameter.
        verdict: "right", "right step by step", "wrong", "zero", "at a switching point" or "sensitive".
        reason: reason for the verdict, one sentence.
        error: largest relative error of directional derivatives against the plateau of differences.
        dot_error: largest relative error between backward and forward derivative.
        step: step size at the plateau, relative to the input's scale; None without a plateau.
        gradients: directional derivatives from the gradient, one per direction.
        differences: directional derivatives from central differences, one per direction.
        switching_steps: the first few steps at which left and right derivative differ.
        worst: the entry with the largest error; None if no entry was compared.
    """

    name: str
    verdict: str
    reason: str
    error: float
    dot_error: float
    step: float | None
    gradients: tuple[float, ...]
    differences: tuple[float, ...]
    switching_steps: tuple[int, ...] = ()
    worst: EntryCheck | None = None

    @property
    def passed(self) -> bool:
        """Whether the verdict is not "wrong"."""
        return self.verdict != WRONG


@dataclass(frozen=True)
class GradientReport:
    """Verdicts on the gradients of one trajectory; made by `check_gradient`.

    Attributes:
        model: name of the model.
        steps: length of the trajectory.
        directions: random directions per input.
        seed: seed of the random directions, cotangents and defaults.
        tolerance: largest relative error that passes.
        growth: factor by which a small perturbation of the start grows along the trajectory; velocities are
            multiplied by the timestep.
        inputs: one entry per input, in the order checked.
    """

    model: str
    steps: int
    directions: int
    seed: int
    tolerance: float
    growth: float
    inputs: tuple[InputCheck, ...]

    @property
    def passed(self) -> bool:
        """Whether no input is wrong."""
        return all(check.passed for check in self.inputs)

    @property
    def worst(self) -> str:
        """Name of the entry with the largest error, or of the input if no entry was compared.

        Inputs with verdict "wrong" rank first, then inputs with verdict "right".
        """
        check = max(self.inputs, key=_badness, default=None)
        if check is None:
            return ""
        return check.worst.name if check.worst else check.name

    def __getitem__(self, name: str) -> InputCheck:
        for check in self.inputs:
            if check.name == name:
                return check
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the report in plain JSON types, with `passed` and `worst`."""
        return {**asdict(self), "passed": self.passed, "worst": self.worst}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> GradientReport:
        """Build a report from the output of `to_dict`.

        Args:
            data: the report's values by name. None values may be missing; non-finite numbers may be strings,
                as in JSON.
        """
        return cls(
            model=data["model"],
            steps=data["steps"],
            directions=data["directions"],
            seed=data["seed"],
            tolerance=float(data["tolerance"]),
            growth=float(data["growth"]),
            inputs=tuple(_input_check(check) for check in data["inputs"]),
        )

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """Return the report as a table for a terminal."""
        header = ("input", "verdict", "error", "forward/backward", "step", "worst entry")
        rows = [header, *(_row(check) for check in self.inputs)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = [
            f"{self.model}: {self.steps} steps, {self.directions} directions, seed {self.seed}, "
            f"tolerance {self.tolerance:g}; a perturbation grows by {self.growth:.2g}",
            "",
        ]
        for row in rows:
            lines.append(
                "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
            )
        notes = [f"{check.name}: {check.reason}" for check in self.inputs if check.verdict != RIGHT]
        lines += ["", *notes] if notes else []
        worst = f"; worst: {self.worst}" if self.worst else ""
        lines += ["", f"{'passed' if self.passed else 'failed'}{worst}"]
        return "\n".join(lines)


def _badness(check: InputCheck) -> tuple[bool, bool, float]:
    """Return the sort key of `GradientReport.worst`."""
    by_entry = check.worst.error if check.worst else 0.0
    return not check.passed, check.verdict == RIGHT, max(by_entry, check.error)


def _input_check(data: Mapping[str, Any]) -> InputCheck:
    """Build an InputCheck from its dictionary."""
    step, worst = data.get("step"), data.get("worst")
    return InputCheck(
        name=data["name"],
        verdict=data["verdict"],
        reason=data["reason"],
        error=float(data["error"]),
        dot_error=float(data["dot_error"]),
        step=None if step is None else float(step),
        gradients=tuple(map(float, data["gradients"])),
        differences=tuple(map(float, data["differences"])),
        switching_steps=tuple(data["switching_steps"]),
        worst=None if worst is None else _entry_check(worst),
    )


def _entry_check(data: Mapping[str, Any]) -> EntryCheck:
    """Build an EntryCheck from its dictionary."""
    gradient, difference, error = (float(data[name]) for name in ("gradient", "difference", "error"))
    return EntryCheck(data["name"], gradient, difference, error)


def _row(check: InputCheck) -> tuple[str, ...]:
    """Return one row of the table."""
    zero = check.verdict == ZERO
    return (
        check.name,
        check.verdict,
        "" if zero else f"{check.error:.1e}",
        "" if zero else f"{check.dot_error:.1e}",
        f"{check.step:.0e}" if check.step is not None and not zero else "",
        f"{check.worst.name} {check.worst.error:.1e}" if check.worst else "",
    )
