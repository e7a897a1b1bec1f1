"""Pictures in chat completions: as parts of a message, by ``data:`` URL, to a model that sees."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from policies.sighted import asked, picture, sighted
from serving import running_server, small_engine

from assay.engines.base import Request, Sampling
from assay.engines.hf import HFEngine
from assay.media import MARK
from assay.serve.server import ModelServer

pytest.importorskip("PIL", reason="pip install assay[vision]")


@pytest.fixture(scope="module")
def seeing() -> Iterator[ModelServer]:
    with running_server(ModelServer(HFEngine(sighted("llava")), "seer", ("127.0.0.1", 0))) as server:
        yield server


def post(server: ModelServer, content: Any, model: str = "seer") -> tuple[int, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 8}
    request = urllib.request.Request(
        f"{server.url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["error"]["message"]


def image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, "detail": "low"}}


def test_it_says_what_the_engine_says(seeing: ModelServer) -> None:
    text = [{"type": "text", "text": "what is "}, image(picture(0).url), {"type": "text", "text": "?"}]
    status, told = post(seeing, text)
    prompt = asked(f"what is {MARK}?", picture(0))
    [[here]] = HFEngine(sighted("llava")).generate([Request(prompt, 1, Sampling(max_tokens=8, temperature=0), 0)])
    assert status == 200 and told["choices"][0]["message"]["content"] == here.text
    assert told["usage"]["prompt_tokens"] == len(here.prompt) == 1 + 8 + 16 + 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.org/cat.png", "is no data:image/...;base64, URL"),
        ("data:image/png;base64,AAAA", "is none that Pillow can read"),
        ("data:image/png;base64,A?", "is no base 64"),
    ],
)
def test_nothing_is_fetched_and_nonsense_is_refused(seeing: ModelServer, url: str, said: str) -> None:
    status, message = post(seeing, [image(url)])
    assert status == 400 and said in message


def test_a_text_has_no_marks_of_its_own(seeing: ModelServer) -> None:
    status, message = post(seeing, [image(picture(0).url), {"type": "text", "text": f"and {MARK}"}])
    assert status == 400 and "must not have '<image>'" in message
    assert post(seeing, [{"type": "input_audio"}])[1].endswith("is not served here, only text and pictures")


def test_a_model_that_sees_nothing_says_so() -> None:
    with running_server(ModelServer(small_engine(), "nano", ("127.0.0.1", 0))) as server:
        status, message = post(server, [image(picture(0).url)], "nano")
    assert status == 400 and message.endswith("content of type 'image_url' is not served here, only text")
