"""The engine's rules in plain Python: the oracle of the one in C, event for event.

One file here per header of `native/`, with the same names and the same order of steps, so that the
two can be read side by side. It is some fifty times slower, and used by tests and where the
extension was not built.
"""
