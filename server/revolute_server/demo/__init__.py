"""`revolute demo`: simulates, differentiates and optimises the motion of a real robot over the network."""

from .command import add_arguments, main, run

__all__ = ["add_arguments", "main", "run"]
