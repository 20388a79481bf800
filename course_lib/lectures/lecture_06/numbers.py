"""The numbers that sentences of lecture 06 say: counted, computed, or read from results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import mean
from typing import Any, NamedTuple

import torch

from course_lib import MicroWorld, bert, count_parameters, distilbert, published
from course_lib import tinybert as tinybert_of
from course_lib.encoder import Encoder
from course_lib.family.distilbert import (
    DistilBertConfig,
    distilbert_encoder,
    every_other_layer,
    initialise_from,
    spread_layers,
)
from course_lib.family.tinybert import fit_matrix, layer_mapping
from course_lib.heads import BertForMaskedLM
from course_lib.kernels.distillation import soft_target_loss
from course_lib.objectives.distillation import tinybert_loss
from course_lib.teaching.averages import glue_average
from course_lib.teaching.claims import claims, printed, verdict
from course_lib.teaching.results import read_result
from course_lib.text.tasks import unstated_facts
from course_lib.text.world import story_sequences
from course_lib.train.memory import activation_bytes

from .experiments import (
    BEGINNINGS,
    FULL,
    LABELLED,
    LENGTH,
    SEEDS,
    STARTS,
    STORIES,
    TINY,
    Material,
    general_stage,
    micro_teacher,
    outcome,
)
from .views.temperature import soften


def signed(points: float, digits: int = 1) -> str:
    return f"{points:+.{digits}f}".replace("-", "−")


def _read(name: str) -> dict[str, Any]:
    try:
        return read_result(name)
    except FileNotFoundError as missing:
        raise RuntimeError(
            f"data/results/{name}.json is not there, and this slide shows what it holds. "
            "`python -m course_lib.teaching.results 06` makes it (an hour or less on two cores)."
        ) from missing


@lru_cache(maxsize=1)
def _taught() -> dict[str, Any]:
    return _read("06_distilbert")


@lru_cache(maxsize=1)
def tiny() -> dict[str, Any]:
    return _read("06_tinybert")


@lru_cache(maxsize=1)
def teacher_run() -> dict[str, Any]:
    run: dict[str, Any] = _read("06_teacher")["runs"]["teacher"][0]
    return run


@lru_cache(maxsize=1)
def _world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def _teacher() -> BertForMaskedLM:
    return micro_teacher()


MODELS: dict[str, tuple[Callable[..., Encoder], str]] = {
    "BERT-base": (bert, "base"),
    "DistilBERT": (distilbert, "base"),
    "TinyBERT-6": (tinybert_of, "6"),
    "TinyBERT-4": (tinybert_of, "4"),
}


class Parts(NamedTuple):
    """Parameters of an encoder by its parts."""

    tables: int
    blocks: int
    pooler: int

    @property
    def all(self) -> int:
        return sum(self)


@lru_cache(maxsize=4)
def _parts(name: str) -> Parts:
    of, size = MODELS[name]
    with torch.device("meta"):  # shapes without memory
        model = of(size)
    pooler = 0 if model.pooler is None else count_parameters(model.pooler)
    return Parts(count_parameters(model.embeddings), count_parameters(model.stack), pooler)


def _share(name: str) -> str:
    return f"{_parts(name).all / _parts('BERT-base').all:.0%}"


WORDS = ("captain", "sailor", "baker")

LOGITS, STUDENT = (6.0, 4.0, 0.0), (3.0, 3.0, 0.0)


def toy(temperature: float, logits: Sequence[float] = LOGITS) -> list[float]:
    """The shares of the three words, in their order."""
    return soften(logits, WORDS, temperature, top=3).probabilities


def _ratio(temperature: float) -> str:
    """How many times as likely the first word is as the second."""
    captain, sailor, _ = toy(temperature)
    return f"{captain / sailor:.1f}"


def apart() -> tuple[list[tuple[float, float, float]], float, float]:
    """For each word both shares and its term of the KL; cross-entropy; the teacher's entropy."""
    t, s = torch.tensor(toy(1.0)), torch.tensor(toy(1.0, STUDENT))
    terms = t * (t / s).log()
    rows = list(zip(t.tolist(), s.tolist(), terms.tolist(), strict=True))
    return rows, -(t * s.log()).sum().item(), -(t * t.log()).sum().item()


