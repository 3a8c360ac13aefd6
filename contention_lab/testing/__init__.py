"""Contention as something that tests can limit: what `pytest_plugin` is made of.

A test has its part of a recording (`recorded_part.py`), limits that it must keep (`limits.py`), and
figures it can ask for (`contention.py`). Nothing here knows of pytest.
"""
