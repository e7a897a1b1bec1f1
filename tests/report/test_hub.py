"""The card of a run, and its way to a hub and back: a stand-in that keeps what is pushed and gives it out again."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import run

from assay.errors import RunError, UsageError
from assay.records.checkpoints import last_checkpoint
from assay.report.card import model_card
from assay.report.hub import push

pytestmark = pytest.mark.usefixtures("one_thread")
COMMIT = "c" * 40
BOTH = """
import sys
import torch
from assay import cli
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import ModelConfig
try:
    cli.main(["push", sys.argv[1], "me/sums", "--message", "first"])
except SystemExit as ended:
    if ended.code:
        raise
there = CausalLM.load(ModelConfig(source="me/sums"), 0)
here = CausalLM.load(ModelConfig(source=sys.argv[2]), 0)
a, b = there.model.state_dict(), here.model.state_dict()
assert a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a), "other weights came back"
assert there.encode("3+4=").tolist() == here.encode("3+4=").tolist()
"""


class Hub(BaseHTTPRequestHandler):
    """As much of the hub's protocol as its client speaks to push a folder and to load a model."""

    files: dict[str, bytes]
    asked: list[tuple[str, str, Any]]
    refuse = False

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lines = [json.loads(line) for line in body.splitlines() if line.strip()]
        self.asked.append((self.path, self.headers.get("Authorization", ""), lines))
        if self.refuse:
            return self._answer(403, {"error": "no right to write here"})
        if self.path == "/api/repos/create":
            return self._answer(200, {"url": f"http://{self.headers['Host']}/me/sums"})
        if "/preupload/" in self.path:
            files = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in lines[0]["files"]]
            return self._answer(200, {"files": files})
        if "/commit/" in self.path:
            for line in lines:
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            address = f"http://{self.headers['Host']}/me/sums/commit/{COMMIT}"
            return self._answer(200, {"commitUrl": address, "commitOid": COMMIT, "success": True})
        return self._answer(200, {"errors": [], "warnings": []})  # the check of a card's metadata

    def do_HEAD(self) -> None:
        self._file(False)

    def do_GET(self) -> None:
        if self.path.startswith("/api/"):
            siblings = [{"rfilename": name} for name in self.files]
            listed = [{"type": "file", "path": n, "size": len(c), "oid": "0" * 40} for n, c in self.files.items()]
            about = {"id": "me/sums", "sha": COMMIT, "siblings": siblings, "tags": [], "private": True}
            return self._answer(200, listed if "/tree/" in self.path else about)
        return self._file(True)

    def _file(self, whole: bool) -> None:
        name = self.path.partition("/resolve/")[2].partition("/")[2].partition("?")[0]
        if not self.path.startswith("/me/sums/") or name not in self.files:
            self.send_response(404)
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        content = self.files[name]
        self.send_response(200)
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if whole:
            self.wfile.write(content)

    def _answer(self, code: int, body: Any) -> None:
        content = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *rest: object) -> None: ...


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("hub") / "sums", evaluate={"every": 0, "samples": 2}, train={"steps": 2})


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.files, Hub.asked, Hub.refuse = {}, [], False
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def child(finished: Path, hub: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Push a run and load it again, in a process whose hub is the stand-in: the client reads its address once."""
    environment = {**os.environ, "HF_ENDPOINT": hub, "HF_TOKEN": "hf_secret", "HF_HOME": str(home)}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2]), "HF_HUB_DISABLE_XET": "1"}
    environment.pop("HF_HUB_OFFLINE", None)
    policy = last_checkpoint(finished)[2] / "policy"
    return subprocess.run(
        [sys.executable, "-c", BOTH, str(finished), str(policy)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_model_goes_to_the_hub_and_comes_back(finished: Path, hub: str, tmp_path: Path) -> None:
    done = child(finished, hub, tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == f"{hub}/me/sums"
    assert {"README.md", "recipe.toml", "config.json", "model.safetensors", "tokenizer.json"} <= Hub.files.keys()
    assert not [name for name in Hub.files if "rollout" in name or "trainer" in name]
    assert Hub.files["README.md"].decode() == model_card(finished, "me/sums")
    created = next(lines[0] for path, _, lines in Hub.asked if path == "/api/repos/create")
    assert created.get("visibility") == "private" or created.get("private") is True
    assert all(who == "Bearer hf_secret" for _, who, _ in Hub.asked)
    [commit] = [lines for path, _, lines in Hub.asked if "/commit/" in path]
    assert commit[0]["value"]["summary"] == "first"


def test_a_hub_that_refuses(finished: Path, hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    Hub.refuse = True
    with pytest.raises(RunError, match=r"me/sums could not be pushed: .*no right to write here.*; the run is"):
        push(finished, "me/sums")
    assert Hub.files == {}


def test_the_card_says_what_was_done_and_how_far_it_got(finished: Path) -> None:
    card = model_card(finished, "me/sums")
    _, front, text = card.split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["library_name"] == "transformers" and "base_model" not in about
    [result] = about["model-index"][0]["results"]
    assert 0 <= result["metrics"][0]["value"] <= 1 and result["dataset"]["split"] == "held out, 6 tasks"
    assert "3 supervised steps and 2 steps of RL" in text and "reward function" in text
    rows = [line for line in text.splitlines() if line.startswith(("| before", "| after"))]
    assert len(rows) == 4 and [row.split("|")[2].strip() for row in rows] == ["0", "0", "2", "2"]
    assert "From before to after, pass@1 paired by task: " in text and 'name = "arithmetic"' in text


def test_a_card_of_a_run_whose_configuration_was_edited(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(re.sub(r"(?ms)^\[model\.?.*?(?=^\[(?!model))", "", config))
    assert "Made from a small Llama from scratch" in model_card(run, "me/sums"), "by the default"
    (run / "config.toml").write_text("[model\n")
    with pytest.raises(UsageError, match=r"config\.toml"):
        model_card(run, "me/sums")


def test_what_is_no_run_is_not_pushed(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run folder"):
        push(tmp_path, "me/sums")
    with pytest.raises(UsageError, match=r"has no checkpoint 'rl-000099'; it has rl-000000, rl-000002"):
        push(finished, "me/sums", checkpoint="rl-000099")
    with pytest.raises(UsageError, match="no model on the hub can be called 'a/b/c'"):
        push(finished, "a/b/c")
