"""What verifiers itself says of recorded turns: run by the Python that has it, with nothing of ours.

In, on stdin: ``{"path", "env", "played": [[task, [messages]]]}``; out: a reward for each, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

QUEUE: list[dict[str, Any]] = []


class Scripted(BaseHTTPRequestHandler):
    """A model that says what was recorded."""

    def log_message(self, *_: Any) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = QUEUE.pop(0)
        head = {"id": "x", "created": 1, "model": "m", "object": "chat.completion.chunk"}
        if "tool_calls" in message:
            message = message | {"tool_calls": [{"index": i, **c} for i, c in enumerate(message["tool_calls"])]}
        assert body["stream"]
        reason = "tool_calls" if "tool_calls" in message else "stop"
        chunk = head | {"choices": [{"index": 0, "delta": message, "finish_reason": reason}]}
        data = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


async def main() -> None:
    given = json.load(sys.stdin)
    sys.path[:0] = given["path"]
    os.environ["PYTHONPATH"] = os.pathsep.join(given["path"])
    from verifiers.v1 import EvalClientConfig, ModelContext
    from verifiers.v1.runtimes.subprocess import SubprocessRuntime
    from verifiers.v1.utils.loaders import load_environment, resolve_env_config

    async def prepare(self: Any, script: Any, env: Any = None, *, activate: bool = True) -> list[str]:
        await self.write(f"{self.workdir}/program.py", script.encode())
        return [sys.executable, f"{self.workdir}/program.py"]

    SubprocessRuntime.prepare_uv_script = prepare
    server = HTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = EvalClientConfig(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key_var="NO_KEY")
    env = load_environment(resolve_env_config(given["env"]))
    tasks, rewards = list(env.taskset), []
    async with env.serving():
        for index, messages in given["played"]:
            QUEUE[:] = messages
            episode = await env.run_episode(tasks[index], ModelContext(client=client, model="m"))
            assert episode.ok and not QUEUE, (episode.errors, QUEUE)
            rewards.append(episode.traces[0].reward)
    print(json.dumps(rewards))


asyncio.run(main())
