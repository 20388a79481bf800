"""A headless Firefox as its users have it, driven over Marionette, which it speaks itself: messages
are a length, a colon and JSON."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PROGRAMS = ("firefox-esr", "firefox")
START, WAIT = 600, 200  # seconds, against hanging alone
# No address but files can be reached: all else goes to a proxy that is not there.
SETTINGS = {
    "network.proxy.type": 1,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.socks": "127.0.0.1",
    "network.proxy.socks_port": 9,
    "network.proxy.no_proxies_on": "",
    "marionette.port": 0,  # any free one; Firefox writes down which
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}


def installed() -> str | None:
    """The path of the Firefox on this machine, None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Firefox:
    """One tab. Errors of a page and of the browser raise RuntimeError."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self.stream = self.socket.makefile("rb")
        self.count = 0
        self._receive()  # who speaks
        self.version = self.call("NewSession")["capabilities"]["browserVersion"]
        self.call("SetTimeouts", script=1000 * WAIT, pageLoad=1000 * WAIT)

    def _receive(self) -> Any:
        length = b""
        while (letter := self.stream.read(1)) not in (b":", b""):
            length += letter
        if not length:
            raise RuntimeError("Firefox has closed the connection.")
        return json.loads(self.stream.read(int(length)))

    def call(self, command: str, **what: Any) -> Any:
        """The result of a command of WebDriver."""
        self.count += 1
        message = json.dumps([0, self.count, f"WebDriver:{command}", what]).encode()
        self.socket.sendall(f"{len(message)}:".encode() + message)
        _, _, error, result = self._receive()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result

    def run(self, script: str, *arguments: Any) -> Any:
        """What the body of an async function returns in the page."""
        wrapped = (
            f"const [done, args] = [arguments[arguments.length - 1], [...arguments].slice(0, -1)];"
            f"(async (...args) => {{ {script} }})(...args)"
            ".then(value => done([value]), error => done([null, String(error)]));"
        )
        answer = self.call("ExecuteAsyncScript", script=wrapped, args=list(arguments))["value"]
        if len(answer) > 1:
            raise RuntimeError(answer[1])
        return answer[0]

    def open(self, path: Path) -> None:
        """Open a page of playgrounds, and wait for the first to be drawn."""
        self.call("Navigate", url=path.as_uri())
        self.call("TakeScreenshot", full=False)  # without a window nothing is painted, or seen near
        self.wait("document.querySelector('.play-box[data-drawn]')")

    def wait(self, condition: str, *arguments: Any) -> Any:
        """The value of an expression of `args` as soon as it is true; True for an element."""
        script = f"""for (const end = Date.now() + {800 * WAIT}; Date.now() < end;) {{
          const value = {condition};
          if (value) return value instanceof Element || value;
          await new Promise(done => setTimeout(done, 50));
        }} throw new Error('waited in vain');"""
        return self.run(script, *arguments)

    def keys(self, text: str) -> None:
        """Press these keys one after the other, as a keyboard does."""
        actions = [{"type": t, "value": key} for key in text for t in ("keyDown", "keyUp")]
        self.call("PerformActions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    def picture(self, path: Path) -> None:
        """The whole page as a PNG."""
        path.write_bytes(base64.b64decode(self.call("TakeScreenshot", full=True)["value"]))


@contextmanager
def running(program: str, profile: Path) -> Iterator[Firefox]:
    """A Firefox with an empty profile in this folder; it ends with the block."""
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in SETTINGS.items()]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
    call = [program, "--headless", "--no-remote", "--marionette", "--profile", str(profile)]
    process = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port, end = profile / "MarionetteActivePort", time.monotonic() + START
        while not (port.exists() and port.read_text().strip()):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{program} did not start.")
            time.sleep(0.1)
        yield Firefox(int(port.read_text()))
    finally:
        process.terminate()
        process.wait(30)
