"""Network transports: gRPC and HTTP. Each is imported on first use."""
