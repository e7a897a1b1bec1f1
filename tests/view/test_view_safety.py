"""Who is let in: those who bring the token to this machine's own name, to look and to do nothing else."""

from __future__ import annotations

import http.client
from pathlib import Path

import pytest
from viewed import get, viewing, write_run

pytest.importorskip("duckdb", reason="needs assay[view]")


def test_only_the_token_lets_in(tmp_path: Path) -> None:
    before = write_run(tmp_path / "run", steps=1)
    files = {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(before.rglob("*"))}
    with viewing(tmp_path / "run") as server:
        assert server.url.startswith("http://127.0.0.1:")
        for path in ("/", "/static/main.js", "/api/home", "/api/export?source=run"):
            assert get(server, path, Cookie="")[0] == 403
            assert get(server, path, Cookie=f"{server.app.cookie}=x{server.token}")[0] == 403
            assert get(server, path)[0] == 200
        assert get(server, "/?token=wrong", Cookie="")[0] == 403
        status, headers, _ = get(server, f"/?token={server.token}&view=run&id=run", Cookie="")
        assert status == 303 and headers["location"] == "/?view=run&id=run"
        assert {"HttpOnly", "SameSite=strict"} <= {w.strip() for w in headers["set-cookie"].split(";")}
        # a name of elsewhere that was turned to this machine, and orders
        assert get(server, "/api/home", Host="evil.example")[0] == 421
        assert get(server, "/api/home", Host=f"localhost:{server.url.rpartition(':')[2]}")[0] == 200
        for method in ("POST", "PUT", "DELETE"):
            connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
            connection.request(method, "/api/home", headers={"Cookie": f"{server.app.cookie}={server.token}"})
            assert connection.getresponse().status == 405
            connection.close()
        assert get(server, "/static/..%2fapp.py")[0] == 404
        _, headers, body = get(server, "/")
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert b"http" not in body
    assert {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(before.rglob("*"))} == files


def test_the_page_asks_nothing_of_elsewhere_and_reads_no_text_as_html() -> None:
    import assay.view

    static = Path(assay.view.__file__).parent / "static"
    for file in static.iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text and "https:" not in text and "//cdn" not in text, file.name
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
            assert word not in text, file.name
