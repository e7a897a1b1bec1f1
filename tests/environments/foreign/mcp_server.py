"""A small server of tools, over its input and output: a till."""

from __future__ import annotations

import json
import os

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("till")
till = {"cash": 10}


@server.tool()
def fill(cash: int) -> str:
    """Fill the till."""
    till["cash"] = cash
    return "filled"


@server.tool()
def pay(amount: int) -> str:
    """Pay an amount from the till."""
    if amount > till["cash"]:
        raise ToolError("not enough cash")
    till["cash"] -= amount
    return f"left {till['cash']}"


@server.tool()
def count() -> str:
    """Tell what is in it."""
    return json.dumps(till)


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
