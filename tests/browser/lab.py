"""A JupyterLab of our own and a Chromium that reaches nothing else: what a student sees."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from limits import AGAINST_HANGING, kill_with_children
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from playwright.sync_api import BrowserContext as Context
from playwright.sync_api import Error as PlaywrightError

ROOT = Path(__file__).resolve().parent.parent.parent
OFFLINE = ROOT / "tests" / "offline"
SCREENSHOTS = Path(__file__).resolve().parent / "screenshots"
# Pictures are for people: a test looks at the page itself. COURSE_SCREENSHOTS=1 takes them.
TAKE_PICTURES = bool(os.environ.get("COURSE_SCREENSHOTS"))
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run",
    "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-domain-reliability", "--disable-default-apps", "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
)  # fmt: skip
BEYOND = re.compile(r"^(?:https?|wss?)://(?!(?:127\.0\.0\.1|localhost|\[::1\])(?:[:/]|$))")
ERRORS = r"""within => {
  const said = new Set(), root = within?.closest('.jp-Cell') || document;
  // A traceback in a widget's own output area is no output of a cell: only the page shows it.
  for (const node of root.querySelectorAll('.jp-RenderedText'))
    if (node.dataset.mimeType === 'application/vnd.jupyter.error'
        || /Traceback \(most recent call last\)/.test(node.innerText)) said.add(node.innerText);
  const panel = window.jupyterapp.shell.currentWidget;
  for (const cell of panel.content.widgets) {
    const outputs = cell.model.outputs;
    for (let i = 0; outputs && i < outputs.length; i++) {
      const output = outputs.get(i).toJSON();
      if (output.output_type === 'error') said.add(output.ename + ': ' + output.evalue);
    }
  }
  for (const node of root.querySelectorAll('.jp-OutputArea-output, iframe'))
    if (/Error displaying widget|Error creating widget|Javascript Error|Failed to load model class/
        .test(node.innerText || '')) said.add(node.innerText);
  return [...said];
}"""
KERNEL = "window.jupyterapp?.shell.currentWidget?.context?.sessionContext?.session?.kernel"


# A saved notebook comes with the counts of its last run: without them, a cell that has one ran.
RUN = """places => {
  const {commands, shell} = window.jupyterapp, panel = shell.currentWidget;
  for (const cell of panel.content.widgets)
    if (cell.model.type === 'code') cell.model.executionCount = null;
  const runOne = place => {
    panel.content.activeCellIndex = place;
    panel.content.deselectAll();
    return commands.execute('notebook:run-cell');
  };
  window.allRan = false;
  const run = places ? places.reduce((before, place) => before.then(() => runOne(place)),
    Promise.resolve()) : commands.execute('notebook:run-all-cells');
  run.finally(() => { window.allRan = true; });
}"""


@contextlib.contextmanager
def chromium_browser(executable: str) -> Iterator[Browser]:
    """A headless Chromium. One at a time in a process: Playwright allows no second."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=executable, args=[*FLAGS], timeout=AGAINST_HANGING * 1000
        )
        yield browser
        browser.close()


@contextlib.contextmanager
def offline_context(browser: Browser) -> Iterator[tuple[Context, list[str]]]:
    """A context of its own, and the list of addresses beyond this machine that it asked for."""
    asked: list[str] = []

    def note(url: str) -> None:
        if BEYOND.match(url):
            asked.append(url)

    context = browser.new_context(viewport={"width": 1440, "height": 1000}, service_workers="block")
    context.set_default_timeout(AGAINST_HANGING * 1000)
    context.route(BEYOND, lambda route: route.abort())
    context.on("request", lambda request: note(request.url))
    context.on("page", lambda page: page.on("websocket", lambda socket: note(socket.url)))
    try:
        yield context, asked
    finally:
        context.close()


