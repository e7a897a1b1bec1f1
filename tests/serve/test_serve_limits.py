"""What clients cannot do to ``assay serve``, and to each other."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from serving import PATIENCE, Gate, answer, becomes, connect, ends, post, running_server, small_engine

from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.engines.stream import Row
from assay.errors import RunError
from assay.serve import app, limits
from assay.serve.batcher import Batcher, Job
from assay.serve.decoding import ServedEngine
from assay.serve.server import ModelServer

ASKED = {"model": "nano", "prompt": "1+1=", "max_tokens": 4, "seed": 3}


@pytest.fixture(scope="module")
def engine() -> HFEngine:
    return small_engine()


@pytest.fixture
def server(engine: HFEngine) -> Iterator[ModelServer]:
    with running_server(ModelServer(engine, "nano", ("127.0.0.1", 0))) as made:
        yield made


@pytest.fixture
def gate(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A request is being answered, and those that come wait for it."""
    made = Gate(server)
    monkeypatch.setattr(server.engine, "generate", made)
    with connect(server) as first:
        first.sendall(post(ASKED))
        assert made.entered.wait(60)
        yield made
        made.opened.set()
        assert answer(first)[0] == 200


def ask(server: ModelServer, said: bytes) -> tuple[int, dict[str, str], Any]:
    with connect(server) as connection:
        connection.sendall(said)
        return answer(connection)


@pytest.mark.parametrize("more", [b"", post(ASKED)], ids=["one request", "a second sent before the answer"])
def test_a_client_that_hangs_up_before_its_turn_leaves_nothing(server: ModelServer, gate: Gate, more: bytes) -> None:
    """No thread, no connection, no work."""
    batcher, threads = server.batcher, threading.active_count()
    clients = [connect(server) for _ in range(40)]
    for i, client in enumerate(clients):
        client.sendall(post({**ASKED, "stream": i % 2 == 0}))
    assert becomes(batcher, lambda: len(batcher.waiting) == 40)
    for client in clients:
        client.sendall(more)
        client.close()
    assert becomes(batcher, lambda: not batcher.waiting)
    assert len(batcher.open) == 1
    assert len(server.http.server_state.connections) == 1
    # Threads that read and compose are shared by all, and few.
    assert threading.active_count() <= threads + 5
    calls = batcher.calls
    gate.opened.set()
    assert becomes(batcher, lambda: not batcher.open)
    assert batcher.calls == calls


