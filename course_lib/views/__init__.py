"""What a notebook shows: source, comparisons, figures, attention, playgrounds, progress, quizzes.

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
    "colour": "style",
    "plot_loss": "figures",
    "accuracy_chart": "figures",
    "bar_chart": "figures",
    "coverage_chart": "figures",
    "heat_chart": "figures",
    "tradeoff_chart": "figures",
    "curves_chart": "run_charts",
    "gradient_chart": "run_charts",
    "traffic_chart": "traffic_bars",
    "roofline_chart": "roofline",
    "speed_chart": "speeds",
    "dots_chart": "run_charts",
    "stones_chart": "run_charts",
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
    "mask_epochs_view": "mask_epochs",
    "parameter_calculator": "calculator",
    "byte_pieces_view": "byte_pieces",
    "temperature_view": "temperature",
    "layer_map_view": "layer_map",
    "corruptor_view": "corruptor",
    "corrupt_and_judge": "corruptor",
    "score_maps": "three_scores",
    "draw_score_maps": "three_scores",
    "measure_scores": "three_scores",
    "attention_parts": "three_scores",
    "bucket_chart": "distance_buckets",
    "delta_tables": "distance_buckets",
    "score_variance": "score_spread",
    "score_statistics": "score_spread",
    "task_shapes": "task_heads",
    "tag_view": "tagged_words",
    "span_chart": "answer_spans",
    "span_table": "span_pairs",
    "span_explorer": "span_pairs",
    "learning_curves": "finetuning_charts",
    "loss_line": "finetuning_charts",
    "cut_view": "cut_pairs",
    "prediction_slider": "predictions",
    "predict_masked": "predictions",
    "WatchWord": "predictions",
    "ProgressBar": "progress",
    "LiveLoss": "progress",
    "quiz_view": "quiz",
}

__all__ = list(_HOME)


def __getattr__(name: str) -> Any:
    # `compare` is not here: as a name in this package it is the module. Take it from course_lib.
    if name not in _HOME:
        raise AttributeError(
            f"course_lib.views has no {name!r}; it offers {', '.join(sorted(_HOME))}"
        )
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