@lru_cache(maxsize=16)
def _gradient(temperature: float) -> float:
    """The norm of T²·KL's gradient for the notebook's random scores; no weight is trained."""
    draw = torch.Generator().manual_seed(0)
    mine = (2 * torch.randn(64, 1_000, generator=draw)).requires_grad_()
    theirs = 2 * torch.randn(64, 1_000, generator=draw)
    return torch.autograd.grad(soft_target_loss(mine, theirs, temperature), mine)[0].norm().item()


STORY = 11  # of 40 new ones: a gap that leaves the teacher in some doubt


@lru_cache(maxsize=1)
def _doubt() -> tuple[str, str, torch.Tensor]:
    """A story with a gap, the hidden word, and the teacher's scores (V,) for the gap."""
    world = _world()
    *halves, hidden = world.stories(40, seed=3, split="heldout")[STORY].with_gap("fact")
    text = " ".join(halves)
    ids = torch.tensor([world.tokenizer.encode(text)])
    with torch.no_grad():
        scores = _teacher()(ids).logits[0, ids[0].tolist().index(world.special.mask)]
    return text, hidden, scores


@lru_cache(maxsize=8)
def softened(temperature: float, top: int = 6) -> Any:
    world, (_, hidden, scores) = _world(), _doubt()
    names = [world.tokenizer.token(i) for i in range(world.special.vocab_size)]
    return soften(scores, names, temperature, top=top, truth=hidden)


def _runners_up() -> str:
    """The second and the third word, at T = 1."""
    one = softened(1.0)
    return " and ".join(f"{one.words[i]} {one.probabilities[i]:.1%}" for i in (1, 2))


def as_list(layers: Sequence[int]) -> str:
    return ", ".join(map(str, layers))


def _same_as_its_teacher() -> float:
    """A student with all of its teacher's layers: how far its scores are from the teacher's."""
    teacher, text = _teacher(), _doubt()[0]
    shape = {name: getattr(teacher.config, name) for name in (
        "vocab_size", "max_positions", "num_layers", "hidden_size", "num_heads",
        "intermediate_size")}  # fmt: skip
    student = BertForMaskedLM(distilbert_encoder(DistilBertConfig(**shape)))
    initialise_from(student, teacher, range(teacher.config.num_layers)).eval()
    ids = torch.tensor([_world().tokenizer.encode(text)])
    with torch.no_grad():
        return (student(ids).logits - teacher(ids).logits).abs().max().item()


NARROW = {"hidden_size": 256, "num_heads": 4, "intermediate_size": 1_024, "vocab_size": 1_000}


@lru_cache(maxsize=1)
def _kept() -> tuple[float, float]:
    """Megabytes that a forward pass keeps for the way back, twelve layers and six: the notebook's
    pair, a third as wide as base, eight texts of 64 tokens."""
    torch.manual_seed(0)
    texts = torch.randint(5, 1_000, (8, 64))
    whole, half = (activation_bytes(of("base", **NARROW), texts) for of in (bert, distilbert))
    return whole / 1e6, half / 1e6


def _less_kept() -> str:
    whole, half = _kept()
    return f"{1 - half / whole:.0%}"


def _narrow_fewer() -> str:
    """How many fewer weights the narrow copy of DistilBERT has than that of BERT-base."""
    with torch.device("meta"):
        whole, half = (count_parameters(of("base", **NARROW)) for of in (bert, distilbert))
    return f"{1 - half / whole:.0%}"


def _times() -> float:
    """By the paper's own clock."""
    speed = printed("distilbert")["speed"]
    return float(speed["bert_base"] / speed["distilbert"])


def _found(measure: str) -> dict[str, list[float]]:
    return outcome(_taught(), measure)


def _change(name: str, measure: str, against: str = "triple loss") -> list[float]:
    """Gained against another recipe, one number a seed that both have."""
    runs = _taught()["runs"]
    base = {run["seed"]: run[measure] for run in runs[against]}
    return [run[measure] - base[run["seed"]] for run in runs[name] if run["seed"] in base]


def _points(name: str, measure: str) -> str:
    said = verdict(_change(name, measure)).replace("-", "−")
    return re.sub(r"^[+−](0\.0) ", r"\1 ", said)


