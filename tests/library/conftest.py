"""Members that an older transformers lacks are skipped, and it is said why."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def its_class_is_there(request: pytest.FixtureRequest) -> None:
    """For tests of one row of members.MEMBERS, which they name `name` or `member`."""
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    named = [params.get(which) for which in ("name", "member")]
    if not {"eurobert", "ultrabert"} & {name for name in named if isinstance(name, str)}:
        return
    transformers = pytest.importorskip("transformers")
    for name in named:
        if name in ("eurobert", "ultrabert") and name not in transformers.CONFIG_MAPPING:
            pytest.skip(f"transformers {transformers.__version__} has no {name}")
