"""Instruction counts of a forward and a backward step, by valgrind: repeatable on a noisy machine."""
