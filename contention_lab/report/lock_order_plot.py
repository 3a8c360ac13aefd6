"""The lock order as a picture: locks in a column, a curve for each order.

Curves to the right lead down, from a lock to one that was taken under it; those to the left lead
back up, which they do only where orders contradict each other. A ring so looks like one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from contention_lab.report.plot_pair import PlotPair

if TYPE_CHECKING:
    from contention_lab.report.lock_order_view import LockOrderView, OrderView

WIDE: Final = 640
NARROW: Final = 340
ROW: Final = 44
"""Height of a lock."""
TOP: Final = 22
CHARACTER_PX: Final = 7.1
DOT: Final = 4.5
LEAST_ROOM: Final = 26
"""On the left, where nothing leads back up."""


def lock_order_plots(view: LockOrderView, identifier: str) -> PlotPair | None:
    """Draw the picture for wide and narrow windows; None where no lock was taken under another."""
    if not view.nodes:
        return None
    return PlotPair(
        lock_order_plot(view, f"{identifier}-wide", WIDE, "wide"),
        lock_order_plot(view, f"{identifier}-narrow", NARROW, "narrow"),
    )


def lock_order_plot(view: LockOrderView, identifier: str, width: int, css: str) -> Markup:
    """Draw the picture.

    Parameters
    ----------
    view
        With at least one order.
    identifier
        Unique on the page.
    width
        In pixels at its natural size.
    css
        Class of the picture.
    """
    drawn = [order for order in view.orders if order.held >= 0 and order.taken >= 0]
    farthest = max((abs(order.held - order.taken) for order in drawn), default=0)
    room = 0.2 * width
    step = min(24.0, (room - 14) / max(1, farthest))
    goes_back = any(order.taken < order.held for order in drawn)
    spine = 16 + farthest * step if goes_back else LEAST_ROOM
    text = spine + 22 + farthest * step
    height = TOP * 2 + ROW * max(0, len(view.nodes) - 1)
    letters = int((width - text - 6) / CHARACTER_PX)
    parts = [
        Markup('<title id="{0}-title">Lock order</title><desc id="{0}-desc">{1}</desc>').format(
            identifier, view.sentence
        )
    ]
    plain_first = sorted(drawn, key=lambda order: order.in_ring)
    parts += [_curve(order, spine, step) for order in plain_first]
    for at, node in enumerate(view.nodes):
        y = TOP + ROW * at
        ringed = any(order.in_ring and at in (order.held, order.taken) for order in drawn)
        parts.append(_lock(node.title, node.what, spine, text, y, letters, ringed=ringed))
    return Markup(
        '<svg class="plot order {css}" viewBox="0 0 {width} {height}" role="img" '
        'aria-labelledby="{id}-title {id}-desc">{parts}</svg>'
    ).format(css=css, width=width, height=height, id=identifier, parts=Markup("").join(parts))


def _lock(
    title: str, what: str, spine: float, text: float, y: float, letters: int, *, ringed: bool
) -> Markup:
    return Markup(
        '<path class="s-line" d="M{x0:.1f} {y}H{x1:.1f}" stroke-dasharray="1.5 3"/>'
        '<circle class="f-{hue}" cx="{x:.1f}" cy="{y}" r="{dot}"/>'
        '<text class="f-ink" x="{text:.1f}" y="{up}" font-size="13" font-weight="600">'
        "{title}</text>"
        '<text class="f-muted" x="{text:.1f}" y="{down}" font-size="11">{what}</text>'
    ).format(
        x0=spine + DOT + 2, x1=text - 4, x=spine, y=y, dot=DOT, text=text, up=y + 1, down=y + 14,
        hue="spin" if ringed else "ink",
        title=cut(title, letters), what=cut(what, letters * 6 // 5),
    )  # fmt: skip


def _curve(order: OrderView, spine: float, step: float) -> Markup:
    """Return the curve of an order, with its arrowhead."""
    begin, end = TOP + ROW * order.held, TOP + ROW * order.taken
    hue, width = ("spin", 2) if order.in_ring else ("faint", 1.2)
    if order.held == order.taken:  # another lock of the same place
        path = f"M{spine - DOT:.1f} {begin - 3}c-16 -10 -16 16 0 6"
        head = _arrow(spine - DOT, end + 3, side=-1)
    else:
        side = 1 if order.taken > order.held else -1
        bend = spine + side * (DOT + 4 / 3 * step * abs(order.taken - order.held))
        foot = spine + side * (DOT + 1)
        gap = 3 * side  # what leaves a lock and what reaches it do not meet
        path = f"M{foot:.1f} {begin + gap}C{bend:.1f} {begin + gap} {bend:.1f} {end - gap} "
        path += f"{foot + side * 5:.1f} {end - gap}"
        head = _arrow(foot, end - gap, side=side)
    return Markup('<path class="s-{0}" fill="none" stroke-width="{1}" d="{2}"/>').format(
        hue, width, path
    ) + Markup('<path class="f-{0}" d="{1}"/>').format(hue, head)


def _arrow(x: float, y: float, *, side: int) -> str:
    return f"M{x:.1f} {y}l{8 * side} -4v8z"


def cut(text: str, letters: int) -> str:
    """Return a text with at most so many letters."""
    return text if len(text) <= letters else f"{text[: max(1, letters - 1)]}…"
