"""What runs beside ``verifiers``, in the Python that has it: its environment, its loop, its scoring; nothing of ours.

Protocol, a line of JSON each: in, what the environment is; out, how many tasks there are, or an ``error``; then in
``{"run", "task", "url"}`` or ``{"stop"}``, and out ``{"run", "reward", "rewards", "errors"}`` as each rollout ends.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from typing import Any


def settings(given: dict[str, Any], role: str) -> tuple[Any, str]:
    """Return the environment's configuration and the policy's role; programs run here, without a shell of theirs."""
    from verifiers.v1.configs.agent import AgentConfig
    from verifiers.v1.utils.loaders import default_harness_id, env_config_type, resolve_env_config

    taskset = given.get("taskset", {}).get("id", "")
    kind = env_config_type(taskset, given.get("id", ""))
    roles = [n for n, field in kind.model_fields.items() if isinstance(field.default, AgentConfig)]
    role = role or roles[0]
    if role not in roles:
        raise ValueError(f"there is no role {role!r}; there are {', '.join(roles)}")
    for name in roles:
        seat = given.setdefault(name, {})
        seat.setdefault("runtime", {"type": "subprocess"})
        if kind.model_fields[name].default.harness is None and default_harness_id(taskset) == "bash":
            seat.setdefault("harness", {"id": "null"})
        if "client" in seat:
            seat["client"].setdefault("type", "eval")
        elif name != role:
            raise ValueError(f"the role {name!r} is no policy's; say who plays it: {name}.client and {name}.model")
    return resolve_env_config(given), role


def with_this_python() -> None:
    """Let the chat program run in this Python, which has all that it needs, and fetch nothing."""
    from verifiers.v1.runtimes.subprocess import SubprocessRuntime

    async def prepare(self: Any, script: Any, env: Any = None, *, activate: bool = True) -> list[str]:
        path = f"{self.workdir}/.program.py"
        await self.write(path, script.encode() if isinstance(script, str) else script)
        return [sys.executable, path]

    SubprocessRuntime.prepare_uv_script = prepare


class Tasks:
    """The tasks by their places, as far as anybody has asked for them."""

    def __init__(self, taskset: Any):
        self.taken: list[Any] = []
        self.rest = iter(taskset)

    def __getitem__(self, index: int) -> Any:
        missing = index + 1 - len(self.taken)
        self.taken += itertools.islice(self.rest, max(0, missing))
        return self.taken[index]


async def run(env: Any, role: str, task: Any, url: str) -> dict[str, Any]:
    """Play one episode with the policy at ``url``; return its reward, or what went wrong."""
    from verifiers.v1 import EvalClientConfig, ModelContext

    client = EvalClientConfig(base_url=url, api_key_var="ASSAY_NO_KEY")
    episode = await env.run_episode(task, ModelContext(client=client, model="assay"))
    traces = [t for t in episode.traces if t.agent.name == role]
    errors = [*episode.errors, *(e for t in episode.traces for e in t.errors)]
    told: dict[str, Any] = {"errors": [f"{e.type}: {' '.join(str(e.message).split())[:500]}" for e in errors]}
    if len(traces) == 1:
        rewards = {name: r for name, r in traces[0].rewards.items() if r is not None}
        told |= {"reward": float(traces[0].reward), "rewards": {n: float(r.value) for n, r in rewards.items()}}
    elif not errors:
        told["errors"] = [f"{len(traces)} runs of role {role!r} in one episode; one alone is played here"]
    return told


async def main() -> None:
    out = os.fdopen(os.dup(1), "w", buffering=1)
    # What environments print is for people: it goes where messages go.
    os.dup2(2, 1)
    reader = asyncio.StreamReader(limit=1 << 26)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    def say(**content: Any) -> None:
        print(json.dumps(content), file=out)

    hello = json.loads(await reader.readline())
    try:
        from verifiers.v1.utils.loaders import load_environment

        # For this process, and for those it starts: servers of tools import the same modules.
        sys.path[:0] = hello["path"]
        os.environ["PYTHONPATH"] = os.pathsep.join([*hello["path"], os.environ.get("PYTHONPATH", "")]).strip(os.pathsep)
        with_this_python()
        config, role = settings(hello["env"], hello["role"])
        env = load_environment(config)
        tasks = Tasks(env.taskset)
        count = None
        if env.taskset.bounded:
            tasks.taken = list(tasks.rest)
            count = len(tasks.taken)
    except Exception as error:
        say(error=f"{type(error).__name__}: {' '.join(str(error).split())[:1000]}")
        return
    say(tasks=count)
    running: dict[int, asyncio.Task[None]] = {}

    async def play(number: int, index: int, url: str) -> None:
        try:
            say(run=number, **await run(env, role, tasks[index], url))
        except Exception as error:
            say(run=number, errors=[f"{type(error).__name__}: {error}"])
        finally:
            running.pop(number, None)

    async with env.serving():
        while line := await reader.readline():
            asked = json.loads(line)
            if "stop" in asked:
                if asked["stop"] in running:
                    running[asked["stop"]].cancel()
                continue
            made = asyncio.create_task(play(asked["run"], asked["task"], asked["url"]))
            running[asked["run"]] = made
        for task in running.values():
            task.cancel()
        await asyncio.gather(*running.values(), return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
