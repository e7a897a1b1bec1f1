"""Draw the pictures of docs/gallery.md from runs that were really made; ``make gallery`` makes them first.

Run as ``python docs/site/gallery.py RUNS FOLDER``. RUNS holds ``grpo``, a run with values of tokens, ``compare``, a
comparison, and ``diagnosis``. Chromium draws.
"""

from __future__ import annotations

import base64
import sys
import threading
from pathlib import Path

from assay.environments.screens.devtools import DevTools
from assay.view.places import Places
from assay.view.server import ViewServer

ROOT = Path(__file__).parents[2]
WIDTH = 1280
READY = """new Promise((done) => { const look = () => { const main = document.getElementById("main");
  main && !main.hasAttribute("aria-busy") && main.querySelector("h1") ? done(true) : requestAnimationFrame(look); };
  look(); })"""
LOADED = """new Promise((done) => { const look = () => {
  document.readyState === "complete" && document.body ? done(true) : setTimeout(look, 20); }; look(); })"""


def draw(runs: Path, folder: Path) -> None:
    """Write every picture as PNG."""
    server = ViewServer(Places([runs, ROOT / "lab"]))
    threading.Thread(target=server.run, daemon=True).start()
    step = min(path.name for path in (runs / "grpo" / "rollouts").glob("*.parquet"))
    views = {
        "runs": (f"view=runs&id={runs.name}/grpo&id={runs.name}/compare/runs/arithmetic/seed-0/dapo/run", 1500),
        "samples": (f"view=samples&source={runs.name}/grpo", 900),
        "tokens": (f"view=sample&source={runs.name}/grpo&file={step}&row=0&by=entropy", 900),
        "between": (f"view=between&a={runs.name}/grpo/before&b={runs.name}/grpo/after", 900),
        "lab": ("view=record&id=lab/S033", 900),
    }
    pages = {
        "report": (runs / "grpo" / "report.html", 1700),
        "compare": (runs / "compare" / "compare.html", 1500),
        "diagnosis": (runs / "diagnosis" / "diagnosis.html", 1700),
    }
    browser = DevTools(WIDTH, 900)
    try:
        browser.call("Page.navigate", url=f"{server.url}/?token={server.token}")
        browser.call("Runtime.evaluate", expression=READY, awaitPromise=True)
        for name, (link, height) in views.items():
            browser.call("Page.navigate", url=f"{server.url}/?{link}")
            _picture(browser, READY, folder / f"{name}.png", height)
        for name, (path, height) in pages.items():
            browser.call("Page.navigate", url=path.resolve().as_uri())
            _picture(browser, LOADED, folder / f"{name}.png", height)
    finally:
        browser.close()
        server.close()


def _picture(browser: DevTools, there: str, path: Path, height: int) -> None:
    """What a page shows at its top, once it is there."""
    browser.call("Runtime.evaluate", expression=there, awaitPromise=True)
    tall = min(height, int(browser.evaluate("document.documentElement.scrollHeight")))
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": tall, "scale": 1}
    found = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    path.write_bytes(base64.b64decode(found["data"]))


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
