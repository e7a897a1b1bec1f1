"""``assay serve``: what it says equals what the engine says in this process, and it stands whatever is thrown at it."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import running
from hypothesis import given
from hypothesis import strategies as st
from serving import SHAPE, running_server, small_engine
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from assay import cli
from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.errors import RunError, UsageError
from assay.registry import build
from assay.serve.batcher import Batcher, Job, Token
from assay.serve.decoding import ServedEngine
from assay.serve.server import ModelServer
from assay.serve.told import Detokenizer

httpx2 = pytest.importorskip("httpx2", reason="asking a server needs httpx2: pip install assay[openai]")


def start(log: Path, *arguments: str) -> tuple[Any, str]:
    """Start ``assay serve`` in a process of its own; return it and its address."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(running.PRELOADED)
    process = context.Process(target=running.command, args=(log, "serve", "nano", *SHAPE, *arguments, "--port", "0"))
    process.start()
    end = time.monotonic() + 120
    while not (found := re.search(r"at (http\S+);", log.read_text() if log.exists() else "")):
        assert process.is_alive(), log.read_text()
        assert time.monotonic() < end
        time.sleep(0.02)
    return process, found[1]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of the nano model in another process."""
    process, address = start(tmp_path_factory.mktemp("serve") / "log")
    yield address
    os.kill(process.pid, signal.SIGTERM)
    process.join(60)
    assert process.exitcode == 0


@pytest.fixture(scope="module")
def engine() -> HFEngine:
    """The same model here."""
    return small_engine()


@pytest.fixture(scope="module")
def here(engine: HFEngine) -> Iterator[ModelServer]:
    """A server in this process, whose inside can be looked at."""
    server = ModelServer(engine, "nano", ("127.0.0.1", 0))
    with running_server(server):
        yield server


STOPS = ["1", "ab", "c", "d", "e"]


def bpe(kind: str) -> Tokenizer:
    """A small tokenizer: of bytes, as GPT-2's, or of words with a mark for the space before them, as Llama 2's."""
    tokenizer = Tokenizer(models.BPE())
    alphabet = pre_tokenizers.ByteLevel.alphabet() if kind == "bytes" else list("ab▁€é😀\n<")
    if kind == "bytes":
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    else:
        tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["ab ab a b€ a é😀 ab\n😀 <"] * 9, trainer)
    return tokenizer


TOKENIZERS = {kind: bpe(kind) for kind in ("bytes", "words")}

REQUESTS = [
    Request("1+1=", 3, Sampling(20), 5),
    Request("what", 4, Sampling(30, temperature=0.7, stop=("a", "7")), 6),
    Request(({"role": "system", "content": "s"}, {"role": "user", "content": "x"}), 2, Sampling(9, temperature=0), 7),
    Request("so", 2, Sampling(12, top_p=0.8), 8),
    Request("so", 2, Sampling(12, top_k=5), 8),
    Request("1+1=", 3, Sampling(20), 2**62 + 1),
]


@pytest.mark.parametrize("api", ["chat", "completions"])
@pytest.mark.parametrize("tokenizer", ["nano", None])
def test_a_remote_engine_equals_the_local_one(url: str, engine: HFEngine, api: str, tokenizer: str | None) -> None:
    remote = build("engine", {"name": "openai", "model": "nano", "base_url": url, "api": api, "tokenizer": tokenizer})
    ours, theirs = engine.generate(REQUESTS), remote.generate(REQUESTS)
    stops = set()
    for a, b in zip((e for row in ours for e in row), (e for row in theirs for e in row), strict=True):
        assert (a.text, a.stop, len(a.tokens)) == (b.text, b.stop, len(b.tokens))
        np.testing.assert_allclose(a.logprobs, b.logprobs, rtol=1e-5, atol=1e-5)
        assert remote.decode(b.tokens) == b.text
        assert b.mask.all()
        if tokenizer is not None:
            np.testing.assert_array_equal(a.tokens, b.tokens)
            np.testing.assert_array_equal(a.prompt, b.prompt)
        stops.add(a.stop)
    assert stops >= {"stop", "length"}
    assert remote.usage.completion_tokens == sum(len(e.tokens) for row in ours for e in row)
    assert remote.usage.prompt_tokens == sum(len(row[0].prompt) for row in ours)
    remote.close()


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_a_response_is_continued(url: str, engine: HFEngine, api: str) -> None:
    spec = {"name": "openai", "model": "nano", "base_url": url, "api": api, "tokenizer": "nano"}
    remote = build("engine", {**spec, "continue_final_message": True})
    asked = [Request("1+1=", 2, Sampling(10), 5, prefix=tuple(engine.encode_response("22 ", end=False).tolist()))]
    [ours], [theirs] = engine.generate(asked), remote.generate(asked)
    assert [e.text for e in ours] == [e.text for e in theirs]
    np.testing.assert_array_equal(ours[0].prompt, theirs[0].prompt)


def test_an_evaluation_of_the_endpoint_equals_one_of_the_model(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    def results(target: str, *more: str) -> Any:
        tasks = ["tasks=arithmetic", "tasks.eval_size=6", "rollout.max_tokens=8"]
        with pytest.raises(SystemExit) as ended:
            cli.main(["eval", target, *tasks, *more, "--samples", "2", "--json"])
        assert ended.value.code == 0
        return json.loads(capfd.readouterr().out)

    local, remote = results("nano", *SHAPE), results(f"openai:nano@{url}")
    # The protocol does not tell the entropy of what tokens are drawn from.
    assert local["metrics"].pop("tokens")["group"] == "entropy"
    # Requests are batched as they come, and a matrix product's last digits depend on the size of its batch.
    assert remote["metrics"].keys() == local["metrics"].keys()
    for name, metric in local["metrics"].items():
        told = remote["metrics"][name]
        assert told.keys() == metric.keys()
        for key, value in metric.items():
            near = pytest.approx(value, rel=1e-5, abs=1e-8) if isinstance(value, float) else value
            assert told[key] == near, f"{key} of {name}"


def test_a_model_that_is_not_served(url: str) -> None:
    remote = build("engine", {"name": "openai", "model": "nanu", "base_url": url})
    with pytest.raises(UsageError, match="has no model 'nanu'; did you mean 'nano'"):
        remote.generate(REQUESTS[:1])
    astray = build("engine", {"name": "openai", "model": "nano", "base_url": url.removesuffix("/v1")})
    with pytest.raises(UsageError, match="does base_url end in /v1"):
        astray.generate(REQUESTS[:1])


def test_a_prompt_too_long_is_refused_alone(url: str) -> None:
    remote = build("engine", {"name": "openai", "model": "nano", "base_url": url})
    rows = remote.generate([Request("1" * 200, 1, Sampling(4), 1), Request("1", 1, Sampling(4), 1)])
    assert [row[0].stop == "error" for row in rows] == [True, False]
    assert "context of 96" in rows[0][0].meta["error"]


def pieces(response: Any) -> list[Any]:
    """The events of a stream, whose last line says that it is whole."""
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("more", [{}, {"stop": STOPS}, {"stop": STOPS, "include_stop_str_in_output": True}])
@pytest.mark.parametrize("path", ["/chat/completions", "/completions"])
def test_a_stream_adds_up_to_the_answer(url: str, path: str, more: dict[str, Any]) -> None:
    chat = path.startswith("/chat")
    prompt = {"messages": [{"role": "user", "content": "2"}], "logprobs": True} if chat else {"prompt": ["2", "3"]}
    body = {"model": "nano", "n": 4, "seed": 3, "max_tokens": 40, "return_token_ids": True, **prompt, **more}
    whole = httpx2.post(url + path, json=body).json()
    response = httpx2.post(url + path, json={**body, "stream": True, "stream_options": {"include_usage": True}})
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, last = pieces(response)
    assert (last["choices"], last["usage"]) == ([], whole["usage"])
    assert len(whole["choices"]) == (4 if chat else 8)
    for choice in whole["choices"]:
        mine = [e["choices"][0] for e in events if e["choices"][0]["index"] == choice["index"]]
        texts = [piece["delta"]["content"] if chat else piece["text"] for piece in mine]
        said = choice["message"]["content"] if chat else choice["text"]
        assert "".join(texts) == said
        assert [piece["finish_reason"] for piece in mine] == [None] * (len(mine) - 1) + [choice["finish_reason"]]
        assert mine[-1]["stop_reason"] == choice["stop_reason"]
        assert [t for piece in mine for t in piece["token_ids"]] == choice["token_ids"]
        if chat:
            assert [(s["token"], s["bytes"]) for piece in mine for s in piece["logprobs"]["content"]] == [
                (s["token"], s["bytes"]) for s in choice["logprobs"]["content"]
            ]
        if choice["stop_reason"] is not None:
            assert said.endswith(choice["stop_reason"]) == ("include_stop_str_in_output" in more)
        elif "stop" in more:
            assert not any(stop in said for stop in more["stop"])
    if more:
        assert any(choice["stop_reason"] for choice in whole["choices"])


@pytest.mark.parametrize(
    ("body", "status", "param", "message"),
    [
        ([], 400, None, "must be a JSON object"),
        ({"model": "gpt"}, 404, "model", "this server has 'nano'"),
        ({"model": None}, 400, "model", "model: Field required"),
        ({"messages": []}, 400, "messages", "at least 1 item"),
        ({"messages": "hi"}, 400, "messages", "valid list"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages", "messages"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "messages", "no character"),
        ({"temperature": "hot"}, 400, "temperature", "valid number"),
        ({"temperature": -1}, 400, "temperature", "greater than or equal to 0"),
        ({"temperature": float("nan")}, 400, "temperature", "temperature"),
        ({"top_p": 0}, 400, "top_p", "greater than 0"),
        ({"n": 0}, 400, "n", "greater than or equal to 1"),
        ({"n": True}, 400, "n", "valid integer"),
        ({"n": 4096, "max_tokens": 10**9}, 400, "max_tokens", "must not exceed"),
        ({"max_tokens": 1.5}, 400, "max_tokens", "integer"),
        ({"stop": [""]}, 400, "stop", "must not be empty"),
        ({"temprature": 1}, 400, "temprature", "did you mean 'temperature'?"),
        ({"tools": [{}]}, 400, "tools", "tools.0.function"),
        ({"tool_choice": "required"}, 400, "tool_choice", "auto and none"),
        ({"presence_penalty": 0.5}, 400, "presence_penalty", "not served here"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format", "not served here"),
        ({"continue_final_message": True}, 400, "messages", "must be the assistant's"),
        ({"add_generation_prompt": False}, 400, "add_generation_prompt", "alone"),
    ],
)
def test_bad_input_is_refused_in_words(url: str, body: Any, status: int, param: str | None, message: str) -> None:
    if isinstance(body, dict):
        body = {"model": "nano", "messages": [{"role": "user", "content": "1"}], **body}
    response = httpx2.post(url + "/chat/completions", content=json.dumps(body).encode())
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (status, param)
    assert message in error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize("prompt", [[], [[]], [10**9], [-1], [["a"]], 3])
def test_bad_prompts_are_refused(url: str, prompt: Any) -> None:
    response = httpx2.post(url + "/completions", json={"model": "nano", "prompt": prompt})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "prompt")


def test_what_asks_for_nothing_is_taken(url: str) -> None:
    nothing = {
        "presence_penalty": 0,
        "tools": [],
        "response_format": {"type": "text"},
        "user": "me",
        "logit_bias": None,
    }
    body = {"model": "nano", "messages": [{"role": "developer", "content": [{"type": "text", "text": "1"}]}], **nothing}
    assert httpx2.post(url + "/chat/completions", json={**body, "max_tokens": 2}).status_code == 200


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (b"GET /v1/models HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        (b"GET /v1/models/ HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        (b"GET /v1/models HTTP/1.1\r\n\r\n", 400),
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
        (b"GET /v2 HTTP/1.1\r\nHost: h\r\n\r\n", 404),
        (b"POST /v1/completions HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        (b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n{", 400),
        (b"PUT /v1/models HTTP/1.1\r\nHost: h\r\n\r\n", 405),
        (b"GET / HTTP/9.9\r\nHost: h\r\n\r\n", 505),
        (b"nonsense\r\n\r\n", 400),
    ],
)
def test_plain_http(url: str, said: bytes, status: int) -> None:
    host, port = url.removeprefix("http://").removesuffix("/v1").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(said)
        head = connection.makefile("rb")
        first = head.readline()
        assert int(first.split()[1]) == status
        headers = dict(line.decode().lower().strip().split(": ", 1) for line in iter(head.readline, b"\r\n"))
        assert isinstance(json.loads(head.read(int(headers["content-length"]))), dict)


def test_requests_that_come_together_are_one_call(here: ModelServer, engine: HFEngine) -> None:
    """And each is answered as if it had come alone."""
    before = here.batcher.calls
    asked = [Request(f"{i}+", 2, Sampling(12), i) for i in range(24)]
    remote = build("engine", {"name": "openai", "model": "nano", "base_url": here.url, "tokenizer": "nano"})
    theirs = remote.generate(asked)
    assert here.batcher.calls - before < 24
    for request, row in zip(asked, theirs, strict=True):
        [alone] = engine.generate([request])
        assert [e.text for e in alone] == [e.text for e in row]


def test_jobs_that_wait_are_one_call_a_sampling(engine: HFEngine) -> None:
    batcher = Batcher(ServedEngine(engine))
    asked = [Job([Request(str(i), 1, Sampling(4 + i % 2), i)]) for i in range(6)]
    blocking = batcher.submit(Job([Request("1", 1, Sampling(64), 0)]))
    for job in asked:
        batcher.submit(job)
    batcher.leave(asked[5])
    next(blocking.events())
    found = [next(job.events()) for job in asked[:5]]
    assert [len(rows[0][0].tokens) <= 4 + i % 2 for i, rows in enumerate(found)] == [True] * 5  # type: ignore[index]
    # Nobody waits for the last, so it is not generated.
    assert asked[5].told.empty()
    assert batcher.calls <= 3
    batcher.stop()
    with pytest.raises(RunError, match="stopping"):
        raise next(batcher.submit(Job(asked[0].requests)).events())  # type: ignore[misc]


def test_tokens_are_told_while_others_are_still_to_come(engine: HFEngine) -> None:
    """Told of its first tokens, we stop the engine: had they come at the end only, there would be nothing to stop."""
    batcher = Batcher(ServedEngine(engine))
    job = batcher.submit(Job([Request("1", 3, Sampling(90), 0)], live=True))
    events = job.events()
    first = next(events)
    batcher.engine.stopping.set()
    rest = list(events)
    assert isinstance(first, Token)
    assert isinstance(rest[-1], RunError)
    assert len(rest) < 3 * 90
    batcher.stop()


def test_live_tokens_are_those_of_the_responses(engine: HFEngine) -> None:
    """Also as rows end at different times and change places."""
    batcher = Batcher(ServedEngine(engine))
    asked = [Request(str(i), 6, Sampling(60, stop=("1", "2", "3", "4")), i) for i in range(4)]
    *tokens, rows = batcher.submit(Job(asked, live=True)).events()
    told: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for event in tokens:
        assert isinstance(event, Token)
        told.setdefault((event.request, event.sample), []).append((event.token, event.logprob))
    assert isinstance(rows, list)
    assert len({len(e.tokens) for row in rows for e in row}) > 3
    for i, row in enumerate(rows):
        for j, episode in enumerate(row):
            assert [t for t, _ in told[i, j]] == episode.tokens.tolist()
            assert episode.logprobs is not None
            assert [p for _, p in told[i, j]] == episode.logprobs.tolist()
    batcher.stop()


def test_a_fault_in_the_engine_is_told_and_the_server_goes_on(
    here: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("out of cheese")

    body = {"model": "nano", "prompt": "1", "max_tokens": 2}
    monkeypatch.setattr(here.engine, "generate", broken)
    for stream in (False, True):
        response = httpx2.post(here.url + "/completions", json={**body, "stream": stream})
        assert response.status_code == 500
        assert response.json()["error"]["message"] == "ValueError: out of cheese"
    monkeypatch.undo()
    assert httpx2.post(here.url + "/completions", json=body).status_code == 200


def test_characters_of_several_tokens_appear_when_they_are_whole() -> None:
    class Bytes:
        def decode(self, ids: list[int]) -> str:
            return bytes(ids).decode("utf-8", "replace")

    text = "a€b😀ü"
    detokenizer = Detokenizer(Bytes())  # type: ignore[arg-type]
    shown = [detokenizer.feed(byte) for byte in text.encode()]
    assert shown == ["a", "", "", "€", "b", "", "", "", "😀", "", "ü"]
    assert detokenizer.rest() == ""
    cut = Detokenizer(Bytes())  # type: ignore[arg-type]
    assert [cut.feed(byte) for byte in "a€".encode()[:3]] == ["a", "", ""]
    assert cut.rest() == "\ufffd"


@given(st.text(st.sampled_from("ab ▁€é😀\n<"), max_size=12), st.sampled_from(["bytes", "words"]))
def test_texts_of_tokens_add_up(text: str, kind: str) -> None:
    """With tokens that are pieces of characters, and with tokenizers that take the first space away."""
    tokenizer = TOKENIZERS[kind]
    ids = tokenizer.encode(text).ids

    class Decoding:
        def decode(self, tokens: list[int]) -> str:
            return tokenizer.decode(tokens)

    detokenizer = Detokenizer(Decoding())  # type: ignore[arg-type]
    shown = [detokenizer.feed(token) for token in ids]
    assert "".join(shown) + (detokenizer.rest() if ids else "") == tokenizer.decode(ids)


def test_a_key_is_asked_for(engine: HFEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(ModelServer(engine, "nano", ("127.0.0.1", 0), key="open sesame")) as server:
        spec = {"name": "openai", "model": "nano", "base_url": server.url, "api_key_env": "ASSAY_TEST_KEY"}
        monkeypatch.setenv("ASSAY_TEST_KEY", "open barley")
        with pytest.raises(UsageError, match=r"does not let us in \(401: the key is missing or wrong\)") as raised:
            build("engine", spec).generate(REQUESTS[:1])
        assert "barley" not in str(raised.value)
        monkeypatch.setenv("ASSAY_TEST_KEY", "open sesame")
        assert build("engine", spec).generate(REQUESTS[:1])[0][0].stop != "error"


def test_a_port_that_is_taken(here: ModelServer, engine: HFEngine) -> None:
    with pytest.raises(UsageError, match=r"cannot serve at 127.0.0.1:\d+: .*; take another --port"):
        ModelServer(engine, "nano", ("127.0.0.1", here.address[1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["./none"], "model.source: no folder ./none"),
        (["openai:m@http://h/v1"], "is served already"),
        (["nano", "--api-key-env", "ASSAY_NO_SUCH_VARIABLE"], "is not set"),
        (["nano", "--max-tokens", "0"], "--max-tokens must be positive"),
    ],
)
def test_what_cannot_be_served(arguments: list[str], message: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["serve", *arguments])
    assert ended.value.code == 2
    assert message in capfd.readouterr().err


def test_an_interrupt_stops_it_at_once_and_quietly(tmp_path: Path) -> None:
    process, url = start(tmp_path / "log", "model.nano.context=4096")
    body = {"model": "nano", "prompt": "1", "max_tokens": 4000, "n": 64, "stream": True, "seed": 1}
    with httpx2.stream("POST", url + "/completions", json=body, timeout=60) as response:
        lines = response.iter_lines()
        assert next(lines).startswith("data: ")  # it is in the midst of it
        os.kill(process.pid, signal.SIGINT)
        process.join(60)
    assert process.exitcode == 0
    assert (tmp_path / "log").read_text().splitlines()[-1] == "stopped"
    assert "Traceback" not in (tmp_path / "log").read_text()