@dataclass
class Server:
    """A running JupyterLab: its address and its kernels' network log."""

    url: str
    network_log: Path
    process: subprocess.Popen
    token: str

    def kernel_requests(self) -> list[str]:
        """What kernels tried to reach beyond this machine; all of it was refused."""
        return sorted(set(self.network_log.read_text(encoding="utf-8").splitlines()))

    def forget_requests(self) -> None:
        self.network_log.write_text("", encoding="utf-8")

    def kernels(self) -> list[psutil.Process]:
        """The processes that the server started: its kernels, and what they started."""
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def stop_kernels(self) -> None:
        """End every kernel: by the server, which waits 5 s for a busy one, or else by force."""
        for kind in ("sessions", "kernels"):
            with contextlib.suppress(OSError, ValueError):
                for one in json.loads(self._ask("GET", kind)):
                    self._ask("DELETE", f"{kind}/{one['id']}")
        for process in self.kernels():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _ask(self, method: str, what: str) -> bytes:
        request = urllib.request.Request(f"{self.url}/api/{what}", method=method)
        request.add_header("Authorization", f"token {self.token}")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()


@contextlib.contextmanager
def jupyterlab(folder: Path, notebooks: list[Path]) -> Iterator[Server]:
    """Start JupyterLab on copies of `notebooks`, everything it writes below `folder`."""
    served, log, home = folder / "served", folder / "network.log", folder / "home"
    for made in (served, home):
        made.mkdir(parents=True)
    log.touch()
    for notebook in notebooks:
        shutil.copy(notebook, served)
    port, token = _free_port(), secrets.token_hex(16)
    with open(folder / "server.log", "w", encoding="utf-8") as server_log:
        process = subprocess.Popen(
            _command(port, token, served),
            env=_environment(home, log),
            stdout=server_log,
            stderr=server_log,
        )
        try:
            server = Server(f"http://127.0.0.1:{port}", log, process, token)
            _wait_until_up(server.url, process, folder / "server.log")
            yield server
        finally:
            _stop(process)


def _stop(process: subprocess.Popen) -> None:
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20)
    if process.poll() is None:
        kill_with_children(process.pid)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _command(port: int, token: str, served: Path) -> list[str]:
    return [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={served}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.check_for_updates_class="
        "jupyterlab.NeverCheckForUpdate",
    ]  # fmt: skip


def _environment(home: Path, log: Path) -> dict[str, str]:
    """Folders of its own, no news, every cell kept in the page, and no way out for kernels."""
    config, settings = home / "config", home / "settings"
    news = "@jupyterlab/apputils-extension:announcements"
    _write(config / "labconfig" / "page_config.json", {"disabledExtensions": {news: True}})
    # With windowing, cells out of sight are taken out of the page and a test cannot see them.
    tracker = settings / "@jupyterlab" / "notebook-extension" / "tracker.jupyterlab-settings"
    _write(tracker, {"windowingMode": "none"})
    ours = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith(("JUPYTER", "COURSE_LIB", "PYTHONPATH"))
    }
    if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1:
        ours.setdefault("OMP_NUM_THREADS", "1")  # kernels side by side would wait for each other
    return ours | {
        "HOME": str(home),
        "USERPROFILE": str(home),  # what Windows calls it
        "XDG_CACHE_HOME": str(home / ".cache"),
        "IPYTHONDIR": str(home / ".ipython"),
        "JUPYTER_CONFIG_DIR": str(config),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "PYTHONPATH": os.pathsep.join([str(OFFLINE), str(ROOT)]),
        "OFFLINE_LOG": str(log),
        "COURSE_LIB_PROGRESS": str(home / "progress.json"),
    }


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def _wait_until_up(url: str, process: subprocess.Popen, log: Path) -> None:
    last = time.monotonic() + AGAINST_HANGING
    while time.monotonic() < last and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api", timeout=30):
            return
        time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


