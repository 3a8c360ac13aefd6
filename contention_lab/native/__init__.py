"""The C core: clock, locks, recorder, stacks. The hot path, and nothing else.

`_core` is built from `module.c`, which includes one header per concept. Import it through
`contention_lab.locks` and `contention_lab.capture`; nothing else of Python is here.
"""
