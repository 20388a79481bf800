"""A hub of our own on this machine: it serves files as the real one does, or fails as told."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "c" * 40


@dataclass
class Hub:
    """files: "owner/name/file" (of a data set "datasets/owner/name/file") -> bytes.
    faults: "GET config.json" or "* config.json" or "*" -> how it fails: a status, a status with the
    hub's error code ("401 GatedRepo"), "cut" (no answer), "half" (the connection breaks in the
    middle), "short" (less than was announced), "login" (a page of somebody else's), "slow".
    asked: what was asked for, in order, as "HEAD owner/name/revision/file"; tokens: with what.
    renamed: a repository's old name -> its new one, to which the hub sends on."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, Any] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    commit: str = COMMIT
    renamed: dict[str, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)


@contextmanager
def serve() -> Iterator[Hub]:
    """A hub until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    server.daemon_threads = True
    server.hub = Hub(f"http://127.0.0.1:{server.server_address[1]}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.hub  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        repository, _, rest = self.path.lstrip("/").partition("/resolve/")
        revision, _, name = rest.partition("/")
        hub.asked.append(f"{self.command} {repository}/{revision}/{name}")
        keys = (f"{self.command} {name}", f"* {name}", "*")
        fault = next((hub.faults[key] for key in keys if key in hub.faults), None)
        if token := self.headers.get("authorization"):
            hub.tokens.add(token)
        if new := hub.renamed.get(repository):
            return self._send(307, b"", Location=f"/{new}/resolve/{rest}")
        data = hub.files.get(f"{repository}/{name}")
        commit = {"X-Repo-Commit": hub.commit}
        if fault == "cut":
            self.close_connection = True
        elif fault == "slow":
            threading.Event().wait(1.0)
            self.close_connection = True
        elif fault == "login":
            self._send(200, b"<html>Welcome to our Wi-Fi</html>")
        elif isinstance(fault, int | str) and str(fault)[0].isdigit():
            status, _, code = str(fault).partition(" ")
            self._send(int(status), b"no", **({"X-Error-Code": code} if code else {}))
        elif data is None and not any(f.startswith(f"{repository}/") for f in hub.files):
            self._send(401, b"no", **{"X-Error-Code": "RepoNotFound"})
        elif data is None:
            self._send(404, b"no", **{"X-Error-Code": "EntryNotFound"}, **commit)
        else:
            etag = {"ETag": f'"{hashlib.sha256(data).hexdigest()}"'}
            self._send(200, data, fault, **etag, **commit)

    def _send(self, status: int, data: bytes, fault: Any = None, **headers: str) -> None:
        start = int((self.headers.get("Range") or "bytes=0-")[len("bytes=") : -1])
        if fault == "half" and start:
            self.close_connection = True  # a second try to get the rest fails as well
            return
        data = data[start:] if status == 200 else data
        body = data[: len(data) // 2] if fault in ("half", "short") else data
        announced = body if fault == "short" and self.command == "GET" else data
        self.send_response(206 if start and status == 200 else status)
        for name, value in {**headers, "Content-Length": str(len(announced))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        self.close_connection = fault == "half"
