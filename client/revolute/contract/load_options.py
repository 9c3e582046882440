"""The options of `load_model`: one table for client, command line, server, engine and docs.

Each field of `LoadOptions` is one option with its type, default, bounds and one line of text. To add an
option, add a field here, its type to `GivenOptions`, and a field to the protocol's message ModelOptions.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar, get_args

_Function = TypeVar("_Function", bound=Callable[..., Any])

Base = Literal["fixed", "free"]
ContactModel = Literal["hard", "mujoco"]
Cone = Literal["pyramidal", "elliptic"]
Solver = Literal["pgs", "exact"]

_LINE = 110
"""Width of a docstring's lines."""


@dataclass(frozen=True)
class Option:
    """One option.

    Attributes:
        kind: type of its values.
        default: value when it is not given; None leaves the decision to the file.
        summary: what it does, in one line.
        choices: of a str: the values it takes, in the order of the engine's numbers.
        unit: of a number: what it counts, for messages.
        least: of a number: smallest value.
        most: of a number: largest value.
        above: of a number: `least` itself is refused.
        only: the files that it is for; empty for all.
        contact_model: the only contact model that reads it; empty for all.
        unset: what a default of None comes to.
        edits_file: `load_model` changes the file by it; the compiled engine does not read it.
    """

    kind: type
    default: Any
    summary: str
    choices: tuple[str, ...] = ()
    unit: str = "a number"
    least: float = 0.0
    most: float = math.inf
    above: bool = False
    only: str = ""
    contact_model: str = ""
    unset: str = "the file's"
    edits_file: bool = False

    @property
    def expected(self) -> str:
        """The values that it takes, for messages."""
        if self.kind is bool:
            return "True or False"
        if self.kind is str:
            words = [*map(repr, self.choices), *(["None"] if self.default is None else [])]
            return f"{', '.join(words[:-1])} or {words[-1]}"
        if self.kind is int:
            return f"an integer from {self.least:g} to {self.most:.0f}"
        if self.most < math.inf:
            return f"{self.unit} from {self.least:g} to {self.most:g}"
        return f"{self.unit} {'>' if self.above else '>='} {self.least:g}"

    @property
    def default_text(self) -> str:
        """The default, for documentation."""
        return self.unset if self.default is None else repr(self.default).replace("'", '"')

    @property
    def text(self) -> str:
        """What it is for and what it does, in one line."""
        only = f'contact_model="{self.contact_model}"' if self.contact_model else self.only
        return f"{only} only: {self.summary}" if only else self.summary


def _option(kind: type, default: Any, summary: str, **details: Any) -> Any:
    """Return a field of `LoadOptions`."""
    return dataclasses.field(default=default, metadata={"option": Option(kind, default, summary, **details)})


@dataclass(frozen=True)
class LoadOptions:
    """How a model is loaded and simulated."""

    base: str | None = _option(
        str,
        None,
        '"fixed" welds the base to the world, "free" gives it a free joint',
        choices=get_args(Base),
        only="URDF",
        unset='"fixed"',
        edits_file=True,
    )
    ground: bool = _option(
        bool, False, "add the plane z = 0 with friction 1, which every shape meets", edits_file=True
    )
    fuse_fixed: bool = _option(
        bool, False, "merge bodies that fixed joints hold together", only="URDF", edits_file=True
    )
    timestep: float | None = _option(float, None, "length of a step in seconds", unit="seconds", above=True)
    contact_model: str = _option(
        str,
        "mujoco",
        "\"mujoco\", MuJoCo's soft constraints with the file's solref, solimp, cone and integrator, or "
        '"hard", impulses that keep shapes apart',
        choices=get_args(ContactModel),
    )
    cone: str | None = _option(
        str,
        None,
        'friction cone, "pyramidal" or "elliptic"',
        choices=get_args(Cone),
        contact_model="mujoco",
    )
    solver: str = _option(
        str,
        "pgs",
        '"pgs", a fixed number of sweeps of projected Gauss-Seidel, or "exact", to convergence, for stacks '
        "and large ratios of masses",
        choices=get_args(Solver),
        contact_model="hard",
    )
    iterations: int = _option(
        int, 50, 'sweeps of "pgs" per step', least=1, most=100_000, contact_model="hard"
    )
    contact: bool = _option(bool, True, "simulate contacts")
    limits: bool = _option(bool, True, "simulate joint limits")
    dry_friction: bool = _option(bool, True, "simulate dry friction of joints (frictionloss)")
    erp: float = _option(
        float,
        0.2,
        "share of a violation that is repaired: of equalities per step, of penetrations per 2.5 ms",
        most=1.0,
        contact_model="hard",
    )
    cfm: float = _option(
        float, 0.0, "softness added to the diagonal of the contact system", contact_model="hard"
    )
    restitution: float = _option(
        float, 0.0, "coefficient of restitution of all contacts", most=1.0, contact_model="hard"
    )
    margin: float = _option(
        float,
        0.01,
        "distance in metres below which shapes are watched for contact",
        unit="metres",
        contact_model="hard",
    )


class GivenOptions(TypedDict, total=False):
    """Keyword arguments of `load_model`, for editors and type checkers; None stands for the default."""

    base: Base | None
    ground: bool | None
    fuse_fixed: bool | None
    timestep: float | None
    contact_model: ContactModel | None
    cone: Cone | None
    solver: Solver | None
    iterations: int | None
    contact: bool | None
    limits: bool | None
    dry_friction: bool | None
    erp: float | None
    cfm: float | None
    restitution: float | None
    margin: float | None


OPTIONS: dict[str, Option] = {
    field.name: field.metadata["option"] for field in dataclasses.fields(LoadOptions)
}
"""All options by name."""


def spell_out_options(function: _Function) -> _Function:
    """Show each option in the signature and the docstring of a function that takes `**options`."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind != each.VAR_KEYWORD]
    options = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in dataclasses.fields(LoadOptions)
    ]
    first = [each for each in own if each.kind != each.KEYWORD_ONLY]
    last = [each for each in own if each.kind == each.KEYWORD_ONLY]
    function.__signature__ = signature.replace(parameters=[*first, *options, *last])  # type: ignore[attr-defined]
    lines = (function.__doc__ or "").splitlines()
    function.__doc__ = "\n".join(
        part for line in lines for part in (_described(line) if "**options:" in line else [line])
    )
    return function


def _described(line: str) -> list[str]:
    """Return the options as lines of a docstring, indented as `line` is."""
    indent = line[: -len(line.lstrip())]
    return [
        part
        for name, option in OPTIONS.items()
        for part in textwrap.wrap(
            f"{name}: {option.text}; default {option.default_text}.",
            _LINE,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
        )
    ]
