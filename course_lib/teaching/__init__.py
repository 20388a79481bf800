"""What all lectures share: source shown, comparisons, figures, attention, playgrounds, progress,
exercises, quizzes, claims, stored results.

Names are loaded when first used: plotly, ipywidgets, anywidget, bertviz and IPython are imported
only inside the functions that need them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "show": "source",
    "Html": "page",
    "Live": "page",
    "caption": "page",
    "check_machine": "machine",
    "replication_table": "replication",
    "colour": "style",
    "plot_loss": "figures",
    "accuracy_chart": "figures",
    "bar_chart": "figures",
    "coverage_chart": "figures",
    "heat_chart": "figures",
    "tradeoff_chart": "figures",
    "curves_chart": "run_charts",
    "gradient_chart": "run_charts",
    "dots_chart": "run_charts",
    "ablation_chart": "run_charts",
    "layer_distance_chart": "run_charts",
    "queue_chart": "run_charts",
    "tokens_row": "tokens",
    "tokens_legend": "tokens",
    "attention_view": "attention",
    "attention_picture": "attention",
    "attention_weights": "attention",
    "bertviz_view": "bertviz",
    "masking_playground": "playgrounds",
    "embedding_stack_view": "embedding_stack",
    "prediction_slider": "predictions",
    "predict_masked": "predictions",
    "WatchWord": "predictions",
    "ProgressBar": "progress",
    "LiveLoss": "progress",
    "quiz_view": "quiz_widget",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"course_lib.teaching has no {name!r}; it offers {', '.join(sorted(_HOME))}"
        )
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
