"""``assay view``."""

from __future__ import annotations

import signal
import webbrowser
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from assay.cli.common import interrupted


def view(
    folders: Annotated[tuple[Path, ...], Positional, tyro.conf.arg(metavar="FOLDER")] = (Path("runs"),),
    port: int = 0,
    browser: bool = False,
) -> int:
    """Look at runs, rollouts, evaluations and comparisons in a browser, also while they go on, until Ctrl-C.

    assay view runs/

    assay view runs/grpo runs/dapo results/aime --port 8100 --browser

    Nothing is changed, nothing is asked of the network, and only this machine can reach it, with the link that is
    printed.

    Example: assay view runs

    Args:
        folders: of runs, evaluations or comparisons, audits or records of the lab; what is in them is found.
        port: 0 takes a free one.
        browser: open the link.
    """
    from assay.view.places import Places
    from assay.view.server import ViewServer

    server = ViewServer(Places(folders), port)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        print(f"look at {server.link}\nCtrl-C stops", flush=True)
        if browser:
            webbrowser.open(server.link)
        server.run()
    except KeyboardInterrupt:
        print("stopped", flush=True)
    finally:
        server.close()
    return 0
