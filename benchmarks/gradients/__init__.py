"""The figures of docs/gradients.md: `python -m benchmarks.gradients` prints them as Markdown."""
