"""A callback that shows how far a training is, in one line, and what became of it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

if TYPE_CHECKING:
    from .loop import Report


class ProgressLine:
    """Steps, the loss and the time left; then a report.

    steps_per_epoch: how many steps all texts take. always: also where no terminal shows it."""

    reads_model = False

    def __init__(self, steps_per_epoch: float, learning_rate: float, always: bool = True) -> None:
        self.steps_per_epoch, self.learning_rate = steps_per_epoch, learning_rate
        self._disable = False if always else None  # None: tqdm looks for a terminal
        self._bar: Any = None

    def __call__(self, report: Report) -> None:
        loss = report.losses["total"]
        if self._bar is None:
            self._first, self._began = loss, time.perf_counter()
            self._bar = tqdm(total=report.steps, desc="fine-tuning", disable=self._disable)
        self._bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
        self._bar.update()
        if report.step == report.steps:
            visible = not self._bar.disable
            self._bar.close()
            if visible:
                print(self._report(report, loss))

    def _report(self, report: Report, loss: float) -> str:
        epochs = report.steps / self.steps_per_epoch
        seconds = time.perf_counter() - self._began
        return (
            f"{report.steps:,} steps, {epochs:.1f} epochs: loss {self._first:.3f} at first, "
            f"{loss:.3f} at last; learning rate {self.learning_rate:g}, {seconds:.0f} s"
        )
