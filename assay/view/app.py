"""The web application: who is let in, and what is answered."""

from __future__ import annotations

import hmac
import json
import sys
import traceback
from collections.abc import Callable, Iterator
from http.cookies import CookieError, SimpleCookie
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from assay.view import query, records, runs, samples
from assay.view.places import Missing, Places
from assay.view.tables import Tables

SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Headers of every answer: nothing is asked of elsewhere, and no page of elsewhere may hold or read one of these."""
TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}
EXPORTED = 100_000
"""Samples in one export at most."""


class App:
    """Answers a browser on this machine. Nothing is written anywhere.

    Who comes must bring the token, once in the link and then as a cookie, and must have asked for this address by its
    own name: a page of elsewhere whose name was turned to 127.0.0.1 does not.

    Args:
        places: what there is.
        token: that lets in.
        port: listened at.
    """

    def __init__(self, places: Places, token: str, port: int):
        self.places, self.token = places, token
        self.tables = Tables()
        self.cookie = f"assay-view-{port}"
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        files = resources.files("assay.view").joinpath("static")
        self.files = {f.name: f.read_bytes() for f in files.iterdir() if f.is_file()}
        self.files["report.css"] = resources.files("assay.report").joinpath("style.css").read_bytes()
        answers: dict[str, Callable[[QueryParams], Any]] = {
            "/api/home": lambda p: runs.home(self.places),
            "/api/run": lambda p: runs.run(self.places.get(p["id"], "run"), self.places),
            "/api/metrics": lambda p: runs.metrics([self.places.get(id, "run") for id in p.getlist("id")]),
            "/api/columns": lambda p: samples.columns(self.tables.of(self._source(p))),
            "/api/samples": lambda p: query.page(self.tables.of(self._source(p)), query.read_query(p.multi_items())),
            "/api/groups": lambda p: query.groups(self.tables.of(self._source(p)), query.read_query(p.multi_items())),
            "/api/steps": lambda p: query.steps(self.tables.of(self._source(p)), query.read_query(p.multi_items())),
            "/api/group": lambda p: samples.group(
                self.tables.of(self._source(p)), p["step"], p["task"], p.get("group")
            ),
            "/api/sample": lambda p: samples.sample(self.tables.of(self._source(p)), p["file"], p["row"]),
            "/api/evaluation": lambda p: records.evaluation(self.places.get(p["id"], "evaluation")),
            "/api/between": lambda p: records.between(
                self.places.get(p["a"], "evaluation"), self.places.get(p["b"], "evaluation")
            ),
            "/api/record": lambda p: records.record(self.places.get(p["id"])),
        }
        routes = [Route(path, self._answering(answer)) for path, answer in answers.items()]
        self.routes = Starlette(
            routes=[
                Route("/", self._page),
                Route("/static/{name}", self._file),
                Route("/api/export", self._export),
                *routes,
            ],
            exception_handlers={Missing: _missing, query.Wrong: _wrong, HTTPException: _astray, Exception: _fault},
        )

    def _source(self, parameters: QueryParams) -> Any:
        return self.places.get(parameters["source"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it."""
        refused = self._refused(scope)

        async def safe(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in SAFE.items())]
            await send(message)

        try:
            await (refused or self.routes)(scope, receive, safe)
        except Exception:  # a fault of ours, which the browser has heard of
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            raise

    def _refused(self, scope: Scope) -> Response | None:
        headers, parameters = Headers(scope=scope), QueryParams(scope["query_string"])
        if scope["method"] not in ("GET", "HEAD"):
            return _told("only looking is possible here", 405)
        if headers.get("host", "") not in self.hosts:
            return _told("this is not the address that the server was asked at", 421)
        if scope["path"] == "/" and "token" in parameters:
            if not self._is_token(parameters["token"]):
                return _told("the token is wrong; use the link that assay view printed last", 403)
            rest = QueryParams([(k, v) for k, v in parameters.multi_items() if k != "token"])
            answer = RedirectResponse(f"/?{rest}" if rest else "/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict")
            return answer
        if not self._is_token(_cookie(headers.get("cookie", ""), self.cookie)):
            return _told("the token is missing; use the link that assay view printed", 403)
        return None

    def _is_token(self, brought: str) -> bool:
        return hmac.compare_digest(brought.encode("utf-8", "replace"), self.token.encode())

    async def _page(self, _: Request) -> Response:
        return self._static("index.html")

    async def _file(self, request: Request) -> Response:
        return self._static(request.path_params["name"])

    def _static(self, name: str) -> Response:
        if name not in self.files:
            raise HTTPException(404)
        return Response(self.files[name], media_type=TYPES.get(name.rpartition(".")[2], "text/plain"))

    def _answering(self, answer: Callable[[QueryParams], Any]) -> Callable[[Request], Response]:
        # A plain function: Starlette runs it in a thread, so that a long search holds nobody up.
        def endpoint(request: Request) -> Response:
            try:
                return JSONResponse(query.finite(answer(request.query_params)))
            except KeyError as error:
                if error.args[:1] and error.args[0] in ("id", "source", "step", "task", "file", "row", "a", "b"):
                    raise query.Wrong(f"the link lacks {error.args[0]!r}") from None
                raise

        return endpoint

    def _export(self, request: Request) -> Response:
        asked = request.query_params
        table = self.tables.of(self._source(asked))
        table.wait()
        if keys := asked.getlist("key"):
            rows = query.chosen(table, [samples.key(k) for k in keys])
        else:
            rows = query.export(table, query.read_query(asked.multi_items()), EXPORTED)
        return StreamingResponse(
            _lines(rows),
            media_type="application/x-ndjson",
            headers={"Content-Disposition": 'attachment; filename="samples.jsonl"'},
        )


def _lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False) + "\n"


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _told(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status)


async def _missing(_: Request, error: Exception) -> Response:
    return _told(str(error), 404)


async def _wrong(_: Request, error: Exception) -> Response:
    return _told(str(error), 400)


async def _astray(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _told(f"nothing is at {request.url.path}", error.status_code)


async def _fault(_: Request, error: Exception) -> Response:
    return _told(f"a fault of assay view: {type(error).__name__}: {error}", 500)
