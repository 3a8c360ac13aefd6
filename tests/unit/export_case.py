"""A small trace with known answers, for the tests of the formats."""

from __future__ import annotations

from contention_lab.trace import ChunkKind, Trace, TraceBuilder, parse

HOSTILE = '</script>"; \x00\u202e\n,bytes'


def case() -> Trace:
    """Return two threads that wait for each other's holds of two locks, times in microseconds.

    `reader` waits 90 for `catalog` (of which it spins 60), which `writer` holds for 100 from 0 on;
    `writer` waits 20 for the lock with the hostile name, which `reader` holds from 300 to 350.
    Meanwhile `writer` is blocked in `recv`, and waits 5 for the GIL.
    """
    builder = TraceBuilder(meta={"program": "/srv/shop.py", "package_version": "1.2"}, pid=77)
    main = builder.add_frame("main", "/srv/shop.py", 90, first_line=80)
    get = builder.add_frame("Catalog.get", "/srv/catalog.py", 20, first_line=18)
    refresh = builder.add_frame("Catalog.refresh", "/srv/catalog.py", 40, first_line=35)
    made = builder.add_frame("Catalog.__init__", "/srv/catalog.py", 15, first_line=12)
    odd = builder.add_frame(HOSTILE, f"/srv/{HOSTILE}.py", 3)
    reading, refreshing = builder.add_stack(get, main), builder.add_stack(refresh, main)
    strange = builder.add_stack(odd, main)
    catalog = builder.add_lock("threading.Lock", name="catalog", site=made)
    hostile = builder.add_lock("threading.Lock", name=HOSTILE)
    reader = builder.add_thread("reader", native_id=101, is_main=True)
    writer = builder.add_thread("writer", native_id=102)
    us = 1_000
    builder.add_hold(catalog, writer, 0, 100 * us, site=refresh, stack=refreshing, waiters=1)
    builder.add_wait(
        catalog,
        reader,
        10 * us,
        100 * us,
        stack=reading,
        spin_ns=60 * us,
        holder=writer,
        holder_stack=refreshing,
    )
    builder.add_hold(catalog, reader, 100 * us, 120 * us, site=get, stack=reading)
    builder.add_hold(hostile, reader, 300 * us, 350 * us, site=odd, stack=strange, waiters=1)
    builder.add_wait(hostile, writer, 330 * us, 350 * us, stack=strange, holder=reader)
    builder.add_layer_event(
        ChunkKind.BLOCKING,
        start_ns=20 * us,
        end_ns=80 * us,
        thread=writer,
        lock=catalog,
        stack=refreshing,
        call=3,
    )
    builder.add_layer_event(
        ChunkKind.GIL_WAITS, start_ns=400 * us, end_ns=405 * us, thread=writer, stack=refreshing
    )
    return parse(builder.bytes())
