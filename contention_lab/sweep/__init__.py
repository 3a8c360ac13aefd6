"""Scenarios, and the runner that measures them: every point in a fresh process.

It makes numbers and traces and hands them to the parts that explain them; it explains nothing
itself. `scenario` and `catalogue` say what is measured, `plan` in which order, `point` is the
process of one run, `runner` makes them all, and `conclusion` turns what they measured into
`result.json` and the report.
"""
