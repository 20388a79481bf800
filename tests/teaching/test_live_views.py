"""Every view with controls, once: named controls that redraw, and a picture without a kernel."""

from __future__ import annotations

from typing import Any

import pytest
from colab_smoke import LIVE
from view_parts import picture_of

OWN_WIDGETS = {"attention_view", "bertviz_view", "quiz_view"}
MOVED = {"fertility_view", "tree_view"}  # slow ones whose lectures' tests move all controls
PLAYGROUNDS = sorted(set(LIVE) - OWN_WIDGETS - MOVED)


def some_values(control: Any) -> list[Any]:
    """Both ends of a slider, the first and the last choice of a menu, what else a box can say."""
    if hasattr(control, "options"):
        options = [one[-1] if isinstance(one, tuple) else one for one in control.options]
        return [options[0], options[-1]]
    if hasattr(control, "max"):
        return [control.min, control.max]
    return [not control.value] if isinstance(control.value, bool) else ["", "<mark>"]


@pytest.mark.parametrize("name", PLAYGROUNDS)
def test_every_control_is_named_and_redraws(name: str) -> None:
    live = LIVE[name]()
    assert "<svg" not in live.static.html and "course-view" in live.static.html
    assert live.static.text
    for control in live.controls.values():
        assert control.description
        if not hasattr(control, "value"):
            continue  # a button
        before = control.value
        for value in (value for value in some_values(control) if value != before):
            control.value = value
            picture = picture_of(live)
            assert "course-view" in picture and "<mark>" not in picture, (name, value)
        control.value = before
