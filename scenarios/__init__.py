"""The scenarios that ship with contention-lab: one TOML file each, read by `contention_lab.sweep`."""
