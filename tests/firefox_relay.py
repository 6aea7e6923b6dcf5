"""Stands between Playwright, which starts it in place of Firefox, and the Firefox named first on its command line.

Playwright talks WebDriver BiDi to a Firefox that it did not build, and begins by asking it to emulate a colour scheme,
which one as old as Debian's cannot. The relay answers that command itself and passes all else on.
"""

import asyncio
import json
import re
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

UNKNOWN = "emulation.setMediaFeaturesOverride"


async def relay(*command: str) -> None:
    """Start Firefox and say on stderr, as it does, where to talk to it."""
    firefox = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    said = ""
    while (address := re.search(r"ws://\S+", said)) is None:
        if not (line := await firefox.stderr.readline()):
            sys.exit(f"{command[0]} ended before it listened")
        said = line.decode()

    async def passed_on(client: ServerConnection) -> None:
        async with connect(address[0] + client.request.path, max_size=None) as server:

            async def asked() -> None:
                async for text in client:
                    message = json.loads(text)
                    if message.get("method") == UNKNOWN:
                        await client.send(json.dumps({"type": "success", "id": message["id"], "result": {}}))
                    else:
                        await server.send(text)

            async def answered() -> None:
                async for text in server:
                    await client.send(text)

            both = [asyncio.create_task(one()) for one in (asked, answered)]
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)

    async with serve(passed_on, "127.0.0.1", 0, max_size=None) as listening:
        port = listening.sockets[0].getsockname()[1]
        print(f"WebDriver BiDi listening on ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
        while await firefox.stderr.readline():  # until it ends
            pass


if __name__ == "__main__":
    asyncio.run(relay(*sys.argv[1:]))
