"""The scenarios that ship with contention-lab: one TOML file each.

`contention_lab.sweep` reads them as data of this package; nothing is imported from here.
"""
