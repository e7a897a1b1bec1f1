"""OpenEnv's own client plays a server: ``URL`` and lines of JSON on stdin, what to do; out, what it sees."""

from __future__ import annotations

import json
import sys

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import CallToolAction

with GenericEnvClient(base_url=sys.argv[1]).sync() as world:
    for line in sys.stdin:
        asked = json.loads(line)
        if "reset" in asked:
            result = world.reset(**asked["reset"])
        elif "state" in asked:
            print(json.dumps(world.state()), flush=True)
            continue
        elif "tool" in asked:
            result = world.step(CallToolAction(tool_name=asked["tool"], arguments=asked["arguments"]))
        else:
            result = world.step(asked["step"])
        told = {"observation": result.observation, "reward": result.reward, "done": result.done}
        print(json.dumps(told), flush=True)
