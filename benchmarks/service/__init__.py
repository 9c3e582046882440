"""Benchmarks of the service: long stress tests and performance measurements."""
