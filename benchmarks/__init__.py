"""Measurements, side by side with MuJoCo in the same run: `make bench`."""
