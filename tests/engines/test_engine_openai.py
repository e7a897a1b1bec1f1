"""The engine over OpenAI's protocol, against a server that fails on purpose."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faulty import (
    Act,
    Faulty,
    answer,
    choice,
    choices,
    cut_stream,
    fine,
    hang,
    hang_up,
    raw,
    send,
    serving,
    status,
    texts,
    truncated,
)
from hypothesis import given
from hypothesis import strategies as st

from assay.engines.base import Engine, Request, Sampling
from assay.engines.ended import Hear, listening
from assay.engines.openai.limits import Limiter, Window, retry_after
from assay.engines.openai.vocabulary import Alphabet
from assay.errors import UsageError
from assay.media import MARK, Picture
from assay.papers.rewards.s034_soft_verifier import JudgedReward
from assay.registry import build
from assay.rewards.judges.principles import PrincipleJudge
from assay.rewards.judges.reference_judge import ReferenceJudge
from assay.types import Message, Task

pytest.importorskip("httpx2", reason="engine openai needs httpx2: pip install assay[openai]")

EIGHT = Sampling(max_tokens=8)


@pytest.fixture
def server() -> Iterator[Faulty]:
    with serving() as faulty:
        yield faulty


def engine_at(url: str, **options: Any) -> Any:
    given = {"model": "good-model", "base_url": url, "backoff": 1e-3, **options}
    return build("engine", {"name": "openai", **given})


def requests(*prompts: str, n: int = 1, sampling: Sampling = EIGHT) -> list[Request]:
    return [Request(prompt, n, sampling, seed=7) for prompt in prompts]


def test_what_is_asked(server: Faulty) -> None:
    engine = engine_at(server.url + "/", json_schema={"type": "object"}, extra={"min_p": 0.1}, omit=["seed"])
    assert isinstance(engine, Engine)
    system = {"role": "system", "content": "Be brief."}
    sampling = Sampling(5, 0.5, 0.9, 3, ("END",))
    engine.generate([Request((system, {"role": "user", "content": "Hi"}), 2, sampling, 11)])
    [seen] = server.seen
    shape = {"name": "answer", "schema": {"type": "object"}, "strict": True}
    assert seen == {
        "path": "/v1/chat/completions",
        "model": "good-model",
        "messages": [system, {"role": "user", "content": "Hi"}],
        "n": 2,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "max_tokens": 5,
        "stop": ["END"],
        "include_stop_str_in_output": True,
        "logprobs": True,
        "response_format": {"type": "json_schema", "json_schema": shape},
        "min_p": 0.1,
    }


def test_pictures_are_parts_of_a_message(server: Faulty) -> None:
    pytest.importorskip("PIL", reason="pip install assay[vision]")
    shown, other = Picture.of(np.zeros((2, 2, 3), dtype=np.uint8)), Picture.of(np.ones((2, 2, 3), dtype=np.uint8))
    message: Message = {"role": "user", "content": f"Is {MARK} like {MARK}?", "images": (shown, other)}
    engine_at(server.url).generate([Request((message,), 1, EIGHT, 1)])
    assert server.seen[0]["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Is "},
                {"type": "image_url", "image_url": {"url": shown.url}},
                {"type": "text", "text": " like "},
                {"type": "image_url", "image_url": {"url": other.url}},
                {"type": "text", "text": "?"},
            ],
        }
    ]
    with pytest.raises(UsageError, match="1 marks '<image>' for 2 pictures"):
        engine_at(server.url).generate([Request(({**message, "content": MARK},), 1, EIGHT, 1)])
    with pytest.raises(UsageError, match="pictures go to a server as messages"):
        engine_at(server.url, tokenizer="nano").encode((message,))


def test_prefixes(server: Faulty) -> None:
    chat = engine_at(server.url)
    begun = Request("Q", 1, EIGHT, 1, prefix=tuple(chat.encode_response("So ", end=False).tolist()))
    with pytest.raises(UsageError, match="continue_final_message = true"):
        chat.generate([begun])
    [[episode]] = engine_at(server.url, continue_final_message=True).generate([begun])
    assert server.seen[-1]["messages"] == [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "So "}]
    assert server.seen[-1]["continue_final_message"] is True
    assert server.seen[-1]["add_generation_prompt"] is False
    assert chat.decode(episode.prompt) == "QSo "
    engine_at(server.url, api="completions").generate([begun])
    assert (server.seen[-1]["path"], server.seen[-1]["prompt"]) == ("/v1/completions", "QSo ")
    with pytest.raises(UsageError, match="beams"):
        chat.generate([Request("Q", 1, EIGHT, 1, beam=True)])


@pytest.mark.parametrize(
    "fault",
    [
        status(429, headers={"Retry-After": "0"}),
        status(500),
        status(503, headers={"Retry-After": "soon"}),
        hang,
        hang_up,
        truncated,
        cut_stream,
        raw(b'{"choices": [{'),
        raw(b"[]"),
        raw(b"<html>"),
        raw(b'{"error": {"message": "upstream"}}'),
        raw(b'{"choices": null}'),
        raw(b'{"choices": [{"message": {"content": 3}}]}'),
        raw(b'{"choices": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        choice(message={"content": None}),
        choices(lambda n: n - 1),
    ],
)
def test_a_fault_that_passes_changes_nothing(server: Faulty, fault: Act) -> None:
    server.acts = [fault, fault]
    engine = engine_at(server.url, retries=2, timeout=0.15 if fault is hang else 5.0)
    got = engine.generate(requests("a", n=2))
    assert texts(got) == [["said a 0", "said a 1"]]
    assert (engine.usage.requests, engine.usage.retries, engine.usage.failed) == (3, 2, 0)
    assert server.seen[0] == server.seen[1] == server.seen[2]
    engine.close()


def test_what_fails_for_good_is_an_error_and_nothing_else_is_lost(server: Faulty) -> None:
    server.choose = lambda body: {"b": status(500, "broken"), "d": status(400, "too long")}.get(
        body["messages"][0]["content"]
    )
    engine = engine_at(server.url, retries=3)
    a, b, c, d = engine.generate(requests("a", "b", "c", "d", n=2))
    assert texts([a, c]) == [["said a 0", "said a 1"], ["said c 0", "said c 1"]]
    for episode in (*b, *d):
        assert (episode.stop, episode.text, len(episode.tokens), len(episode.mask)) == ("error", "", 0, 0)
    assert "500: broken, after 4 attempts" in b[0].meta["error"]
    assert "400: too long" in d[1].meta["error"]
    assert engine.decode(b[0].prompt) == "b"
    # Four attempts of b, one of each other: what is refused for good is not asked again.
    assert (engine.usage.requests, engine.usage.retries, engine.usage.failed) == (7, 3, 2)


def test_fewer_and_more_responses_than_asked_for(server: Faulty) -> None:
    server.choose = lambda body: choices(lambda n: n - 1 if body["messages"][0]["content"] == "few" else n + 2)
    few, many = engine_at(server.url, retries=1).generate(requests("few", "many", n=3))
    assert [e.text for e in few] == ["said few 0", "said few 1", ""]
    assert few[2].stop == "error"
    assert "2 of 3 responses" in few[2].meta["error"]
    assert [e.text for e in many] == ["said many 0", "said many 1", "said many 2"]


def test_responses_may_be_asked_for_one_by_one(server: Faulty) -> None:
    [row] = engine_at(server.url, max_n=2).generate(requests("a", n=5))
    assert [e.text for e in row] == ["said a 0", "said a 1"] * 2 + ["said a 0"]
    seeds = sorted((body["n"], body["seed"]) for body in server.seen)
    assert [n for n, _ in seeds] == [1, 2, 2]
    assert len({seed for _, seed in seeds}) == 3
    assert 7 in {seed for n, seed in seeds if n == 2}


def test_retry_after_is_waited_for_by_all(server: Faulty) -> None:
    server.acts = [status(429, headers={"Retry-After": "0.3"})]
    engine = engine_at(server.url, concurrency=1)
    engine.generate(requests("a", "b"))
    first, *later = server.times
    assert len(later) == 2
    assert min(later) - first >= 0.3


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(server: Faulty) -> None:
    server.choose = lambda body: status(429, headers={"Retry-After": "3600"})
    [[episode]] = engine_at(server.url, total_timeout=60).generate(requests("a"))
    assert "past 60 s" in episode.meta["error"]


def test_retry_after_as_number_and_date() -> None:
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({}) is None
    assert retry_after({"retry-after": "later"}) is None
    in_an_hour = retry_after({"retry-after": formatdate(4102444800, usegmt=True)})
    assert in_an_hour is not None
    assert in_an_hour > 1e6
    assert retry_after({"retry-after": formatdate(0, usegmt=True)}) == 0


@pytest.mark.parametrize(
    ("act", "options", "message"),
    [
        (
            status(401, "bad key", code="invalid_api_key"),
            {},
            r"does not let us in \(401: bad key\); name the environment",
        ),
        (status(404, "no such model"), {"model": "god-model"}, "has no model 'god-model'; did you mean 'good-model'"),
        (status(404), {}, "does not serve this kind of request"),
        (status(405), {"model": "x"}, "has no model 'x'"),
        (status(307), {}, "does not serve"),
        (status(429, "pay", code="insufficient_quota"), {}, r"no more for this key \(429: pay\)"),
        (status(400, "Unknown: top_k", param="top_k"), {}, "does not take the field top_k"),
    ],
)
def test_a_wrong_key_address_or_model_is_one_line(server: Faulty, act: Act, options: Any, message: str) -> None:
    server.choose = lambda body: act
    with pytest.raises(UsageError, match=message) as raised:
        engine_at(server.url, **options).generate(requests("a", "b", sampling=Sampling(8, top_k=4)))
    assert "\n" not in str(raised.value)


def test_an_address_where_nothing_speaks_the_protocol(server: Faulty) -> None:
    server.choose, server.models = lambda body: status(404), []
    with pytest.raises(UsageError, match="does base_url end in /v1"):
        engine_at(server.url).generate(requests("a"))


def test_a_key_that_expires_later_loses_nothing(server: Faulty) -> None:
    engine = engine_at(server.url)
    assert texts(engine.generate(requests("a"))) == [["said a 0"]]
    server.choose = lambda body: status(401, "expired")
    [[episode]] = engine.generate(requests("b"))
    assert episode.stop == "error"
    assert "401: expired" in episode.meta["error"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "localhost:80"}, "http://host:port/v1"),
        ({"base_url": "http://me:secret@host/v1"}, "must not hold a password"),
        ({"api_key_env": "ASSAY_NO_SUCH_VARIABLE"}, "ASSAY_NO_SUCH_VARIABLE, named by api_key_env, is not set"),
        ({"concurrency": 0}, "concurrency must be positive"),
        ({"retries": -1}, "retries must not be negative"),
        ({"budget": 1.0}, "a budget needs price_prompt"),
        ({"price_prompt": -1.0}, "prices must not be negative"),
        ({"api": "responses"}, "option api = 'responses'"),
        ({"tokenizer": "./none"}, "no tokenizer can be had"),
        ({"cache": "/dev/null/x"}, "cache /dev/null/x: "),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine_at(
            **{"url": "http://127.0.0.1:1/v1", **{"url" if k == "base_url" else k: v for k, v in options.items()}}
        )


def test_the_key_goes_where_it_is_meant_to_and_is_not_told(
    server: Faulty, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.delenv("ASSAY_API_KEY", raising=False)
    engine_at(server.url).generate(requests("a"))
    assert "Authorization" not in server.headers[-1]
    monkeypatch.setenv("MY_KEY", "sk-mine")
    engine = engine_at(server.url, api_key_env="MY_KEY", retries=0)
    server.acts = [status(500, "no use of sk-mine")]
    [[episode]] = engine.generate(requests("a"))
    assert server.headers[-1]["Authorization"] == "Bearer sk-mine"
    assert "no use of ***" in episode.meta["error"]
    assert "sk-mine" not in caplog.text + repr(engine) + repr(engine.server) + str(engine.usage)


def test_what_a_server_refuses_to_tell_is_not_asked_again(server: Faulty) -> None:
    def strict(body: dict[str, Any]) -> Act | None:
        return status(400, "You cannot have logprobs", param="logprobs") if "logprobs" in body else None

    server.choose = strict
    engine = engine_at(server.url)
    assert texts(engine.generate(requests("a"))) == [["said a 0"]]
    assert texts(engine.generate(requests("b"))) == [["said b 0"]]
    assert ["logprobs" in body for body in server.seen] == [True, False, False]


def test_concurrency_is_limited(server: Faulty) -> None:
    together = threading.Barrier(3)

    def act(handler: Any, body: dict[str, Any]) -> None:
        together.wait(10)  # returns only when three are open at once
        fine(handler, body)

    server.choose = lambda body: act
    engine_at(server.url, concurrency=3).generate(requests(*"abcdefghi"))
    assert server.widest == 3


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 30)), max_size=40), st.integers(1, 40))
def test_no_minute_has_more_than_its_limit(sent: list[tuple[int, int]], limit: int) -> None:
    """However requests come, those within any sixty seconds stay within the limit, or are one that alone exceeds it."""
    now = 0.0
    window = Window(limit, lambda: now)
    taken: list[tuple[float, int]] = []
    for eighths, amount in sent:
        now += eighths / 8
        while (wait := window.delay(amount)) > 0:
            now += wait
        window.take(amount)
        taken.append((now, amount))
    for i, (when, amount) in enumerate(taken):
        before = sum(a for t, a in taken[:i] if t > when - 60)
        assert before + amount <= limit or before == 0 or amount == 0


def test_a_limiter_waits_no_longer_than_it_must() -> None:
    """Four requests at two a minute go at 0, 0, 60, 60; tokens that were not needed are given back."""
    now, went = 0.0, []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def play() -> None:
        limiter = Limiter(requests=2, tokens=0, clock=lambda: now, sleep=sleep)
        for _ in range(4):
            await limiter.admit(5)
            went.append(now)
        limiter = Limiter(requests=0, tokens=100, clock=lambda: now, sleep=sleep)
        limiter.settle(await limiter.admit(90), 10)
        await limiter.admit(90)
        went.append(now)
        await limiter.admit(1)
        went.append(now)

    asyncio.run(play())
    assert went == pytest.approx([0, 0, 60, 60, 60, 120], abs=1e-6)


def test_costs_are_counted(server: Faulty) -> None:
    def act(handler: Any, body: dict[str, Any]) -> None:
        said = answer(body, body["n"])
        said["usage"] = {
            "prompt_tokens": 1000,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 400},
        }
        send(handler, 200, said)

    server.choose = lambda body: act
    engine = engine_at(server.url, price_prompt=2.0, price_completion=8.0, price_cached=0.5)
    engine.generate(requests("a", "b"))
    usage = engine.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (2000, 800, 100)
    # 2 * (600 * 2 + 400 * 0.5 + 50 * 8) / 1e6
    assert usage.cost == pytest.approx(0.0036)
    assert str(usage).startswith("2 requests (0 retries), 0 from the cache, 0 failed; 2000 + 100 tokens; cost 0.0036")


def test_the_budget_is_not_exceeded_and_what_it_allows_is_used(server: Faulty) -> None:
    # A request costs 10 + 2 tokens and could take 8 for the response; of the prompt it is known that it has 81 at most.
    engine = engine_at(server.url, price_prompt=1e6, price_completion=1e6, budget=120, concurrency=8)
    rows = engine.generate(requests(*map(str, range(30))))
    done = [row[0] for row in rows if row[0].stop != "error"]
    assert engine.usage.cost == 12 * len(done) <= 120
    assert len(server.seen) == len(done)
    # One more might have cost 89.
    assert 120 - engine.usage.cost < 89 <= 120 - engine.usage.cost + 12
    assert all("of the budget of 120" in row[0].meta["error"] for row in rows if row[0].stop == "error")


def test_a_broken_answer_counts_against_the_budget(server: Faulty) -> None:
    server.acts = [truncated]
    engine = engine_at(server.url, price_prompt=1e6, price_completion=1e6, budget=150)
    [[episode]] = engine.generate(requests("0"))
    assert episode.stop == "error"
    assert engine.usage.doubtful == 89
    assert len(server.seen) == 1


def test_a_second_run_answers_from_the_cache(server: Faulty, tmp_path: Path) -> None:
    asked = requests("a", "b", n=2)
    first = engine_at(server.url, cache=str(tmp_path / "c")).generate(asked)
    again = engine_at(server.url, cache=str(tmp_path / "c"))
    assert texts(again.generate(asked)) == texts(first)
    assert (again.usage.cached, again.usage.requests, len(server.seen)) == (2, 0, 2)
    # Anything else that is asked is another request.
    for other in (
        [Request("a", 2, EIGHT, 8)],
        requests("a", n=1),
        requests("a", n=2, sampling=Sampling(8, temperature=0.5)),
    ):
        before = len(server.seen)
        again.generate(other)
        assert len(server.seen) == before + 1


def test_failures_are_not_cached_and_damage_is_mended(server: Faulty, tmp_path: Path) -> None:
    engine = engine_at(server.url, cache=str(tmp_path), retries=0)
    server.acts = [choices(lambda n: n - 1), status(500)]
    for _ in range(2):
        assert engine.generate(requests("a", n=2))[0][1].stop == "error"
    assert texts(engine.generate(requests("a", n=2))) == [["said a 0", "said a 1"]]
    [file] = tmp_path.rglob("*.json")
    whole = file.read_bytes()
    for damage in (
        b"",
        whole[:50],
        b"[]",
        whole.replace(b'"choices"', b'"chosen"'),
        whole.replace(b"good-model", b"bad"),
    ):
        file.write_bytes(damage)
        before = len(server.seen)
        assert texts(engine.generate(requests("a", n=2))) == [["said a 0", "said a 1"]]
        assert len(server.seen) == before + 1
        assert json.loads(file.read_bytes())["answer"] == json.loads(whole)["answer"]


def _in_a_child(url: str, folder: str, results: Any) -> None:
    engine = engine_at(url, cache=folder)
    results.put((texts(engine.generate(requests(*map(str, range(25))))), engine.usage.requests, engine.usage.cached))


def test_two_processes_share_a_cache(server: Faulty, tmp_path: Path) -> None:
    import multiprocessing

    context = multiprocessing.get_context("fork")
    results: Any = context.SimpleQueue()
    # This process has an engine with a thread already, which does not live on in the children.
    engine = engine_at(server.url, cache=str(tmp_path))
    engine.generate(requests("0"))
    children = [context.Process(target=_in_a_child, args=(server.url, str(tmp_path), results)) for _ in range(2)]
    for child in children:
        child.start()
    found = [results.get() for _ in children]
    for child in children:
        child.join()
    expected = [[f"said {i} 0"] for i in range(25)]
    for said, asked, cached in found:
        assert said == expected
        assert asked + cached == 25
        assert cached >= 1
    before = len(server.seen)
    assert texts(engine.generate(requests(*map(str, range(25))))) == expected
    assert len(server.seen) == before
    assert len(list(tmp_path.rglob("*.json"))) == 25
    assert not list(tmp_path.rglob(".partial-*"))


def _generate_in_a_child(engine: Any, results: Any) -> None:
    results.put(texts(engine.generate(requests("child"))))


def test_an_engine_works_on_in_a_forked_child(server: Faulty) -> None:
    import multiprocessing

    engine = engine_at(server.url)
    engine.generate(requests("parent"))
    context = multiprocessing.get_context("fork")
    results: Any = context.SimpleQueue()
    child = context.Process(target=_generate_in_a_child, args=(engine, results))
    child.start()
    assert results.get() == [["said child 0"]]
    child.join()
    assert texts(engine.generate(requests("parent"))) == [["said parent 0"]]


def test_it_can_be_called_inside_an_event_loop_and_from_threads(server: Faulty) -> None:
    engine = engine_at(server.url)

    async def notebook() -> Any:
        return engine.generate(requests("a"))

    assert texts(asyncio.run(notebook())) == [["said a 0"]]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda i=i: found.append(engine.generate(requests(str(i))))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts(rows)[0][0] for rows in found) == [f"said {i} 0" for i in range(4)]
    engine.close()
    assert texts(engine.generate(requests("a"))) == [["said a 0"]]


@pytest.mark.parametrize("hear", [None, lambda *_: None], ids=["unheard", "heard"])
def test_an_interrupt_ends_the_wait_and_the_engine_lives(server: Faulty, hear: Hear | None) -> None:
    # Python has no handler of its own where it was started with interrupts ignored, as in a shell's background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def act(handler: Any, body: dict[str, Any]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        hang(handler, body)

    server.acts = [act]
    engine = engine_at(server.url)
    try:
        with pytest.raises(KeyboardInterrupt), listening(hear):
            engine.generate(requests("a"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert texts(engine.generate(requests("b"))) == [["said b 0"]]


def test_responses_are_told_of_as_they_come(server: Faulty) -> None:
    """In the thread that asks, each while others are on their way: "slow" is answered once "quick" has been heard of.
    What could not be had is not told."""
    heard: list[tuple[Request, str]] = []
    quick = threading.Event()

    def hear(request: Request, text: str) -> None:
        assert threading.current_thread() is threading.main_thread()
        heard.append((request, text))
        if request.prompt == "quick":
            quick.set()

    def choose(body: dict[str, Any]) -> Act | None:
        prompt = body["messages"][-1]["content"]
        if prompt == "lost":
            return status(400)

        def act(handler: Any, body: dict[str, Any]) -> None:
            assert prompt == "quick" or quick.wait(20)
            fine(handler, body)

        return act

    server.choose = choose
    asked = requests("slow", "quick", "lost", n=2)
    with listening(hear):
        made = engine_at(server.url).generate(asked)
    assert texts(made)[:2] == [["said slow 0", "said slow 1"], ["said quick 0", "said quick 1"]]
    assert [e.stop for e in made[2]] == ["error"] * 2
    assert heard == [(asked[i], text) for i in (1, 0) for text in texts(made)[i]]


def test_what_a_listener_raises_ends_the_call(server: Faulty) -> None:
    def hear(request: Request, text: str) -> None:
        raise KeyError(text)

    engine = engine_at(server.url)
    with pytest.raises(KeyError, match=r"said [ab] 0"), listening(hear):
        engine.generate(requests("a", "b"))
    assert texts(engine.generate(requests("c"))) == [["said c 0"]]


@pytest.mark.parametrize(
    ("more", "text", "stop"),
    [
        ({}, "said a 0", "eos"),
        ({"finish_reason": "length"}, "said a 0", "length"),
        ({"finish_reason": "stop", "stop_reason": "END"}, "said a 0END", "stop"),
        ({"message": {"content": "x END"}}, "x END", "stop"),
        ({"message": {"content": None}, "finish_reason": "length"}, "", "length"),
        ({"message": {"content": None, "refusal": "I will not"}}, "I will not", "eos"),
        ({"finish_reason": "content_filter"}, "said a 0", "error"),
        ({"finish_reason": "tool_calls"}, "said a 0", "eos"),
    ],
)
def test_why_a_response_ended(server: Faulty, more: dict[str, Any], text: str, stop: str) -> None:
    server.acts = [choice(**more)]
    [[episode]] = engine_at(server.url).generate(requests("a", sampling=Sampling(8, stop=("END",))))
    assert (episode.text, episode.stop) == (text, stop)
    assert ("error" in episode.meta) == (stop == "error")
    assert episode.logprobs is None


def test_no_content_is_no_response(server: Faulty) -> None:
    server.choose = lambda body: choice(message={"content": None, "tool_calls": []})
    [[episode]] = engine_at(server.url, retries=0).generate(requests("a"))
    assert episode.stop == "error"
    assert "0 of 1 responses (content: null)" in episode.meta["error"]


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_not_read_to_its_end(server: Faulty, status: int) -> None:
    sent = []

    def flood(handler: Any, body: dict[str, Any]) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        with contextlib.suppress(OSError):
            while len(sent) < 300:
                handler.wfile.write(b" " * (1 << 20))
                sent.append(1)
        handler.close_connection = True

    server.choose = lambda body: flood
    [[episode]] = engine_at(server.url, retries=0, timeout=60.0).generate(requests("a"))
    assert "answered with more than 64 MB" in episode.meta["error"]
    assert len(sent) < 100


def test_a_nested_answer_on_disk_is_asked_again(server: Faulty, tmp_path: Path) -> None:
    engine_at(server.url, cache=str(tmp_path)).generate(requests("a"))
    [kept] = tmp_path.rglob("*.json")
    kept.write_bytes(b"[" * 100_000)
    assert texts(engine_at(server.url, cache=str(tmp_path)).generate(requests("a"))) == [["said a 0"]]


def test_reasoning_is_kept_apart(server: Faulty) -> None:
    server.acts = [choice(message={"content": "4", "reasoning_content": "2 + 2"})]
    [[episode]] = engine_at(server.url).generate(requests("a"))
    assert (episode.text, episode.meta["reasoning"]) == ("4", "2 + 2")


SHOWN = {
    "content": [
        {"token": "Gr", "bytes": list(b"Gr"), "logprob": -0.5},
        {"token": "?", "bytes": [0xC3], "logprob": -1.5},
        {"token": "?", "bytes": [0xBC], "logprob": -0.25},
        {"token": "<eos>", "bytes": [], "logprob": -2.0},
    ]
}


@pytest.mark.parametrize(
    ("temperature", "options", "told"),
    [(1.0, {}, True), (0.0, {}, True), (0.7, {}, False), (0.7, {"logprobs_after_temperature": True}, True)],
)
def test_log_probabilities_of_tokens(server: Faulty, temperature: float, options: Any, told: bool) -> None:
    server.acts = [choice(message={"content": "Grü"}, logprobs=SHOWN)]
    engine = engine_at(server.url, **options)
    [[episode]] = engine.generate(requests("a", sampling=Sampling(8, temperature)))
    assert len(episode.tokens) == 4
    assert engine.decode(episode.tokens) == episode.text == "Grü"
    assert engine.decode(episode.tokens[:1]) == "Gr"
    if told:
        np.testing.assert_array_equal(episode.logprobs, np.float32([-0.5, -1.5, -0.25, -2.0]))
    else:
        assert episode.logprobs is None


@pytest.mark.parametrize("said", ["x", "x END", "x EN"])
def test_a_stop_string_stays_with_its_token(server: Faulty, said: str) -> None:
    """Whatever of it the server leaves in the text, where it tells the tokens."""
    rows = [("x", -0.5), (" EN", -1.0), ("D.", -2.0)]
    shown = {"content": [{"token": t, "bytes": list(t.encode()), "logprob": p} for t, p in rows]}
    server.acts = [choice(message={"content": said}, logprobs=shown)]
    engine = engine_at(server.url)
    [[episode]] = engine.generate(requests("a", sampling=Sampling(8, stop=("END",))))
    assert (episode.text, episode.stop, len(episode.tokens)) == ("x END.", "stop", 3)
    assert engine.decode(episode.tokens) == episode.text
    np.testing.assert_array_equal(episode.logprobs, np.float32([-0.5, -1.0, -2.0]))


def test_log_probabilities_of_something_else_are_not_taken(server: Faulty) -> None:
    server.acts = [choice(message={"content": "other"}, logprobs=SHOWN)]
    engine = engine_at(server.url)
    [[episode]] = engine.generate(requests("a"))
    assert episode.logprobs is None
    assert engine.decode(episode.tokens) == "other"


@given(st.text(), st.booleans())
def test_the_alphabet_gives_text_back(text: str, end: bool) -> None:
    alphabet = Alphabet()
    tokens = alphabet.encode_response(text, end)
    assert alphabet.decode(tokens) == text.encode("utf-8", "replace").decode()
    assert tokens.dtype == np.int64
    pieces = [(c, c.encode("utf-8", "replace")) for c in text]
    ids = alphabet.align(pieces, None)
    assert alphabet.decode(ids) == text.encode("utf-8", "replace").decode()
    assert Alphabet().align(pieces, None).tolist() == ids.tolist()


def test_a_judge_that_is_down_abstains(make_batch: Any) -> None:
    with serving() as server:
        url = server.url
    spec = {"name": "openai", "model": "m", "base_url": url, "retries": 1, "backoff": 1e-3}
    task = Task("t", "2+2?", "4")
    verdicts = ReferenceJudge(spec).map([(task, "4"), (task, "5")])
    assert [(v.passed, v.feedback) for v in verdicts] == [(None, "the judge failed")] * 2
    assert PrincipleJudge(spec, last=True).scores([(task, ["a", "b"])]) == [None]
    reward = JudgedReward(ReferenceJudge(spec))(make_batch([3, 3], texts=["4", "5"], tasks=[task, task]))
    assert reward.valid is not None
    assert not reward.valid.any()
    assert reward.terms["abstained"].tolist() == [1, 1]


def test_once_nobody_is_there_others_do_not_wait_as_long() -> None:
    with serving() as server:
        url = server.url
    engine = engine_at(url, retries=3, concurrency=1)
    rows = engine.generate(requests(*"abcdefgh"))
    assert all(row[0].stop == "error" for row in rows)
    # Until it was known, up to four attempts each; from then on one.
    before = engine.usage.requests
    assert 8 <= before <= 8 * 4
    engine.generate(requests(*"abcdefgh"))
    assert engine.usage.requests == before + 8
