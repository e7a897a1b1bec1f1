"""A name that is neither here nor on the hub is said to be so at once, with what is here and called nearly so."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants as hub
import pytest

from assay import cli
from assay.engines.target import resolve
from assay.errors import UsageError
from assay.policies.hub import names_hub, why_absent


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does: it has ``there``, a licensed model and one without a configuration, and nothing else."""

    asked: list[str]

    def do_HEAD(self) -> None:
        self.asked.append(self.path)
        name = self.path.strip("/").partition("/resolve/")[0]
        code, error = {
            "there": (200, ""),
            "licensed": (403, "GatedRepo"),
            "bare": (404, "EntryNotFound"),
            "down": (503, ""),
        }.get(name, (404, "RepoNotFound"))
        self.send_response(code)
        if error:
            self.send_header("X-Error-Code", error)
        for header in ("ETag", "X-Repo-Commit"):
            self.send_header(header, "0" * 40)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *rest: object) -> None: ...


def point_at(monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    address = f"http://127.0.0.1:{port}"
    monkeypatch.setattr(hub, "ENDPOINT", address)
    monkeypatch.setattr(hub, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What a hub of our own was asked for; the cache is empty."""
    monkeypatch.setattr(hub, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    point_at(monkeypatch, server.server_address[1])
    yield Hub.asked
    server.shutdown()
    server.server_close()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs here, one of them in ``runs``, and a folder that is neither run nor model."""
    for name in ("work/run0", "work/runs/countdown"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.toml").write_text("")
    (tmp_path / "work" / "rn00").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def refused(target: str) -> str:
    with pytest.raises(UsageError) as error:
        resolve(target)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.usefixtures("place")
def test_a_mistyped_name_is_told_from_what_the_hub_has(asked: list[str]) -> None:
    assert refused("rn0") == "no model 'rn0' on the hub and no folder of that name; did you mean 'run0'?"
    assert refused("cuontdown").endswith("; did you mean 'runs/countdown'?")
    assert refused("quite/different") == "no model 'quite/different' on the hub and no folder of that name"
    assert "no model on the hub can be called that" in refused("run 0") and "did you mean 'run0'?" in refused("run 0")
    assert asked == [f"/{n}/resolve/main/config.json" for n in ("rn0", "cuontdown", "quite/different")]


@pytest.mark.usefixtures("place")
def test_what_the_hub_has_or_is_not_sure_about_is_left_to_its_client(asked: list[str]) -> None:
    for name in ("there", "licensed", "bare", "down"):
        assert resolve(name).config.model.source == name
    assert len(asked) == 4


def test_a_copy_in_the_cache_is_enough(asked: list[str], tmp_path: Path) -> None:
    snapshot = tmp_path / "cache" / "models--gpt2"
    (snapshot / "snapshots" / "abc").mkdir(parents=True)
    (snapshot / "snapshots" / "abc" / "config.json").write_text("{}")
    (snapshot / "refs").mkdir()
    (snapshot / "refs" / "main").write_text("abc")
    assert why_absent("gpt2") is None and not asked
    assert why_absent("gpt3") is not None and len(asked) == 1


@pytest.mark.usefixtures("asked", "place")
def test_an_offline_machine_is_told_within_seconds(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        point_at(monkeypatch, free.getsockname()[1])  # bound and not listening: refused at once
        with pytest.raises(SystemExit) as end:
            cli.main(["eval", "rn0"])
        said = capfd.readouterr().err
        assert end.value.code == 2 and said.count("\n") == 1
        assert "the hub cannot be reached" in said and "did you mean 'run0'?" in said
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    assert "the hub cannot be reached" in refused("rn0") and "offline mode is enabled" in refused("rn0")


@pytest.mark.usefixtures("asked", "place")
def test_a_hub_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "0.3")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        point_at(monkeypatch, silent.getsockname()[1])
        begun = time.monotonic()
        assert "the hub cannot be reached" in refused("rn0")
        assert time.monotonic() - begun < 5


def test_only_what_can_be_nothing_else_is_asked_for(tmp_path: Path) -> None:
    assert names_hub("gpt2") and names_hub("org/model")
    for other in ("nano", "./gpt2", "/models/x", "~/x", "model.gguf", str(tmp_path)):
        assert not names_hub(other)


def test_a_recipe_whose_model_is_not_there_says_so_too(place: Path, asked: list[str]) -> None:
    (place / "r.toml").write_text('[model]\nsource = "nobody/made-this"\n')
    assert "no model 'nobody/made-this' on the hub" in refused("r.toml")
    assert asked
