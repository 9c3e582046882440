"""Autodiff tools on the work that revolute's adjoint does: the engine's own step on other scalars."""
