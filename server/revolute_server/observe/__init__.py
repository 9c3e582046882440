"""What can be seen of a running server: metrics, traces, logs, and incidents."""
