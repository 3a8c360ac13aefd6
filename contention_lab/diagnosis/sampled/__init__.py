"""What samples of a program that nobody instrumented say about it.

A trace of samples has no counts and no exact times, and who held a lock is inferred. So its
findings are fewer than those of a recording, they state shares with intervals, and a lock is only
accused where it was seen who has it. What cannot be told is said to be so.
"""
