"""A small MCP server on the official library: over standard input and output here, over HTTP in tests/integration."""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ToolAnnotations

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def made(record: Path | None = None) -> MCPServer:
    """``record``: a file that gets a line per call of ``count``."""
    server = MCPServer("small")
    counter = itertools.count(1)

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> str:
        """Add two numbers."""
        return f"{a + b} ✓"

    @server.tool()
    def count() -> str:
        """Count the calls."""
        mine = next(counter)  # the library runs tools in threads, side by side
        if record is not None:
            with record.open("a") as file:
                file.write("once\n")
        return str(mine)

    @server.tool()
    def fail() -> str:
        """Fail."""
        raise ValueError("as I was told")

    @server.tool()
    async def hang() -> str:
        """Never answer."""
        await asyncio.sleep(600)
        return ""

    @server.tool()
    def die() -> str:
        """Die."""
        print("my last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        return ""

    @server.tool()
    def much() -> str:
        """Say much."""
        return "x" * 100_000

    del add, count, fail, hang, die, much
    return server


if __name__ == "__main__":
    made(Path("counted")).run()
