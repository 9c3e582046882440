"""`revolute demo`: the main job, end to end, on a real robot."""
