"""Workers in other processes that wait for something to do are not said to fight for a lock."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAMS = {
    "queue": """
        import multiprocessing, sys, time

        def work(jobs, results):
            count = 0
            while jobs.get() is not None:
                count += 1
            results.put(count)

        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            jobs, results = context.Queue(), context.SimpleQueue()
            workers = [context.Process(target=work, args=(jobs, results)) for _ in range(3)]
            for worker in workers:
                worker.start()
            for number in range(30):
                time.sleep(0.03)
                jobs.put(number)
            for _ in workers:
                jobs.put(None)
            print(sum(results.get() for _ in workers))
            for worker in workers:
                worker.join()
    """,
    "pools": """
        import multiprocessing, sys, time
        from concurrent.futures import ProcessPoolExecutor

        if __name__ == "__main__":
            context = multiprocessing.get_context(sys.argv[1])
            with ProcessPoolExecutor(3, mp_context=context) as pool:
                futures = []
                for number in range(15):
                    time.sleep(0.03)
                    futures.append(pool.submit(abs, -1))
                count = sum(future.result() for future in futures)
            with context.Pool(3) as pool:
                futures = []
                for number in range(15):
                    time.sleep(0.03)
                    futures.append(pool.apply_async(abs, (-1,)))
                print(count + sum(future.get() for future in futures))
                pool.close()
                pool.join()
    """,
}


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_lock_is_accused_of_a_slow_source(name: str, method: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAMS[name]))
    command = [sys.executable, "-m", "contention_lab"]
    recorded = subprocess.run(
        [*command, "record", "-q", "--subprocesses", "-o", "it.clt", "program.py", method],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert recorded.stdout == "30\n"
    traces = sorted(path.name for path in tmp_path.glob("it*.clt"))
    assert len(traces) >= 4

    said = subprocess.run(
        [*command, "diagnose", "--json", *traces],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    findings = json.loads(said.stdout)["findings"]
    assert [one["kind"] for one in findings if one["lock"] is not None] == []
