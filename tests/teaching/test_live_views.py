"""Every view with controls, once: named controls that redraw, and a picture without a kernel."""

from __future__ import annotations

from typing import Any

import pytest
from colab_smoke import LIVE
from view_parts import picture_of

PLAYGROUNDS = sorted(set(LIVE) - {"attention_view", "bertviz_view", "quiz_view"})  # own widgets


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
    first = picture_of(live)
    for control in live.controls.values():
        assert control.description
        if not hasattr(control, "value"):
            continue  # a button
        before, pictures = control.value, {first}
        for value in some_values(control):
            control.value = value
            shown = picture_of(live)
            assert "course-view" in shown and "<mark>" not in shown, (name, value)
            pictures.add(shown)
        control.value = before
