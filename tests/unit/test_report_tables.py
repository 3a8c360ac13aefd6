"""What the tables of the page hold: sweep rows, who blocks whom, call trees, flame arrays."""

from __future__ import annotations

import numpy as np
import pytest
from report_case import flagship_trace, sweep_result

from contention_lab.analysis import BlockMatrix, FlameNode, lock_table, thread_time
from contention_lab.report.block_table import MOST_SITES, SHADES, block_table, shade
from contention_lab.report.call_tree import call_tree
from contention_lab.report.flame_kinds import FLAME_KINDS
from contention_lab.report.flame_table import FrameTable, fair_limit, flatten, tree_size
from contention_lab.report.lock_lines import SHOWN, lock_lines
from contention_lab.report.palette import STATES
from contention_lab.report.point_view import NOT_ONE_BY_ONE, point_view
from contention_lab.report.sweep_table import point_rows, variant_rows
from contention_lab.report.thread_bars import MOST_THREADS, thread_bars
from contention_lab.report.thread_time_plot import rounded_percent
from contention_lab.report.time_plot import curves, ideal_seconds
from contention_lab.trace import Frame, Level, TraceBuilder, parse


def node(name: str, self_ns: int, *children: FlameNode, file: str = "a.py") -> FlameNode:
    total = self_ns + sum(child.total_ns for child in children)
    return FlameNode(name, file, 1, self_ns, total, children)


def test_ideal_time_stops_falling_at_the_number_of_cores() -> None:
    curve = curves(sweep_result())[0]

    assert ideal_seconds(curve, np.array([1, 2, 8]), 2) == pytest.approx([0.56, 0.28, 0.28])
    assert ideal_seconds(curve, np.array([1, 2, 8]), None) == pytest.approx([0.56, 0.28, 0.07])


def test_point_rows_compare_with_the_fewest_threads_of_their_variant() -> None:
    rows = point_rows(sweep_result(("global-spinlock", "narrow-lock")))
    two = {row.variant: row for row in rows if row.threads == 2}

    assert two["global-spinlock"].speedup == pytest.approx(0.56 / 0.42)
    assert two["narrow-lock"].speedup == pytest.approx(0.54 / 0.29)
    assert two["narrow-lock"].tracing_cost == pytest.approx(0.02, abs=0.001)
    assert not two["narrow-lock"].tracing_visible


def test_a_point_without_figures_is_left_out() -> None:
    result = sweep_result()
    result["points"][0]["wall_s"] = None

    assert [row.threads for row in point_rows(result)] == [2, 4, 8, 16, 32]
    assert variant_rows(result)[0].best.threads == 2


def test_the_table_of_blocking_adds_up_and_puts_the_largest_first() -> None:
    frames = [Frame(f"f{i}", "a.py", i, i) for i in range(3)]
    matrix = BlockMatrix(
        (frames[0], frames[1]), (frames[2], None), np.array([[1.0, 2.0], [3.0, 6.0]])
    )

    table = block_table(matrix)

    assert [site.title for site in table.culprits] == ["hand-off, no recorded hold", "f2"]
    assert [site.title for site in table.victims] == ["f1", "f0"]
    assert [[cell.seconds for cell in row] for row in table.cells] == [[6.0, 2.0], [3.0, 1.0]]
    assert [cell.seconds for cell in table.culprit_sums] == [8.0, 4.0]
    assert sum(cell.share for row in table.cells for cell in row) == pytest.approx(1.0)
    assert table.cells[0][0].shade > table.cells[1][1].shade > 0


def test_many_sites_are_added_up_without_losing_time() -> None:
    count = MOST_SITES * 3
    frames = tuple(Frame(f"f{i}", "a.py", i, i) for i in range(count))
    matrix = BlockMatrix(frames, frames, np.ones((count, count)))

    table = block_table(matrix)

    assert len(table.culprits) == len(table.victims) == MOST_SITES
    assert table.culprits[-1].title == f"{count - MOST_SITES + 1} others"
    assert table.total_s == pytest.approx(count**2)


def test_the_largest_cell_has_the_darkest_shade_whatever_its_size() -> None:
    assert all(shade((0.1 * n) / (0.1 * n)) == SHADES - 1 for n in range(1, 50))
    assert shade(1e-12) == 1
    assert shade(0.0) == 0


def test_nothing_blocked_gives_an_empty_table() -> None:
    assert block_table(BlockMatrix((), (), np.zeros((0, 0)))).culprits == ()


def test_a_call_tree_joins_chains_and_leaves_out_the_small() -> None:
    chain = node("run", 0, node("step", 0, node("lock", 900, file="lock.py")))
    tree = call_tree(node("all", 0, chain, node("odd", 99), node("tiny", 1)), "victim")

    assert [(row.depth, row.text, row.place) for row in tree.rows] == [
        (0, "run › step › lock", "a.py:1"),
        (0, "odd", "made at a.py:1"),
    ]
    assert tree.left_out == 1


