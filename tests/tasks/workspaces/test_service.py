"""A service that fails before it answers, asked here and over HTTP."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from assay.errors import UsageError
from assay.sandbox.workspace import Workspace
from assay.tasks.workspaces.job import fetched
from assay.tasks.workspaces.service import BUSY, LONGEST, Served, Service

OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def test_each_path_fails_before_it_answers() -> None:
    service = Service({"/a": "one", "/b?x=1": "two"}, failures=2)
    assert [service.answer("/a")[0] for _ in range(4)] == [503, 503, 200, 200]
    assert service.answer("/b?x=1") == BUSY and service.answer("/b") == (404, "there is nothing at /b")
    assert service.answer("/a") == (200, "one") and len(service.asked) == 7
    assert service.asked[0] == ("/a", 503) and service.asked[-1] == ("/a", 200)
    assert Service({"/a": "one"}).answer("/a") == (200, "one")
    echo = Service(lambda path: path * 2)
    assert echo.answer("/a") == (200, "/a/a")
    assert echo.answer("/" + "x" * 5000)[1] == ("/" + "x" * (LONGEST - 1)) * 2


def test_over_http_it_is_the_same() -> None:
    service = Service({"/a": "zwölf"}, failures=1)
    with Served(service) as served:
        with pytest.raises(urllib.error.HTTPError) as busy:
            OPENER.open(f"{served.url}/a")
        assert (busy.value.code, busy.value.read()) == (503, b"busy, try again")
        with OPENER.open(f"{served.url}/a") as answer:
            assert answer.read().decode() == "zwölf" and answer.headers["Content-Type"] == "application/json"
        with pytest.raises(urllib.error.HTTPError) as absent:
            OPENER.open(f"{served.url}/other?x=1")
        assert absent.value.code == 404 and absent.value.headers["Content-Type"] == "text/plain"
    assert service.asked == [("/a", 503), ("/a", 200), ("/other?x=1", 404)]
    with pytest.raises(urllib.error.URLError):
        OPENER.open(f"{served.url}/a", timeout=5)


def test_answers_go_into_files() -> None:
    space, service = Workspace(), Service({"/a": "one"}, failures=1)
    assert fetched(service, "/a", space, "in/a.txt") == BUSY and not space.files
    assert fetched(service, "/a", space, "in/a.txt") == (200, "one")
    assert fetched(service, "/a", space) == (200, "one") and space.files == {"in/a.txt": b"one"}
    assert fetched(None, "/a", space, "x") == (404, "there is no service")
    with pytest.raises(UsageError, match="relative path"):
        fetched(service, "/a", space, "../x")
