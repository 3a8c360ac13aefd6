"""Traces in the formats of other tools: one file per format, all of them in `registry.py`.

A format takes a trace and a sink of bytes and draws no conclusions. Names that come from the
program are made visible (`report.visible_text`) where a reader would show them as they are.
"""
