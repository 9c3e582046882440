"""Observability of a running server: metrics, traces, logs, and incidents."""
