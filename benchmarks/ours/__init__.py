"""revolute by itself: time and memory over batch, threads, instruction set, robots, chain length and more."""
