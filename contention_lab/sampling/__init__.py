"""Samples of programs that nobody instrumented: what each thread was doing, and a trace of it.

Where they come from is not its business: a process that is being looked at, or a file of another
profiler. What is in a sample is a stack and, at best, a state; which lock a thread waits for and
who has it are conclusions, and the trace says so.
"""