@dataclass
class Notebook:
    """One notebook open in the browser, the only one of its server.

    `trouble` says why the page was not opened, or not run to its end."""

    page: Page
    server: Server
    name: str
    asked: list[str]  # the addresses beyond this machine that the browser asked for
    seconds: float = AGAINST_HANGING
    cells: list[int] | None = None  # the places of the cells to run; without them all run
    trouble: str = ""
    took: str = ""
    moved: list[str] = field(default_factory=list)

    def open(self) -> None:
        """Open the page and wait until its kernel answers."""
        tree = f"lab/workspaces/{Path(self.name).stem}/tree/{self.name}"
        self.page.goto(f"{self.server.url}/{tree}?reset&token={self.server.token}")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
        self.page.wait_for_function(f"() => {KERNEL}?.status === 'idle'")
        self.page.evaluate("window.jupyterapp.shell.collapseLeft()")

    def close(self) -> None:
        """Close the page and stop its kernel, whatever state they are in."""
        with contextlib.suppress(PlaywrightError):
            self.page.close(run_before_unload=False)
        self.server.stop_kernels()

    def run(self) -> float:
        """Run the cells; the seconds it took. Raises when one hangs or the kernel dies."""
        started = time.monotonic()
        self.page.evaluate(RUN, self.cells)
        ended = f"() => window.allRan || /dead|restarting/.test({KERNEL}?.status)"
        try:
            self.page.wait_for_function(ended, timeout=self.seconds * 1000, polling=300)
        except PlaywrightError as error:
            raise AssertionError(f"{self.name}: {self.counts()} cells ran, then: {error}") from None
        self.settle()
        return time.monotonic() - started

    def settle(self) -> None:
        """Wait until the kernel has been idle for half a second: what a control started is done."""
        idle_since, last = time.monotonic(), time.monotonic() + self.seconds
        while time.monotonic() < last:
            status = self.page.evaluate(f"() => {KERNEL}?.status")
            assert status not in ("dead", "restarting", "autorestarting"), f"the kernel is {status}"
            if status != "idle":
                idle_since = time.monotonic()
            if time.monotonic() - idle_since > 0.5:
                return
            self.page.wait_for_timeout(60)
        raise AssertionError(f"{self.name}: the kernel was busy for {self.seconds:.0f} s")

    def requests_beyond(self) -> list[str]:
        """What the browser or the kernel asked for beyond this machine."""
        return self.asked + self.server.kernel_requests()

    def errors(self, around: Locator | None = None) -> list[str]:
        """Every error shown by a cell, by a widget's output area, or by a widget that failed;
        around: of what the page alone shows, only in the cell around that element."""
        return around.evaluate(ERRORS) if around else self.page.evaluate(ERRORS)

    def counts(self) -> list[int]:
        """How many code cells have run, and how many there are."""
        return self.page.evaluate(
            "() => { const c = window.jupyterapp.shell.currentWidget.content.widgets"
            ".filter(w => w.model.type === 'code' && w.model.sharedModel.getSource().trim());"
            " return [c.filter(w => w.model.executionCount).length, c.length]; }"
        )

    def sliders(self) -> list[Locator]:
        """Every visible slider: ipywidgets' handles and the range inputs of our own widgets."""
        kinds = (".noUi-handle", "input[type=range]")
        return self.page.locator(", ".join(f".jp-OutputArea {k}:visible" for k in kinds)).all()

    def move_every_slider(self, promised: int = 0) -> list[str]:
        """Take each to both ends by keyboard, checking after each move; two lines for each slider.
        The page may still be drawing those promised, and a slider's neighbours after a move."""
        self._wait(lambda: len(self.sliders()) >= promised)
        for number in range(len(self.sliders())):
            for key, bound in (("Home", "min"), ("End", "max")):
                self._wait(lambda number=number: len(self.sliders()) > number)
                self._move(number, key, bound)
        self.settle()
        return self.moved

    def _move(self, number: int, key: str, bound: str) -> None:
        slider = self.sliders()[number]
        slider.scroll_into_view_if_needed()
        slider.focus()
        slider.press(key)
        self.settle()
        self._wait(lambda: len(self.sliders()) > number)
        now, end = _value(self.sliders()[number], bound)
        said = f"slider {number} ({_label(slider)}): {key} gives {now:g} of {bound} {end:g}"
        assert abs(now - end) < 1e-6, f"{self.name}: {said}"
        errors = self.errors(around=self.sliders()[number])
        assert not errors, f"{self.name}: {said}, then {errors}"
        self.moved.append(said)

    def _wait(self, drawn: Callable[[], bool], seconds: float = 300) -> None:
        """Until the page shows that; what it never shows is for the test to miss."""
        last = time.monotonic() + seconds
        while not drawn() and time.monotonic() < last:
            self.page.wait_for_timeout(100)

    def inside_frames(self, selector: str) -> int:
        """How many elements match in the frames that outputs hold (bertviz draws in one)."""
        total = 0
        for frame in self.page.locator(".jp-OutputArea iframe").all():
            handle = frame.element_handle()
            inner = handle.content_frame() if handle else None
            total += inner.locator(selector).count() if inner else 0
        return total

    def screenshot(self, name: str, element: Locator | None = None) -> None:
        """A picture of the window, or of one element scrolled into view, where they are wanted."""
        if element is not None:
            element.scroll_into_view_if_needed()
            self.page.wait_for_timeout(300)
        take_picture(self.page, name)

    def screenshots_of_all(self, name: str) -> None:
        """The whole notebook, a window at a time, where pictures are wanted."""
        if not TAKE_PICTURES:
            return
        area = self.page.locator(
            ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer"
        ).first
        # JupyterLab lets one scroll past the end; the last cell says where the end is.
        height, window = area.evaluate(
            "e => { const c = [...e.querySelectorAll('.jp-Cell')].pop().getBoundingClientRect();"
            " return [c.bottom - e.getBoundingClientRect().top + e.scrollTop, e.clientHeight]; }"
        )
        pages = max(1, -(-int(height) // int(window)))
        for number in range(pages):
            area.evaluate("(e, top) => { e.scrollTop = top; }", number * int(window))
            self.page.wait_for_timeout(250)
            self.screenshot(f"{name}-{number + 1:02d}")


@contextlib.contextmanager
def visit(
    browser: Browser,
    server: Server,
    name: str,
    seconds: float = AGAINST_HANGING,
    cells: list[int] | None = None,
) -> Iterator[Notebook]:
    """A notebook opened and run, whole or these cells, in a window of its own. However that ends,
    its kernel ends with it, so that the next page begins in a clean state."""
    server.forget_requests()
    with offline_context(browser) as (context, asked):
        notebook = Notebook(context.new_page(), server, name, asked, seconds, cells)
        with no_endless_script(2 * AGAINST_HANGING):
            try:
                with noted_trouble(notebook):
                    notebook.open()
                    notebook.took = f"{name}: {notebook.run():.0f} s"
                yield notebook
            finally:
                notebook.close()


Visit = Callable[..., contextlib.AbstractContextManager[Notebook]]  # the fixture visit_page


@contextlib.contextmanager
def noted_trouble(notebook: Notebook) -> Iterator[None]:
    try:
        yield
    except (PlaywrightError, AssertionError) as error:
        notebook.trouble = f"{notebook.name}: {error}"
        notebook.server.stop_kernels()


@contextlib.contextmanager
def no_endless_script(seconds: float) -> Iterator[None]:
    """Every wait here has a limit, but a question put to a page whose script never ends has none.
    So after those seconds the windows' processes are killed, and whatever was asked fails."""
    timer = threading.Timer(seconds, _kill_windows)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _kill_windows() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "--type=renderer" in process.cmdline():
                process.kill()


def take_picture(page: Page, name: str) -> None:
    """What the page shows now, as tests/browser/screenshots/NAME.png, where pictures are wanted."""
    if TAKE_PICTURES:
        SCREENSHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png")


def _value(slider: Locator, bound: str) -> tuple[float, float]:
    if slider.evaluate("e => e.tagName") == "INPUT":
        return tuple(map(float, slider.evaluate(f"e => [e.value, e.{bound}]")))  # type: ignore
    names = ("aria-valuenow", f"aria-value{bound}")
    return tuple(float(slider.get_attribute(n) or "nan") for n in names)  # type: ignore


def _label(slider: Locator) -> str:
    return slider.evaluate(
        "e => e.getAttribute('aria-label') || e.closest('.jupyter-widgets')?.querySelector('label,"
        " .widget-label')?.innerText || e.labels?.[0]?.innerText || 'no label'"
    )