def _begun(measure: str) -> dict[str, list[float]]:
    return {name: _found(measure)[f"begin: {name}"] for name in STARTS}


def _top_is_best() -> str:
    """What the student of the top layers finds; the slide says that no other finds more."""
    found = {name: mean(values) for name, values in _begun("masked_accuracy").items()}
    assert found["top"] == max(found.values())
    return f"{found['top']:.0%}"


def chosen(name: str) -> tuple[int, ...]:
    """The teacher's layers, counted from 0, that this student begins as."""
    choose = BEGINNINGS[name]
    depth = _teacher().config.num_layers
    return () if choose is None else tuple(choose(depth, FULL.num_layers))


def _mappings() -> str:
    small, whole = published("tinybert", "4"), published("bert", "base")
    return "; ".join(
        f"{kind} {as_list(layer_mapping(small.num_layers, whole.num_layers, kind))}"
        for kind in ("top", "bottom")
    )


def does_not_fit() -> str:
    """What PyTorch says when a narrow vector is taken from a wide one."""
    small, whole = published("tinybert", "4"), published("bert", "base")
    mine, theirs = (torch.zeros(1, 5, c.hidden_size) for c in (small, whole))
    try:
        _ = mine - theirs
    except RuntimeError as error:
        return str(error).splitlines()[0].split(" at non")[0]
    raise AssertionError("the widths must not fit")


def _matrix() -> torch.nn.Linear:
    with torch.device("meta"):
        return fit_matrix(published("tinybert", "4"), published("bert", "base"))


def paper_changes(part: str, of: str = "all") -> dict[str, str]:
    """Points against the row `of`, in an ablation of the paper."""
    rows = {k: v for k, v in printed("tinybert")[part].items() if isinstance(v, float)}
    return {name: signed(score - rows[of]) for name, score in rows.items()}


def _jobs() -> dict[str, list[float]]:
    return outcome(tiny(), "job_accuracy")


def tiny_change(name: str) -> list[float]:
    """Gained against the whole recipe, a number a seed."""
    return [a - b for a, b in zip(_jobs()[name], _jobs()["all"], strict=True)]


def _best_without_attention() -> str:
    """What that student reaches; the slide says that it is the best of all in every seed."""
    jobs = _jobs()
    for seed, reached in enumerate(jobs["without attention"]):
        assert reached == max(values[seed] for values in jobs.values()), seed
    return f"{mean(jobs['without attention']):.0%}"


def _alone_no_worse() -> str:
    """What a student alone reaches; the slide says that all parts together do no better."""
    jobs = _jobs()
    assert mean(jobs["all"]) <= mean(jobs["alone"])
    return _percent(jobs["alone"])


@lru_cache(maxsize=1)
def _first_losses() -> dict[str, float]:
    """The three inner losses of a student that has not made a step, on 64 plain stories."""
    world, teacher = _world(), _teacher()
    rows = story_sequences(world, world.stories(64, seed=0), LENGTH)
    nothing = unstated_facts(world, world.stories(40, seed=0), LENGTH)
    material = Material(world, rows, rows, nothing, nothing)
    pair, _ = general_stage(TINY, material, teacher, steps=0)
    mapping = layer_mapping(TINY.num_layers, teacher.config.num_layers, TINY.mapping)
    with torch.no_grad():
        said = pair(rows.input_ids, rows.attention_mask, rows.token_type_ids)
        losses = tinybert_loss(mapping)(said, {})
    return {name: value.item() for name, value in losses.items() if name != "total"}


def _rows() -> tuple[dict[str, float], dict[str, float]]:
    """Table 1: BERT-base, with the README's MNLI, and DistilBERT."""
    rows = printed("glue")
    return rows["bert_base_dev_distilbert"]["scores"], rows["distilbert_dev"]["scores"]


def _lost() -> dict[str, float]:
    """Points by which DistilBERT differs from BERT-base, the greatest loss first."""
    theirs, ours = _rows()
    lost = {task: ours[task] - theirs[task] for task in ours}
    return dict(sorted(lost.items(), key=lambda item: item[1]))


def _retained() -> str:
    theirs, ours = (glue_average(row, "dev-9") for row in _rows())
    return f"{ours / theirs:.1%}"


def _percent(values: Sequence[float]) -> str:
    return f"{mean(values):.0%}"


