"""Controllers that act inside a rollout, as data. A request can carry them.

Each row of `ctrl` acts for `hold` steps, one period. With x the state at the start of period c,

    u_c = ctrl_c                                     without a controller
    u_c = ctrl_c + K_c (x - x_ref_c)                 Feedback; the difference is in tangent coordinates
    u_c = ctrl_c + scale network(observations)       MLP

The inputs of `STEP_INPUTS` act in the same steps: forces that are applied to the model, and where its mocap
bodies are.

The engine evaluates them (engine/include/revolute/controllers).
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from .arrays import Float64Array, as_float64, finite_float64, given_float64
from .errors import ArgumentError
from .measures import MEASURES, measure_of

OBSERVATIONS = ("qpos", "qvel", "previous_ctrl", "goal")
"""What a policy may observe besides `MEASURES`, in the order of the engine's enum ObservationKind."""

STEP_INPUTS = ("qfrc_applied", "xfrc_applied", "mocap_pos", "mocap_quat")
"""Inputs of a step besides state, control and parameters, by the names of MuJoCo's mjData. Each has rows like
`ctrl`: [size], [time, size] or [batch, time, size], where an axis of length 1, and one that is left out,
repeats.

* `qfrc_applied` [nv]: generalized forces besides those of actuators.
* `xfrc_applied` [nbody, 6]: of each body a force in N and a torque in N m, in world axes at its mass centre.
* `mocap_pos` [nmocap, 3] in m and `mocap_quat` [nmocap, 4] (w x y z, normalised when read): where mocap
  bodies are. They have no velocity. Without, they are where the file has them.
"""

MOCAP_INPUTS = ("mocap_pos", "mocap_quat")
"""Those that a session keeps from step to step."""

Activation = Literal["tanh", "elu", "relu"]
ACTIVATIONS = get_args(Activation)
"""In the order of the engine's enum Activation."""