def test_a_client_that_hangs_up_in_the_midst_is_not_answered_on(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def endless(_: Any) -> Any:
        engine = server.engine
        assert engine.drawn is not None and engine.unwanted is not None
        try:
            while not ended.wait(0.01):
                engine.drawn(0, 0, 5, -1.0)
                engine.unwanted(0)
        except RunError:
            ended.set()
            raise

    monkeypatch.setattr(server.engine, "generate", endless)
    with connect(server) as client:
        client.sendall(post({**ASKED, "stream": True}))
        assert client.recv(1) == b"H"
    assert ended.wait(60)
    assert becomes(server.batcher, lambda: not server.batcher.open)


class Watched(ServedEngine):
    """Notes how many responses each step is of."""

    def __init__(self, engine: HFEngine):
        super().__init__(engine)
        self.rows: list[int] = []

    def observe(
        self, rows: list[Row], live: np.ndarray, tokens: torch.Tensor, logprobs: torch.Tensor
    ) -> torch.Tensor | None:
        self.rows.append(len(live))
        return super().observe(rows, live, tokens, logprobs)


@pytest.mark.parametrize("others", [0, 2])
def test_responses_that_nobody_waits_for_end_at_their_next_token(engine: HFEngine, others: int) -> None:
    """And those of others are what they would have been."""
    watched = Watched(engine)
    batcher = Batcher(watched)
    sampling = Sampling(40)
    leaving: Job = Job([Request("1", 3, sampling, 1)], live=True, wake=lambda: batcher.leave(leaving))
    staying = [Job([Request("2", 2, sampling, i)]) for i in range(others)]
    with batcher.changed:  # so that they come together
        for job in (leaving, *staying):
            batcher.submit(job)
    found = [next(job.events()) for job in staying]
    batcher.stop()
    assert watched.rows[:2] == ([3] if not others else [7, 4])
    for job, event in zip(staying, found, strict=True):
        assert isinstance(event, list)
        [ours], [theirs] = event, engine.generate(job.requests)
        assert [e.text for e in ours] == [e.text for e in theirs]


@pytest.mark.parametrize("kind", ["text", "many", "tokens", "chat", "begun"])
def test_what_cannot_fit_is_refused_before_it_is_tokenised(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def tokenise(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(app, "requests", tokenise)
    long = "1" * (limits.characters(96) + 1)
    prompts = {"text": long, "many": ["1", long], "tokens": [5] * 96}
    path, content = "/v1/completions", {"model": "nano", "max_tokens": 4}
    if kind in prompts:
        content["prompt"] = prompts[kind]
    else:
        path = "/v1/chat/completions"
        texts = [long] if kind == "chat" else ["1", long]
        roles = ["user", "assistant"]
        content["messages"] = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
        content["continue_final_message"] = kind == "begun"
    status, _, told = ask(server, post(content, path))
    assert (status, told["error"]["code"]) == (400, "context_length_exceeded")
    assert told["error"]["param"] == ("prompt" if kind in prompts else "messages")
    assert "context of 96" in told["error"]["message"]


def test_a_body_too_large_is_refused_however_it_comes(server: ModelServer) -> None:
    most = limits.body(96)
    head = b"POST /v1/completions HTTP/1.1\r\nHost: h\r\n"
    said = [
        head + b"Content-Length: %d\r\n\r\n" % (most + 1),
        head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % (most + 1) + b" " * (most + 1),
    ]
    for request in said:
        status, _, told = ask(server, request)
        assert (status, told["error"]["type"]) == (413, "invalid_request_error")
        assert str(most) in told["error"]["message"]
    assert server.http.config.app.held == 0  # type: ignore[union-attr]


def test_a_chunked_body_is_read(server: ModelServer) -> None:
    body = post(ASKED).partition(b"\r\n\r\n")[2]
    head = b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    status, _, told = ask(server, head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert (status, told) == (200, told | {"choices": ask(server, post(ASKED))[2]["choices"]})


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 2\r\nContent-Length: 3", b"Content-Length: 3\r\nTransfer-Encoding: chunked"]
)
def test_a_body_of_two_lengths_is_refused(server: ModelServer, framing: bytes) -> None:
    """A proxy in front may have taken the other."""
    status, _, told = ask(server, b"POST /v1/completions HTTP/1.1\r\nHost: h\r\n" + framing + b"\r\n\r\n{}")
    assert (status, told["error"]["type"]) == (400, "invalid_request_error")


def test_the_key_is_asked_for_before_the_body(engine: HFEngine) -> None:
    said = b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer no\r\nContent-Length: 999\r\n\r\n"
    with running_server(ModelServer(engine, "nano", ("127.0.0.1", 0), key="open sesame")) as server:
        status, _, told = ask(server, said)  # whose body does not come
        assert (status, told["error"]["code"]) == (401, "invalid_api_key")
        assert ask(server, b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")[0] == 200


@pytest.mark.parametrize("begun", [b"", b"POST /v1/completions HTTP/1.1\r\nHos"])
def test_a_head_that_does_not_come_is_not_waited_for(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(limits, "HEAD", 0.05)
    with connect(server) as connection:
        connection.sendall(begun)
        assert ends(connection)


def test_nor_is_one_after_the_first(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
        assert answer(connection)[0] == 200
        monkeypatch.setattr(limits, "HEAD", 0.05)
        connection.sendall(b"GET /hea")
        assert ends(connection)


def test_a_body_that_does_not_come_is_not_waited_for(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY", 0.05)
    with connect(server) as connection:
        connection.sendall(post(ASKED)[:-1])
        status, headers, told = answer(connection)
        assert (status, headers["connection"]) == (408, "close")
        assert "did not arrive" in told["error"]["message"]
        assert ends(connection)


def test_a_client_that_does_not_read_is_not_waited_for(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "UNREAD", 0.05)
    monkeypatch.setattr(server.http.config, "timeout_keep_alive", 2 * PATIENCE)
    monkeypatch.setattr(app, "whole", lambda *_: {"long": "x" * (32 << 20)})
    with connect(server) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(post(ASKED))
        state, end = server.http.server_state, time.monotonic() + PATIENCE
        while state.connections or not state.total_requests:
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"n": 64, "prompt": ["1"] * 65}, "n"),
        ({"n": 64, "max_tokens": 1 << 15}, "max_tokens"),
        ({"prompt": ["1"] * 9, "max_tokens": 1 << 17}, "max_tokens"),
        ({"stop": ["x"] * 65}, "stop"),
        ({"stop": "x" * 1025}, "stop"),
    ],
)
def test_a_request_is_bounded_in_sum(server: ModelServer, more: dict[str, Any], param: str) -> None:
    status, _, told = ask(server, post({**ASKED, **more}))
    assert (status, told["error"]["param"]) == (400, param)


def test_so_are_all_together(server: ModelServer, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING", 7)
    status, headers, told = ask(server, post(ASKED))
    assert (status, told["error"]["code"], headers["retry-after"]) == (429, "rate_limit_exceeded", "1")
    assert len(server.batcher.open) == 1


def test_connections_are_bounded(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS", 1)
    with connect(server) as first, connect(server) as second, connect(server) as third:
        assert ends(third)  # so the server has seen the other two
        for connection, expected in ((first, 503), (second, 503)):
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
            assert answer(connection)[0] == expected
        second.close()
        first.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")


def test_200_clients_at_once_are_served(server: ModelServer, gate: Gate, engine: HFEngine) -> None:
    """Each as if it were alone."""
    clients = [connect(server) for _ in range(200)]
    for i, client in enumerate(clients):
        client.sendall(post({**ASKED, "seed": i, "prompt": f"{i}+"}))
    assert becomes(server.batcher, lambda: len(server.batcher.open) == 201)
    gate.opened.set()
    found = [answer(client) for client in clients]
    alone = engine.generate([Request(f"{i}+", 1, Sampling(4), i) for i in range(200)])
    assert [status for status, _, _ in found] == [200] * 200
    assert [told["choices"][0]["text"] for _, _, told in found] == [row[0].text for row in alone]
    for client in clients:
        client.close()


def test_what_clients_say_does_not_steer_the_terminal(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fault(asked: Any, _: Any) -> Any:
        raise ValueError(asked.prompts[0])

    monkeypatch.setattr(app, "requests", fault)
    assert ask(server, post({**ASKED, "prompt": "\x1b]0;mine\x07\r\x9b2J"}))[0] == 500
    # And what no handler sees: a line that is none, and a method that is none.
    assert ask(server, b"\x1b[2J\r\n\r\n")[0] == 400
    assert ask(server, b"GET /v1/\x1b[2J HTTP/1.1\r\nHost: h\r\n\r\n")[0] == 400
    assert ask(server, b"GET /v1/%1b[2J HTTP/1.1\r\nHost: h\r\n\r\n")[0] == 404
    said = "".join(capfd.readouterr())
    assert r"ValueError: \x1b]0;mine\x07\r\x9b2J" in said
    assert all(c.isprintable() or c == "\n" for c in said)


def test_it_stops_whatever_clients_are_in_the_midst_of(engine: HFEngine) -> None:
    with running_server(ModelServer(engine, "nano", ("127.0.0.1", 0))) as server:
        begun = [b"", b"GET /hea", post(ASKED)[:-1], b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"]
        clients = [connect(server) for _ in begun]
        for client, said in zip(clients, begun, strict=True):
            client.sendall(said)
        assert answer(clients[-1])[0] == 200
    assert [ends(client) for client in clients[:2]] == [True, True]
    for client in clients:
        client.close()
