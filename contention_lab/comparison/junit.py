"""Outcomes of conditions as JUnit XML, which build servers read: a test case for each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contention_lab.comparison.condition import Outcome


def junit_xml(outcomes: Sequence[Outcome], suite: str) -> str:
    """Return the document.

    Parameters
    ----------
    outcomes
        What became of the conditions.
    suite
        The name of the suite.
    """
    failures = sum(outcome.failed for outcome in outcomes)
    counts = {"tests": str(len(outcomes)), "failures": str(failures), "errors": "0"}
    root = ElementTree.Element("testsuites")
    cases = ElementTree.SubElement(root, "testsuite", {"name": suite, **counts})
    for outcome in outcomes:
        case = ElementTree.SubElement(cases, "testcase", classname=suite, name=outcome.condition)
        if outcome.failed:
            ElementTree.SubElement(case, "failure", message=outcome.reason)
        else:
            ElementTree.SubElement(case, "system-out").text = outcome.reason
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
