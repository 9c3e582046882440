"""`revolute demo`: the main job, end to end, on a real robot."""

from .command import add_arguments, main, run

__all__ = ["add_arguments", "main", "run"]
