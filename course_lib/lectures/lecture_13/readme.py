"""The benchmark as the README shows it: `python -m course_lib.lectures.lecture_13.readme`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev

from course_lib.teaching.verdicts import in_points

from .pretraining_runs import CONTROLS, MEMBERS
from .tuning_runs import FAST, RANDOM
from .views import benchmark, real_text


def readme_table() -> str:
    """In Markdown, the best on the twins first: what stands in the README between
    `<!-- benchmark -->` and `<!-- /benchmark -->`."""
    lines = [
        "| | nine twins of GLUE | beside BERT | documentation | beside BERT |",
        "|---|---|---|---|---|",
    ]
    for name in benchmark.in_order([*MEMBERS, FAST, "plain, two layers", RANDOM]):
        cells = [name if name not in (*CONTROLS, RANDOM) else f"*{name}*"]
        for of in (benchmark.values_of, real_text.means):
            beside = "" if name == "BERT" else in_points(of(name), of("BERT"))
            cells += [_spread(of(name)), beside]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    return f"{100 * mean(values):.1f} ± {100 * stdev(values):.1f}"


if __name__ == "__main__":
    print(readme_table())
