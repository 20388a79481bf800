"""The cell that the notebooks' part runs after a page's own: every control moves to both ends.

A page's sliders and menus are widgets of its kernel; setting their values draws anew what they
control, with the models that the page has trained, and what goes wrong there fails the cell."""

from __future__ import annotations

from pathlib import Path

import nbformat

SLIDERS = {  # what a page promises to move, at least: neighbours, gaps, layers, rates, temperatures
    "01": 6, "02": 3, "03": 4, "04": 3, "05": 4, "06": 1, "07": 1, "08": 10, "09": 10, "10": 11,
    "12": 3, "15": 3, "16": 5,
}  # fmt: skip

MOVE = '''\
from ipywidgets.widgets import widget as _widgets

def _ends(one):
    """The values that a control is set to: a menu's first and last, a number's least and most."""
    if getattr(one, "_options_full", None):
        return one._options_full[0][1], one._options_full[-1][1]
    if isinstance(getattr(one, "value", None), (int, float)) and hasattr(one, "max"):
        return one.min, one.max
    return ()

_sliders = 0
for _one in list(_widgets._instances.values()):
    for _value in _ends(_one) if not getattr(_one, "disabled", False) else ():
        _one.value = _value
    _sliders += type(_one).__name__.endswith("Slider")
assert _sliders >= {promised}, f"{{_sliders}} sliders; the page promises {promised}"
'''


def with_moving_cell(page: Path, target: Path) -> None:
    """Copy a notebook with that cell at its end."""
    notebook = nbformat.read(page, as_version=4)
    code = MOVE.format(promised=SLIDERS.get(page.stem[:2], 0))
    notebook.cells.append(nbformat.v4.new_code_cell(code))
    nbformat.write(notebook, target / page.name)