def test_flame_arrays_are_depth_first_with_the_heaviest_first() -> None:
    frames = FrameTable()
    root = node("all", 0, node("b", 10), node("a", 5, node("lock", 25)), file="")

    flat = flatten(root, "victim", frames, 100)

    names = [frames.rows[index][0] for index in flat["frame"]]
    assert names == ["all", "a", "lock", "b"]
    assert flat["depth"] == [0, 1, 2, 1]
    assert flat["total"] == [40, 30, 25, 10]
    assert [frames.rows[index][3] for index in flat["frame"]] == ["code", "code", "lock", "lock"]


def test_a_tree_beyond_the_budget_merges_its_smallest_frames_and_keeps_the_sum() -> None:
    leaves = [node(f"leaf{i}", i + 1) for i in range(1000)]
    root = node("all", 0, node("trunk", 0, *leaves))
    frames = FrameTable()

    flat = flatten(root, "victim", frames, 50)

    assert len(flat["frame"]) <= 51
    assert flat["merged"] == tree_size(root) - (len(flat["frame"]) - 1)
    leaves_total = sum(t for t, d in zip(flat["total"], flat["depth"], strict=True) if d == 2)
    assert leaves_total == root.total_ns
    assert any("smaller frames" in row[0] for row in frames.rows)


def test_the_budget_leaves_small_trees_whole() -> None:
    assert fair_limit([10, 20, 30], 1000) == 30
    assert fair_limit([10, 1000, 1000], 110) == 50
    assert fair_limit([], 100) == 0


def test_thread_bars_are_bounded_and_keep_the_sum() -> None:
    times = thread_time(flagship_trace(MOST_THREADS + 8, 1))

    bars = thread_bars(times)

    assert len(bars) == MOST_THREADS
    assert bars[-1].label == "9 more threads"
    assert sum(bar.total for bar in bars) == pytest.approx(sum(t.wall_s for t in times))
    assert set(bars[0].seconds) == {state.key for state in STATES}


def test_a_share_that_is_not_quite_all_is_not_called_all() -> None:
    assert rounded_percent(1.0) == "100 %"
    assert rounded_percent(0.997) == ">99 %"
    assert rounded_percent(0.5) == "50 %"


def test_locks_of_one_name_and_place_share_a_row() -> None:
    builder = TraceBuilder()
    site = builder.add_frame("Graph.__init__", "/srv/graph.py", 12)
    thread = builder.add_thread("worker")
    for number in range(3):
        lock = builder.add_lock("Mutex", site=site)
        builder.add_wait(lock, thread, 0, 1000 * (number + 1), park_ns=1000 * (number + 1))
    builder.add_wait(builder.add_lock("Mutex", name="other"), thread, 0, 500)

    lines = lock_lines(lock_table(parse(builder.bytes())))

    graphs, other = lines.rows
    assert (graphs.locks, graphs.contended, graphs.wait_max_s) == (3, 3, 3e-6)
    assert graphs.wait_s == pytest.approx(6e-6)
    assert graphs.wait_p50_s is None
    assert other.wait_p50_s == pytest.approx(5e-7)
    assert lines.wait_s == pytest.approx(6.5e-6)


def test_many_places_end_in_a_sum() -> None:
    builder = TraceBuilder()
    thread = builder.add_thread("worker")
    for number in range(SHOWN + 5):
        builder.add_wait(builder.add_lock(name=f"lock {number}"), thread, 0, 1000)

    lines = lock_lines(lock_table(parse(builder.bytes())))

    assert len(lines.rows) == SHOWN
    assert lines.others == 5
    assert lines.wait_s == pytest.approx((SHOWN + 5) * 1e-6)


def test_a_run_whose_waits_were_only_counted_is_not_said_to_have_none() -> None:
    builder = TraceBuilder(level=Level.COUNTERS)
    lock, thread = builder.add_lock(name="a"), builder.add_thread("worker")
    builder.add_counter(lock, thread, acquires=9, contended=3, wait_ns=5000)

    view = point_view("run-1", "1 thread", "v", 1, parse(builder.bytes()))

    assert [view.empty(kind) == NOT_ONE_BY_ONE for kind in FLAME_KINDS] == [
        True, True, True, False, True,
    ]  # fmt: skip
    assert view.waiting_s == pytest.approx(5e-6)


def test_both_views_of_waiting_have_the_same_total() -> None:
    view = point_view("run-1", "8 threads", "v", 8, flagship_trace(8))

    assert view.flames["victim"].total_ns == view.flames["culprit"].total_ns
    assert view.waiting_s == pytest.approx(view.blocks.total_s)
    assert view.blocks.culprits[0].title == "GlobalClient.backward"
