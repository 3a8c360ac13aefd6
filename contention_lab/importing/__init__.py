"""Samples that other profilers have written, read from their text: one file per format.

It finds stacks, threads, times and weights; what a thread was doing, and for whom it waited, is
`sampling`'s to tell.
"""
