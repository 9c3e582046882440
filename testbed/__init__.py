"""What tests and benchmarks share: scenes, robots, the files of the cases, and real servers to run against.

Tests and benchmarks import this folder, and it imports neither. So a benchmark never needs the tests, and
moving a test breaks no benchmark. Tests may also import a benchmark to run its short form.
"""
