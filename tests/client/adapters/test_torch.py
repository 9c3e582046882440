"""revolute.torch against finite differences, against the plain API, and over every transport."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
import torch

import revolute
import revolute.torch as adapter

BATCH, STEPS = 3, 5
FREE = """
<mujoco><worldbody><body pos="0 0 9"><freejoint/><geom size="0.1 0.2 0.3" type="box"/></body></worldbody>
<actuator/></mujoco>
"""


def inputs(model: revolute.ModelHandle) -> list[torch.Tensor]:
    """Return random start states and controls that need a gradient."""
    torch.manual_seed(0)
    shapes = ((BATCH, model.nq), (BATCH, model.nv), (BATCH, STEPS, model.nu))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def gravity(model: revolute.ModelHandle) -> torch.Tensor:
    """Return the model's gravity as a tensor that needs a gradient."""
    return torch.tensor(np.array(model.params["gravity"]), requires_grad=True)


def test_gradcheck_passes_for_states_controls_and_parameters(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")

    def states(qpos: Any, qvel: Any, ctrl: Any, pull: Any) -> Any:
        return adapter.rollout(in_process, model, qpos, qvel, ctrl, {"gravity": pull})

    assert torch.autograd.gradcheck(states, (*inputs(model), gravity(model)))


def test_parameters_by_names_of_elements_have_gradients(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    qpos, qvel, ctrl = (tensor.detach() for tensor in inputs(model))
    pole = model.body_names[-1]

    def states(mass: Any, centre: Any) -> Any:
        named = {"body_mass": {pole: mass}, "body_ipos": {pole: centre}}
        return adapter.rollout(in_process, model, qpos, qvel, ctrl, named)

    masses = torch.linspace(0.5, 1.0, BATCH, dtype=torch.float64, requires_grad=True)
    centre = torch.tensor([0.0, 0.0, 0.4], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(states, (masses, centre))
    expected = in_process.rollout(
        model, qpos, qvel, ctrl, params={"body_mass": {pole: masses}, "body_ipos": {pole: centre}}
    )
    np.testing.assert_array_equal(states(masses, centre)[0].detach(), expected.qpos)


def test_gradcheck_passes_for_the_final_state_of_one_environment(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    qpos, qvel, ctrl = (tensor[0].detach().requires_grad_() for tensor in inputs(model))

    def final(qpos: Any, ctrl: Any) -> Any:
        options = {"states": "final", "checkpoints": "slots=2"}
        return adapter.rollout(in_process, model, qpos, qvel.detach(), ctrl, **options)

    assert torch.autograd.gradcheck(final, (qpos, ctrl))


def test_it_is_rollout_and_backward_on_every_transport(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    found_qpos, found_qvel = adapter.rollout(simulator, model, qpos, qvel, ctrl)
    (found_qpos[:, -1].square().sum() + found_qvel.sin().sum()).backward()
    trajectory = simulator.rollout(model, qpos, qvel, ctrl)
    np.testing.assert_array_equal(found_qpos.detach(), trajectory.qpos)
    qpos_bar = np.zeros(trajectory.qpos.shape)
    qpos_bar[:, -1] = 2 * trajectory.qpos[:, -1]
    gradient = trajectory.backward(qpos_bar, torch.cos(found_qvel.detach()))
    for name, tensor in (("qpos", qpos), ("qvel", qvel), ("ctrl", ctrl)):
        np.testing.assert_array_equal(tensor.grad, gradient[name])


def test_results_have_the_type_of_the_inputs(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    qpos, qvel, ctrl = (tensor.detach().float().requires_grad_() for tensor in inputs(model))
    found, _ = adapter.rollout(in_process, model, qpos, qvel, ctrl)
    found.sum().backward()
    assert found.dtype == torch.float32 and ctrl.grad is not None and ctrl.grad.dtype == torch.float32
    plain, _ = adapter.rollout(in_process, model, np.zeros(2), [0.0, 0.0], np.zeros((4, 1)))
    assert plain.dtype == torch.float64 and not plain.requires_grad


def test_a_start_that_environments_share_gets_the_sum(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    shared = qpos[0].detach().clone().requires_grad_()
    adapter.rollout(in_process, model, shared, qvel.detach(), ctrl.detach())[0].sum().backward()
    each = qpos[0].detach().expand(BATCH, -1).clone().requires_grad_()
    adapter.rollout(in_process, model, each, qvel.detach(), ctrl.detach())[0].sum().backward()
    assert shared.grad is not None and each.grad is not None
    torch.testing.assert_close(shared.grad, each.grad.sum(0), rtol=1e-14, atol=0)


def test_a_free_body_without_actuators(in_process: revolute.Simulator) -> None:
    model = in_process.load_model(FREE)
    qvel = torch.randn(model.nv, dtype=torch.float64, requires_grad=True)
    qpos = torch.tensor(np.array(model.qpos0))

    def velocities(qvel: Any) -> Any:
        return adapter.rollout(in_process, model, qpos, qvel, torch.zeros(4, 0))[1]

    assert torch.autograd.gradcheck(velocities, (qvel,))


def test_the_trajectory_is_freed_with_the_graph(over_grpc: revolute.Simulator) -> None:
    model = over_grpc.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    states = adapter.rollout(over_grpc, model, qpos, qvel, ctrl)
    kept = states[0].grad_fn.trajectory.id  # type: ignore[union-attr]
    over_grpc.trajectory(model, kept)
    del states
    gc.collect()
    # trajectories without an owner are deleted along with the next rollout
    over_grpc.rollout(model, qpos, qvel, ctrl)
    with pytest.raises(revolute.NotFoundError):
        over_grpc.trajectory(model, kept)


def test_nothing_is_kept_where_nothing_needs_a_gradient(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    qpos, qvel, ctrl = (tensor.detach() for tensor in inputs(model))
    found, _ = adapter.rollout(in_process, model, qpos, qvel, ctrl)
    assert found.grad_fn is None and found.shape == (BATCH, STEPS + 1, model.nq)


def test_a_second_derivative_is_refused(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    found, _ = adapter.rollout(in_process, model, qpos, qvel, ctrl)
    (first,) = torch.autograd.grad(found.square().sum(), ctrl, create_graph=True)
    with pytest.raises(RuntimeError, match="expected a first derivative"):
        first.sum().backward()


def test_results_changed_in_place_are_refused(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    found, _ = adapter.rollout(in_process, model, *inputs(model))
    with torch.no_grad():
        found += 1.0
    with pytest.raises(RuntimeError, match="inplace"):
        found.sum().backward()


def test_a_torch_function_is_a_loss(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    cost = adapter.loss(lambda qpos, qvel: qpos[:, -1].square().sum(-1) + qvel.sin().mean((1, 2)))
    value, gradient = simulator.value_and_gradient(model, qpos, qvel, ctrl, cost, wrt=("ctrl", "gravity"))
    pull = gravity(model)
    found = adapter.rollout(simulator, model, qpos, qvel, ctrl, {"gravity": pull})
    expected = found[0][:, -1].square().sum(-1) + found[1].sin().mean((1, 2))
    expected.sum().backward()
    np.testing.assert_allclose(value, expected.detach(), rtol=1e-15)
    np.testing.assert_allclose(gradient.ctrl, ctrl.grad, rtol=1e-13)
    np.testing.assert_allclose(gradient.gravity, pull.grad, rtol=1e-12, atol=1e-15)


def test_a_loss_of_one_number(in_process: revolute.Simulator) -> None:
    model = in_process.load_model("cartpole")
    value, gradient = in_process.value_and_gradient(
        model, *inputs(model), adapter.loss(lambda qpos, qvel: qpos[:, -1].mean())
    )
    assert isinstance(value, float) and np.abs(gradient.ctrl).max() > 0


def test_gradcheck_passes_for_feedback_and_applied_forces(simulator: revolute.Simulator) -> None:
    model = simulator.load_model("cartpole")
    qpos, qvel, ctrl = inputs(model)
    gain = torch.randn(STEPS, model.nu, 2 * model.nv, dtype=torch.float64, requires_grad=True)
    target = torch.randn(model.nq, dtype=torch.float64, requires_grad=True)
    force = torch.randn(model.nv, dtype=torch.float64, requires_grad=True)

    def states(gain: Any, target: Any, ctrl: Any, force: Any) -> Any:
        feedback = {"gain": gain, "qpos": target, "qvel": np.zeros(model.nv)}
        options = {"feedback": feedback, "qfrc_applied": force, "hold": 2}
        return adapter.rollout(simulator, model, qpos.detach(), qvel.detach(), ctrl, **options)

    assert torch.autograd.gradcheck(states, (gain, target, ctrl, force))


@pytest.mark.parametrize("activation", [torch.nn.Tanh, torch.nn.ELU])
def test_a_policy_has_the_gradient_of_the_loop_in_torch(
    simulator: revolute.Simulator, activation: Any
) -> None:
    model = simulator.load_model("cartpole")
    qpos, qvel, ctrl = (tensor.detach() for tensor in inputs(model))
    net = torch.nn.Sequential(
        torch.nn.Linear(model.nq + model.nv, 5), activation(), torch.nn.Linear(5, model.nu)
    )
    net = net.double()
    policy = adapter.Policy(net, observe=["qpos", "qvel"], scale=3.0)
    found = adapter.rollout(simulator, model, qpos, qvel, ctrl, policy=policy, states="final")
    found[0].square().sum().backward()
    gradients = [each.grad.clone() for each in net.parameters()]  # type: ignore[union-attr]
    net.zero_grad()
    for step in range(STEPS):
        push = ctrl[:, step] + 3.0 * net(torch.cat([qpos, qvel], 1))
        qpos, qvel = adapter.rollout(simulator, model, qpos, qvel, push[:, None], states="final")
    np.testing.assert_allclose(found[0].detach(), qpos.detach(), rtol=1e-12)
    qpos.square().sum().backward()
    for gradient, each in zip(gradients, net.parameters(), strict=True):
        torch.testing.assert_close(gradient, each.grad, rtol=1e-10, atol=1e-13)


def test_a_network_that_the_engine_cannot_evaluate(in_process: revolute.Simulator) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Sigmoid(), torch.nn.Linear(3, 1))
    with pytest.raises(
        revolute.ArgumentError, match=r"net: expected Linear layers .* got Linear Sigmoid Linear"
    ):
        adapter.Policy(net, observe=["qpos"])


def test_arguments_of_another_kind(
    in_process: revolute.Simulator, of_another_kind: tuple[dict[str, Any], str]
) -> None:
    model, (arguments, message) = in_process.load_model("cartpole"), of_another_kind
    with pytest.raises(revolute.ArgumentError, match=message):
        adapter.rollout(in_process, model, model.qpos0, model.qvel0, np.zeros((3, 1)), **arguments)


def test_a_policy_of_another_kind(in_process: revolute.Simulator) -> None:
    model, policy = in_process.load_model("cartpole"), [np.zeros((1, 4))]
    message = r"policy: expected a revolute\.torch\.Policy .*, got list; write .*Policy\(net"
    with pytest.raises(revolute.ArgumentError, match=message):
        adapter.rollout(in_process, model, model.qpos0, model.qvel0, np.zeros((3, 1)), policy=policy)
