"""One script per peer, run by the interpreter of that peer's environment: `python -m … FOLDER STEPS REPEATS`.

A script needs numpy and its peer only. It prints one row as JSON per line as soon as the row is known, so
that a later failure or the end of its time leaves the rows before.
"""
