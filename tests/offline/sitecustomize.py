"""Put on PYTHONPATH, this refuses every connection that leaves the machine and logs the attempt.

Python imports a module of this name at start-up, so kernels and their child processes are covered.
"""

import os
import socket
import traceback

_LOCAL = {"", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}
_LOG = os.environ.get("OFFLINE_LOG")


def _refuse(what: str) -> None:
    if _LOG:
        frame = next(
            (f for f in reversed(traceback.extract_stack()[:-2]) if "site-packages" in f.filename),
            None,
        )
        where = f" from {os.path.basename(frame.filename)}:{frame.lineno}" if frame else ""
        with open(_LOG, "a", encoding="utf-8") as log:
            log.write(f"{what}{where}\n")
    raise OSError(101, f"this test run is offline: {what}")


def _is_local(host: object) -> bool:
    name = host.decode() if isinstance(host, bytes) else host
    if name is None or name == socket.gethostname():
        return True
    return str(name) in _LOCAL or str(name).startswith("127.")


_connect, _connect_ex, _getaddrinfo = (
    socket.socket.connect,
    socket.socket.connect_ex,
    socket.getaddrinfo,
)


def _guard(original):
    def connect(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_local(address[0]):
            _refuse(f"connect to {address[0]}:{address[1]}")
        return original(self, address)

    return connect


def getaddrinfo(host, *arguments, **options):
    if not _is_local(host):
        _refuse(f"look up {host}")
    return _getaddrinfo(host, *arguments, **options)


socket.socket.connect = _guard(_connect)
socket.socket.connect_ex = _guard(_connect_ex)
socket.getaddrinfo = getaddrinfo
