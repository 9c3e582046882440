"""The figures of benchmarks/results/gradients.md, as Markdown: `python -m benchmarks.gradients`."""
