"""Benchmarks, measured together with MuJoCo in the same run: `make bench`."""
