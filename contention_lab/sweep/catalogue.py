"""Where scenarios are found: by name among those that ship with the package, or by file.

It reads no scenario but those asked for. The shipped ones are data of the package
`contention_lab.scenarios`, so they are found in a wheel, in an editable install and, where the
package was never installed, in the checkout it runs from.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import contention_lab
from contention_lab.sweep.errors import ScenarioError
from contention_lab.sweep.nearest import suggestion
from contention_lab.sweep.scenario import Scenario, read_scenario


def shipped_names() -> tuple[str, ...]:
    """Return the names of the scenarios that ship with the package, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def find_scenario(wanted: str) -> Scenario:
    """Return the scenario of that name, or in that file.

    Parameters
    ----------
    wanted
        A name of `shipped_names`, or the path of a TOML file: anything that ends in `.toml` or has
        a folder in it.

    Raises
    ------
    ScenarioError
        There is none, or it is not valid.
    """
    as_path = Path(wanted)
    if as_path.suffix == ".toml" or len(as_path.parts) > 1:
        return read_scenario(as_path)
    names = shipped_names()
    if wanted not in names:
        raise ScenarioError(
            f"no scenario {wanted!r}{suggestion(wanted, names)} (list: contention-lab list)"
        )
    return read_scenario(_folder() / f"{wanted}.toml")


def _folder() -> Path:
    try:
        folder = resources.files("contention_lab.scenarios")
    except ModuleNotFoundError:
        return Path(contention_lab.__path__[0]).parent / "scenarios"
    if not isinstance(folder, Path):
        raise ScenarioError("the scenarios cannot be read from a zip file; install the package")
    return folder