def _words(name: str) -> str:
    return _percent(_found("masked_accuracy")[name])


def _job(name: str) -> str:
    return _percent(_found("job_accuracy")[name])


def _tiny_size() -> str:
    """The narrow student's share of the teacher's weights."""
    return f"{tiny()['runs']['all'][0]['parameters'] / teacher_run()['parameters']:.0%}"


def _in_letters(number: int) -> str:
    return ("no", "one", "two", "three", "four", "five", "six")[number]


def _starts_range() -> str:
    """Points between the best and the worst mean on the task, of those begun as layers."""
    means = [mean(values) for name, values in _begun("job_accuracy").items() if chosen(name)]
    return f"{100 * (max(means) - min(means)):.1f}"


def _head_width(family: str, size: str) -> int:
    config = published(family, size)
    return config.hidden_size // config.num_heads


def _gpu_hours() -> int:
    training = printed("distilbert")["training"]
    return int(training["gpus"] * training["hours"])


NUMBERS: dict[str, Callable[[], Any]] = {
    "alone_jobs": lambda: _job("alone"),
    "alone_words": lambda: _words("alone"),
    "base_width": lambda: published("bert", "base").hidden_size,
    "bert_mean": lambda: f"{glue_average(_rows()[0], 'dev-9'):.1f}",
    "bottom_words": lambda: _percent(_begun("masked_accuracy")["bottom"]),
    "captain_1": lambda: f"{softened(1.0).probabilities[0]:.0%}",
    "captain_2": lambda: f"{softened(2.0).probabilities[0]:.0%}",
    "claims_in_all": lambda: len(claims("06")),
    "copies": lambda: TINY.copies,
    "cosine_words": lambda: _points("without cosine", "masked_accuracy"),
    "cross_entropy": lambda: f"{apart()[1]:.4f}",
    "distil_mean": lambda: f"{glue_average(_rows()[1], 'dev-9'):.1f}",
    "distil_share": lambda: _share("DistilBERT"),
    "does_not_fit": does_not_fit,
    "entropy": lambda: f"{apart()[2]:.4f}",
    "every_other": lambda: as_list(every_other_layer(12, 6)),
    "every_words": lambda: _percent(_begun("masked_accuracy")["every other"]),
    "fades": lambda: round(_gradient(1.0) / (_gradient(8.0) / 8**2)),
    "fewer": lambda: f"{1 - _parts('DistilBERT').all / _parts('BERT-base').all:.0%}",
    "first_attention": lambda: f"{_first_losses()['attention']:.1f}",
    "first_embedding": lambda: f"{_first_losses()['embedding']:.1f}",
    "first_hidden": lambda: f"{_first_losses()['hidden']:.1f}",
    "fresh_gain": lambda: f"{100 * mean(_change('fresh weights', 'job_accuracy', 'alone')):.0f}",
    "fresh_jobs": lambda: _job("fresh weights"),
    "fresh_words": lambda: _words("fresh weights"),
    "gpu_hours": _gpu_hours,
    "gradient_left": lambda: f"{_gradient(8.0) / _gradient(1.0):.0%}",
    "half_jobs": lambda: f"{mean(_found('job_accuracy')['triple loss']):.1%}",
    "kept_width": lambda: NARROW["hidden_size"],
    "labelled": lambda: LABELLED,
    "less_kept": _less_kept,
    "less_time": lambda: f"{1 - 1 / _times():.0%}",
    "mappings": _mappings,
    "matrix_shape": lambda: f"{_matrix().in_features} × {_matrix().out_features}",
    "matrix_size": lambda: count_parameters(_matrix()),
    "mlm_words": lambda: _points("without masked words", "masked_accuracy"),
    "most_lost": lambda: f"{-min(_lost().values()):.1f}",
    "narrow_fewer": _narrow_fewer,
    "paper_augment": lambda: paper_changes("stages")["without_augmentation"],
    "paper_bottom": lambda: paper_changes("mapping", "uniform")["bottom"],
    "paper_fresh": lambda: signed(printed("distilbert")["ablation"]["fresh_weights"], 2),
    "paper_general": lambda: paper_changes("stages")["without_general"],
    "paper_task": lambda: paper_changes("stages")["without_task"],
    "paper_top": lambda: paper_changes("mapping", "uniform")["top"],
    "ratio_1": lambda: _ratio(1.0),
    "ratio_2": lambda: _ratio(2.0),
    "ratio_4": lambda: _ratio(4.0),
    "rest_2": lambda: f"{softened(2.0).rest:.0%}",
    "rest_8": lambda: f"{softened(8.0).rest:.0%}",
    "retained": _retained,
    "runners_up": _runners_up,
    "same_as_teacher": lambda: f"{_same_as_its_teacher():.5f}",
    "scores": lambda: ", ".join(f"{w} {x:g}" for w, x in zip(WORDS, LOGITS, strict=True)),
    "seeds": lambda: _in_letters(len(SEEDS)),
    "soft_words": lambda: _points("without soft targets", "masked_accuracy"),
    "spread": lambda: as_list(spread_layers(12, 6)),
    "spread_words": lambda: _percent(_begun("masked_accuracy")["spread"]),
    "starts_range": _starts_range,
    "steps": lambda: FULL.steps,
    "stories": lambda: STORIES,
    "tb_4": lambda: str(printed("tinybert")["glue"]["tinybert_4"]),
    "tb_6": lambda: printed("tinybert")["glue"]["tinybert_6"],
    "tb_teacher": lambda: printed("tinybert")["glue"]["teacher"],
    "tb_tiny": lambda: printed("tinybert")["glue"]["bert_tiny"],
    "teacher_found": lambda: f"{teacher_run()['masked_accuracy']:.0%}",
    "teacher_jobs": lambda: f"{teacher_run()['job_accuracy']:.1%}",
    "teacher_layers": lambda: _in_letters(_teacher().config.num_layers),
    "teacher_weights": lambda: teacher_run()["parameters"],
    "teacher_width": lambda: _teacher().config.hidden_size,
    "temperature": lambda: f"{FULL.temperature:g}",
    "times_cpu": lambda: f"{_times():.2f}",
    "tiny_all": lambda: _percent(_jobs()["all"]),
    "tiny_alone": _alone_no_worse,
    "tiny_best": _best_without_attention,
    "tiny_fifth": _tiny_size,
    "tiny_gained": lambda: f"{100 * mean(tiny_change('without attention')):.0f}",
    "tiny_general": lambda: TINY.general,
    "tiny_head": lambda: _head_width("tinybert", "4"),
    "tiny_inner": lambda: TINY.inner,
    "tiny_labels": lambda: _percent(_jobs()["without the teacher's answers"]),
    "tiny_neither": lambda: _percent(_jobs()["without both layer losses"]),
    "tiny_paper": lambda: paper_changes("losses")["without_attention"].removeprefix("−"),
    "tiny_prediction": lambda: TINY.prediction,
    "tiny_share": lambda: _share("TinyBERT-4"),
    "tiny_teacher": lambda: f"{tiny()['taught_by']['job_accuracy']:.1%}",
    "tiny_weights": lambda: tiny()["runs"]["all"][0]["parameters"],
    "tiny_width": lambda: published("tinybert", "4").hidden_size,
    "top_words": _top_is_best,
    "untaught_words": lambda: _words("teacher's layers, masked words only"),
}

TYPED = {
    "100": "97 of 100 answers",
    "13%": "TinyBERT-4 of BERT-base, as its paper says; test_quizzes_06.py counts it",
    "128": "tokens, of which the FLOPs are counted",
    "1.63": "668 s / 410 s, DistilBERT's Table 3; test_quizzes_06.py computes it",
    "3.69": "DistilBERT's Table 4",
    "312": "TinyBERT-4's width",
    "39%": "less time by DistilBERT's Table 3; test_quizzes_06.py computes it",
    "60%": "a saying about DistilBERT's speed",
    "70.2": "TinyBERT's Table 1",
    "71%": "DistilBERT's speed on a phone, printed",
    "720": "8 GPUs × 90 hours, DistilBERT's section 3; test_quizzes_06.py computes it",
    "768": "BERT-base's width",
    "77.0": "a mean that both papers print",
    "79.4": "TinyBERT's Table 1",
    "79.5": "BERT-base's mean, as both papers print it",
    "96.9%": "77.0 / 79.5; test_quizzes_06.py computes it",
    "97%": "DistilBERT's printed claim",
}
