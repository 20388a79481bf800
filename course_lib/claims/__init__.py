"""What is claimed, what is so, and what was measured here. One file a lecture."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from .machinery import Claim, ClaimsTable, NotHere, Settled

__all__ = ["Claim", "ClaimsTable", "NotHere", "Settled", "claims", "claims_table"]


def claims(lecture: str) -> tuple[Claim, ...]:
    """The entries of a lecture, in the order of its page: claims("02").

    Raises ValueError for a lecture without claims, and lists those that have some.
    """
    known = sorted(
        module.name.removeprefix("lecture_")
        for module in iter_modules(__path__)
        if module.name.startswith("lecture_")
    )
    if lecture not in known:
        raise ValueError(
            f"lecture {lecture!r} was asked for; lectures with claims: {', '.join(known)}. "
            'Write two digits as text, as in claims("02").'
        )
    entries: tuple[Claim, ...] = import_module(f"{__name__}.lecture_{lecture}").CLAIMS
    return entries


def claims_table(lecture: str, only: Sequence[str] | None = None) -> ClaimsTable:
    """They say, it is, you measured: every claim of a lecture, settled now.

    only: the ids of those to show. Raises ValueError for an id that the lecture does not have.
    """
    entries = claims(lecture)
    if only is not None:
        by_id = {entry.id: entry for entry in entries}
        if missing := [id for id in only if id not in by_id]:
            raise ValueError(
                f"claims {missing} were asked for; lecture {lecture} has {', '.join(by_id)}."
            )
        entries = tuple(by_id[id] for id in only)
    return ClaimsTable.of(entries)


class _CallableRoom(ModuleType):
    """Lets `from course_lib import claims` serve as the function, whichever was imported first."""

    def __call__(self, lecture: str) -> tuple[Claim, ...]:
        return claims(lecture)


sys.modules[__name__].__class__ = _CallableRoom
