"""Versions of this package and of the ones it stands on, as the installer recorded them."""

from __future__ import annotations

from importlib import metadata
from typing import Final

import contention_lab

REQUIREMENTS: Final = (
    *("numpy", "scipy", "matplotlib", "jinja2", "rich", "click", "threadpoolctl", "py-spy"),
)


def package_version() -> str:
    """Return the version of contention-lab."""
    return contention_lab.__version__


def installed_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, None where there is none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
