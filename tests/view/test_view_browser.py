"""The page in a real browser: what is shown, links, keys, filters, hostile texts, both widths and both schemes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from viewed import HOSTILE, viewing, write_comparison, write_league, write_run

from assay.environments.screens.devtools import DevTools, program
from assay.view.server import ViewServer

pytest.importorskip("duckdb", reason="needs assay[view]")
pytestmark = pytest.mark.skipif(program() is None, reason="needs Chromium (Debian: chromium-headless-shell)")

VIEWS = (
    "",
    "view=run&id=runs/grpo",
    "view=runs&id=runs/grpo&id=runs/dapo",
    "view=samples&source=runs/grpo",
    "view=groups&source=runs/grpo",
    "view=group&source=runs/grpo&step=6&task=task-3",
    "view=sample&source=runs/grpo&file=step-000006.parquet&row=15",
    "view=task&source=runs/grpo&source=runs/dapo&task=task-0",
    "view=evaluation&id=runs/grpo/after",
    "view=record&id=runs/league/L1",
    "view=record&id=runs/paired/compare",
    "view=between&a=runs/grpo/before&b=runs/grpo/after",
)
READY = """new Promise((done) => { const look = () => { const main = document.getElementById("main");
  main && !main.hasAttribute("aria-busy") && main.querySelector("h1") ? done(true) : requestAnimationFrame(look); };
  look(); })"""
REDRAWN = """new Promise((done) => { const old = document.querySelector("h1"), look = () => {
  const now = document.querySelector("h1"); now && now !== old ? done(true) : requestAnimationFrame(look); };"""
# What a checker of accessibility holds for serious: names of controls and figures, order of headings, contrast apart.
UNNAMED = """[...document.querySelectorAll("a, button, input, select, svg[role=img], summary")].filter((e) =>
  !(e.getAttribute("aria-label") || e.textContent.trim() || (e.id && document.querySelector(`label[for="${e.id}"]`)))
).map((e) => e.outerHTML.slice(0, 80))"""


class Page:
    def __init__(self, server: ViewServer, width: int = 1280):
        self.server, self.browser = server, DevTools(width, 900)
        self.open(f"token={server.token}")

    def open(self, link: str) -> None:
        self.browser.call("Page.navigate", url=f"{self.server.url}/?{link}")
        self.ready()

    def ready(self) -> None:
        self.browser.call("Runtime.evaluate", expression=READY, awaitPromise=True)

    def see(self, expression: str) -> Any:
        return self.browser.evaluate(expression)

    def text(self) -> str:
        return str(self.see("document.getElementById('main').innerText"))

    def do(self, expression: str) -> None:
        """Do something that changes the view, and wait until it is drawn."""
        self.browser.call("Runtime.evaluate", expression=f"{REDRAWN} {expression}; look(); }})", awaitPromise=True)
        self.ready()

    def key(self, key: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.browser.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" else "")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    folder = tmp_path_factory.mktemp("view")
    write_run(folder / "runs" / "grpo")
    write_run(folder / "runs" / "dapo", steps=4, method="dapo")
    write_league(folder / "runs" / "league" / "L1")
    write_comparison(folder / "runs" / "paired")
    with viewing(folder / "runs") as server:
        for id in ("runs/grpo", "runs/dapo"):
            server.app.tables.of(server.app.places.get(id)).wait()
        yield server


@pytest.fixture(scope="module")
def page(server: ViewServer) -> Iterator[Page]:
    page = Page(server)
    yield page
    page.browser.close()


@pytest.mark.parametrize("link", VIEWS)
def test_every_view_has_a_link_fits_a_phone_and_names_its_parts(page: Page, link: str) -> None:
    size = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.open(link)
    assert page.see("document.title") not in ("taken", "") and "cannot be shown" not in page.text()
    assert page.see(UNNAMED) == []
    assert page.see("document.querySelectorAll('#main script, #main img').length") == 0
    page.browser.call("Emulation.setDeviceMetricsOverride", width=400, **size)
    assert page.see("document.documentElement.scrollWidth") <= 400
    page.browser.call("Emulation.setDeviceMetricsOverride", width=1280, **size)


def test_the_list_of_runs_says_what_each_came_to(page: Page) -> None:
    page.open("")
    assert "50.0 %" in page.text() and page.text().count("finished") == 3


def test_hostile_texts_are_texts(page: Page) -> None:
    for link in (VIEWS[3] + "&q=onerror", VIEWS[5], VIEWS[6]):
        page.open(link)
        assert HOSTILE.split(">")[0] in page.text() and page.see("document.title") != "taken"


def test_filters_are_in_the_link_and_going_back_restores_them(page: Page) -> None:
    page.open("view=samples&source=runs/grpo")
    assert "96 samples" in page.text()
    page.do("document.getElementById('chip-passed-right').click()")
    assert "24 samples" in page.text() and "is.passed=right" in page.see("location.search")
    page.do("{const q = document.getElementById('f-q'); q.value = 'answer is 6'; q.dispatchEvent(new Event('change'))}")
    assert "4 samples" in page.text() and page.see("document.querySelectorAll('mark').length") == 4
    assert page.see("document.querySelector('#chip-passed-right').getAttribute('aria-pressed')") == "true"
    page.do("[...document.querySelectorAll('.filters a')].at(-1).click()")
    assert "96 samples" in page.text() and "is." not in page.see("location.search")
    page.do("history.back()")
    assert "4 samples" in page.text()


def test_keys_go_through_the_list_and_open(page: Page) -> None:
    page.open("view=samples&source=runs/grpo")
    for key in ("j", "j", "j", "k", "x"):
        page.key(key)
    assert page.see("[...document.querySelectorAll('tbody tr')].findIndex((r) => r.classList.contains('at'))") == 1
    assert "1 chosen" in page.text() and "key=step-000006.parquet%3A1" in page.see(
        "document.querySelector('a.button').href"
    )
    page.do("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'o', bubbles: true}))")
    assert "row=1" in page.see("location.search") and "Sample 1 of step 6" in page.text()
    page.do("history.back()")
    assert "96 samples" in page.text()


def test_a_comparison_leads_to_its_runs_and_they_to_their_rollouts(page: Page) -> None:
    page.open("view=record&id=runs/paired/compare")
    assert "No winner. Too few runs." in page.text() and "no memory" in page.text()
    page.do("document.querySelector('td a').click()")
    assert page.see("document.querySelector('h1').innerText") == "runs/paired/runs/sums/seed-0/grpo/run"
    page.do("[...document.querySelectorAll('#main a')].find((a) => a.innerText === 'groups').click()")
    assert "What is 3 + 1?\ntask-3" in page.text()


def test_gained_and_lost(page: Page) -> None:
    """Before, tasks 0 and 1 are right; after, 1 to 4: three are gained and one is lost."""
    page.open(VIEWS[-1])
    said = page.text()
    assert "Gained: 3 tasks" in said and "Lost: 1 task\n" in said and "25.0 %" in said and "50.0 %" in said


def test_the_league_has_its_table_and_curves(page: Page) -> None:
    page.open("view=record&id=runs/league/L1")
    said = page.text()
    assert "Setting L1: methods against grpo" in said and "+20.0 [+11.2, +28.8]" in said and "few (1)" in said
    assert page.see("document.querySelectorAll('svg.chart path').length") == 2
    page.open("")
    assert "runs/league/L1\tleague" in page.text()