@dataclass(frozen=True, eq=False)
class Feedback:
    """Linear feedback: u = ctrl + gain [qpos (-) qpos_ref; qvel - qvel_ref].

    The state is that at the start of a period. The difference has 2 nv entries in the order of MuJoCo's
    `mjd_transitionFD`; that of two quaternions is a rotation vector in the moving frame. Activations of
    actuators, which stand behind the velocities in qvel, count among the entries.

    Args:
        gain: K, [nu, 2 nv], [time, nu, 2 nv] with one K per row of `ctrl`, or [batch, time, nu, 2 nv]. An
            axis of length 1, and one that is left out, repeats.
        qpos: reference configuration, [nq], [time, nq] or [batch, time, nq].
        qvel: reference velocity, [nv], [time, nv] or [batch, time, nv].

    Raises:
        ArgumentError: an array has numbers that are not finite.
    """

    gain: Any
    qpos: Any
    qvel: Any

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            object.__setattr__(self, name, _finite(f"feedback.{name}", getattr(self, name)))

    def to_dict(self) -> dict[str, Any]:
        """Return the feedback as a document (message Feedback)."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


class MLP:
    """A small network that acts as the policy: u = ctrl + scale y(observations).

    Hidden layers are f(W x + b), the last one is W x + b. `ctrl` is added, e.g. as exploration noise.

    Args:
        weights: W, b of each layer in order, W [outputs, inputs] and b [outputs]; `list(net.parameters())` of
            a `torch.nn.Sequential` of Linear layers has this form.
        observe: what the network sees, in this order. "qpos": coordinates of hinges and slides, and for each
            free or ball joint its position (if free) and the first two columns of its rotation matrix, which
            has no sign to choose. "qvel". "previous_ctrl": the controls of the period before, zero at first.
            "goal": the array `goal`. Also what a loss `Term` measures, by the names of `Simulator.kinematics`
            (`measures.MEASURES`): "site_pos" of all sites or "site_pos:hand" of one,
            "site_pos:hand@body:torso" in the frame of the torso, "body_linvel:torso", "subtree_com:torso",
            "sensor" of all sensors or "sensor:imu"; of orientations "body_mat", nine numbers, since a
            quaternion has a sign to choose. Sensors of forces and accelerations read the instant before the
            network answers: with the state at the start of the period, the forces applied in it, and the
            controls of the period before.
        activation: f, "tanh", "elu" or "relu".
        scale: factor of the output, a number or [nu].
        squash: whether the output goes through tanh before it is scaled.
        goal: numbers that the network also sees, such as a phase or a target: [n], [time, n] with a row per
            row of `ctrl`, or [batch, time, n]. An axis of length 1, and one that is left out, repeats.

    Attributes:
        weights: all weights in one vector, in the order of the arguments. Gradients have this form;
            `arrays(vector)` splits one.
        sizes: number of inputs, of each hidden layer's outputs, and of outputs.

    Raises:
        ArgumentError: the weights do not form layers, a name is unknown, or a number is not finite.
    """

    def __init__(
        self,
        weights: Sequence[Any],
        observe: Sequence[str],
        *,
        activation: Activation = "tanh",
        scale: Any = 1.0,
        squash: bool = False,
        goal: Any = None,
    ) -> None:
        arrays = _layers(weights)
        self.weights: Float64Array = np.concatenate([array.ravel() for array in arrays])
        self.sizes = (arrays[0].shape[1], *(len(bias) for bias in arrays[1::2]))
        self._configure(observe, activation, scale, squash, goal)

    def _configure(
        self, observe: Sequence[str], activation: Activation, scale: Any, squash: bool, goal: Any
    ) -> None:
        """Check and set everything besides the weights."""
        names = [observe] if isinstance(observe, str) else list(observe)
        for name in names:
            _check_observation(name)
        if not names or len(set(names)) != len(names):
            raise ArgumentError.expected("policy.observe", "names, each once", repr(names)[:60])
        _check_word("policy.activation", activation, ACTIVATIONS)
        if not isinstance(squash, bool):
            raise ArgumentError.expected("policy.squash", "True or False", repr(squash)[:60])
        if ("goal" in names) != (goal is not None):
            got = "none" if goal is None else "one that is not observed"
            raise ArgumentError.expected("policy.goal", "an array exactly if observe has 'goal'", got)
        self.weights.setflags(write=False)
        self.observe = tuple(names)
        self.activation = activation
        self.scale = _finite("policy.scale", scale)
        self.squash = squash
        self.goal = None if goal is None else _finite("policy.goal", goal)

    def arrays(self, vector: Any) -> list[Float64Array]:
        """Split a vector [..., n] in the order of `weights`, e.g. a gradient, into W, b of each layer."""
        values = as_float64("vector", vector)
        if values.shape[-1:] != self.weights.shape:
            raise ArgumentError.expected(
                "vector", f"shape [..., {self.weights.size}]", list(values.shape), advice="see MLP.weights"
            )
        parts, place = [], 0
        for inputs, outputs in zip(self.sizes, self.sizes[1:], strict=False):
            for shape in ((outputs, inputs), (outputs,)):
                size = int(np.prod(shape))
                parts.append(values[..., place : place + size].reshape(values.shape[:-1] + shape))
                place += size
        return parts

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as a document (message Policy)."""
        return {
            "weights": self.weights,
            "sizes": list(self.sizes),
            "observe": list(self.observe),
            "activation": self.activation,
            "scale": self.scale,
            "squash": self.squash,
            "goal": self.goal,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> MLP:
        """Build a policy from the output of `to_dict`, or from the same data with lists for arrays.

        Raises:
            ArgumentError: as the constructor.
        """
        policy = cls.__new__(cls)
        policy.weights = _finite("policy.weights", document["weights"])
        policy.sizes = tuple(document["sizes"])
        layers = list(zip(policy.sizes, policy.sizes[1:], strict=False))
        if not layers or min(policy.sizes) < 0:
            raise ArgumentError.expected("policy.sizes", "two or more sizes from 0", list(policy.sizes))
        count = sum((inputs + 1) * outputs for inputs, outputs in layers)
        if policy.weights.shape != (count,):
            raise ArgumentError.expected(
                "policy.weights",
                f"shape [{count}] for layers of sizes {list(policy.sizes)}",
                list(policy.weights.shape),
            )
        scale = document.get("scale")
        policy._configure(
            document["observe"],
            document.get("activation") or "tanh",
            1.0 if scale is None else scale,
            document.get("squash", False),
            document.get("goal"),
        )
        return policy


@dataclass(frozen=True, eq=False)
class Control:
    """How the rows of `ctrl` act.

    Args:
        hold: steps that each row acts for, at least 1.
        feedback: adds feedback; None for none.
        policy: adds the output of a network; None for none.
        qfrc_applied: as of `STEP_INPUTS`; None for none.
        xfrc_applied: as of `STEP_INPUTS`; None for none.
        mocap_pos: as of `STEP_INPUTS`; None for the file's.
        mocap_quat: as of `STEP_INPUTS`; None for the file's.
        previous_ctrl: controls before the first row, for a policy that observes them: [batch, nu] or [nu];
            None for zero. It is not part of a request.

    Raises:
        ArgumentError: a value has the wrong type, or both a feedback and a policy are given.
    """

    hold: int = 1
    feedback: Feedback | None = None
    policy: MLP | None = None
    qfrc_applied: Any = None
    xfrc_applied: Any = None
    mocap_pos: Any = None
    mocap_quat: Any = None
    previous_ctrl: Any = None

    def __post_init__(self) -> None:
        hold = self.hold
        if not isinstance(hold, numbers.Integral) or isinstance(hold, bool) or not 1 <= hold < 2**31:
            raise ArgumentError.expected("hold", "a number of steps, at least 1", repr(hold)[:60])
        object.__setattr__(self, "hold", int(hold))
        for name, kind in (("feedback", Feedback), ("policy", MLP)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise ArgumentError.expected(name, f"a revolute.{kind.__name__}", type(value).__name__)
        if self.feedback is not None and self.policy is not None:
            raise ArgumentError.expected("policy", "none beside feedback", "both", advice="give one of them")
        for name in STEP_INPUTS:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _finite(name, value))

    @property
    def has_controller(self) -> bool:
        """Whether a controller adds to `ctrl`."""
        return self.feedback is not None or self.policy is not None

    @property
    def is_plain(self) -> bool:
        """Whether each row of `ctrl` acts as it is for one step, and nothing else does."""
        return self.hold == 1 and not self.has_controller and not self.inputs

    @cached_property
    def inputs(self) -> Mapping[str, Float64Array]:
        """Those of `STEP_INPUTS` that are given, by name."""
        return {name: array for name in STEP_INPUTS if (array := getattr(self, name)) is not None}

    @property
    def as_applied(self) -> Control:
        """How the controls as they acted, with the controller's part, act again."""
        return replace(self, feedback=None, policy=None)

    @property
    def arrays(self) -> Mapping[str, Float64Array]:
        """The arrays that gradients may be taken by, by their names in `wrt`."""
        if self is PLAIN:
            return _NO_ARRAYS
        if self.feedback is not None:
            arrays = self.feedback.to_dict().items()
            return {**{f"feedback.{name}": array for name, array in arrays}, **self.inputs}
        if self.policy is None:
            return self.inputs
        goal = {} if self.policy.goal is None else {"policy.goal": self.policy.goal}
        return {"policy.weights": self.policy.weights, **goal, **self.inputs}

    def with_array(self, name: str, value: Any) -> Control:
        """Return a copy with another array in place of one of `arrays`.

        Raises:
            ArgumentError: the array has numbers that are not finite.
        """
        group, _, field = name.partition(".")
        if not field:
            return replace(self, **{name: value})
        if group == "feedback":
            return replace(self, feedback=replace(self.feedback, **{field: value}))  # type: ignore[type-var]
        assert self.policy is not None
        return replace(self, policy=MLP.from_dict({**self.policy.to_dict(), field: value}))

    def to_dict(self) -> dict[str, Any]:
        """Return fields of a request, without those that have their defaults."""
        if self is PLAIN:
            return {}
        found: dict[str, Any] = {} if self.hold == 1 else {"hold": self.hold}
        if self.feedback is not None:
            found["feedback"] = self.feedback.to_dict()
        if self.policy is not None:
            found["policy"] = self.policy.to_dict()
        return {**found, **self.inputs}

    @classmethod
    def of(
        cls,
        hold: Any = 1,
        feedback: Any = None,
        policy: Any = None,
        qfrc_applied: Any = None,
        xfrc_applied: Any = None,
        mocap_pos: Any = None,
        mocap_quat: Any = None,
    ) -> Control:
        """Return a Control, PLAIN if all arguments have their defaults, which most calls do.

        Arguments and errors are those of the constructor.
        """
        has_controller = feedback is not None or policy is not None
        has_forces = qfrc_applied is not None or xfrc_applied is not None
        has_poses = mocap_pos is not None or mocap_quat is not None
        if type(hold) is int and hold == 1 and not (has_controller or has_forces or has_poses):
            return PLAIN
        return cls(hold, feedback, policy, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Control:
        """Build from the output of `to_dict`; other fields are ignored.

        Raises:
            ArgumentError: a field is wrong.
        """
        hold, feedback, policy = (document.get(name) for name in ("hold", "feedback", "policy"))
        return cls.of(
            1 if hold is None else hold,
            None if feedback is None else Feedback(**feedback),
            None if policy is None else MLP.from_dict(policy),
            **{name: document.get(name) for name in STEP_INPUTS},
        )


_NO_ARRAYS: dict[str, Float64Array] = {}

PLAIN = Control()
"""Each row of `ctrl` acts unchanged for one step, and nothing else acts."""


def given_inputs(
    qfrc_applied: Any, xfrc_applied: Any, mocap_pos: Any, mocap_quat: Any
) -> dict[str, Float64Array]:
    """Return those of `STEP_INPUTS` that are not None as float64 arrays, by name."""
    if qfrc_applied is None and xfrc_applied is None and mocap_pos is None and mocap_quat is None:
        return {}
    given = qfrc_applied, xfrc_applied, mocap_pos, mocap_quat
    return given_float64(dict(zip(STEP_INPUTS, given, strict=True)))


def arrays_of(
    params: Mapping[str, Any] | None,
    feedback: Feedback | Mapping[str, Any] | None,
    policy: Mapping[str, Any],
    *step_inputs: Any,
) -> dict[str, Any]:
    """Return arguments of a rollout, unchanged, by their names in `wrt`; the inverse of `arguments_of`.

    Args:
        params: model parameters by name.
        feedback: the feedback, or its arguments by name.
        policy: arrays of the policy by their names in `wrt`.
        step_inputs: the inputs of `STEP_INPUTS`, in order; None is left out.

    Raises:
        ArgumentError: the feedback is neither.
    """
    parts = feedback.to_dict() if isinstance(feedback, Feedback) else {} if feedback is None else feedback
    fields = Feedback.__dataclass_fields__
    if not isinstance(parts, Mapping) or (parts and parts.keys() != fields.keys()):
        got = ", ".join(map(str, parts)) if isinstance(parts, Mapping) else type(parts).__name__
        raise ArgumentError.expected("feedback", f"a Feedback, or {', '.join(fields)} by name", got)
    return {
        **(params or {}),
        **{f"feedback.{name}": value for name, value in parts.items()},
        **policy,
        **{name: each for name, each in zip(STEP_INPUTS, step_inputs, strict=True) if each is not None},
    }


def arguments_of(arrays: Mapping[str, Any], policy: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return arguments of a rollout from arrays by their names in `wrt`.

    Names that are no controller's are those of parameters.

    Args:
        arrays: arrays by name, e.g. "feedback.gain", "policy.weights", "qfrc_applied", "body_mass".
        policy: the policy as a document, whose arrays are replaced; None for none.

    Returns:
        `params`, and those of `feedback`, `policy` and `STEP_INPUTS` that there are.

    Raises:
        ArgumentError: as `Feedback` and `MLP`.
    """
    groups: dict[str, dict[str, Any]] = {"params": {}, "feedback": {}, "policy": {}}
    found: dict[str, Any] = {}
    for name, value in arrays.items():
        group, _, part = name.rpartition(".")
        if group in groups:
            groups[group][part] = value
        elif name in STEP_INPUTS:
            found[name] = value
        else:
            groups["params"][name] = value
    if groups["feedback"]:
        found["feedback"] = Feedback(**groups["feedback"])
    if policy is not None:
        found["policy"] = MLP.from_dict({**policy, **groups["policy"]})
    return {**found, "params": groups["params"]}


def _layers(weights: Sequence[Any]) -> list[Float64Array]:
    """Return W, b of each layer, checked."""
    arrays = [_finite(f"policy.weights.{place}", array) for place, array in enumerate(weights)]
    if not arrays or len(arrays) % 2:
        raise ArgumentError.expected("policy.weights", "W, b of each layer", f"{len(arrays)} arrays")
    inputs: int | None = None
    for place in range(0, len(arrays), 2):
        matrix, bias = arrays[place : place + 2]
        if matrix.ndim != 2 or (inputs is not None and matrix.shape[1] != inputs):
            raise ArgumentError.expected(
                f"policy.weights.{place}", f"shape [outputs, {inputs or 'inputs'}]", list(matrix.shape)
            )
        if bias.shape != matrix.shape[:1]:
            raise ArgumentError.expected(
                f"policy.weights.{place + 1}", f"shape [{len(matrix)}]", list(bias.shape)
            )
        inputs = len(matrix)
    return arrays


def _finite(argument: str, value: Any) -> Float64Array:
    array = finite_float64(argument, value)
    array.setflags(write=False)
    return array


def _check_observation(name: Any) -> None:
    if name in OBSERVATIONS:
        return
    if not isinstance(name, str) or re.split("[:@]", name)[0] not in MEASURES:
        raise ArgumentError.expected(
            "policy.observe",
            f"names among {', '.join(OBSERVATIONS)} and what is measured",
            repr(name)[:60],
            advice=f"measured are {', '.join(MEASURES)}, also of one element, such as 'site_pos:hand'",
        )
    measure = measure_of("policy.observe", name).measure
    if measure.probe == "quaternion":
        raise ArgumentError.expected(
            "policy.observe",
            "an orientation without a sign to choose",
            repr(name)[:60],
            advice=f"observe {measure.kind}_mat",
        )


def _check_word(argument: str, word: Any, allowed: Sequence[str]) -> None:
    if not isinstance(word, str) or word not in allowed:
        raise ArgumentError.expected(argument, f"one of {', '.join(allowed)}", repr(word)[:60])
