"""Ways to reach a server: gRPC and HTTP. Each is loaded when it is first used."""
