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
from course_lib.config import encoder_flops
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
from course_lib.objectives.distillation import PUBLISHED_WEIGHTS, distilbert_loss, tinybert_loss
from course_lib.objectives.masked_lm import masked_lm_loss
from course_lib.objectives.pretraining import pretraining_batches
from course_lib.teaching.claims import printed, settled, verdict
from course_lib.teaching.experiments import Stories
from course_lib.teaching.memory import activation_bytes
from course_lib.teaching.numbers import as_list, in_letters, percent, signed
from course_lib.teaching.results import outcome, stored
from course_lib.text.counts import NeighbourCounts, Unigram
from course_lib.text.world import story_sequences
from course_lib.train.distilling import DistillationPair
from course_lib.train.flops import step_flops

from .claims import TOKENS, lost_by_task, table_1
from .experiments import (
    ATTENTION_WEIGHTS,
    BEGINNINGS,
    FULL,
    GENERAL_STEPS,
    LABELLED,
    LENGTH,
    PAST,
    PAST_PLATEAU,
    PAST_SEEDS,
    SEEDS,
    STARTS,
    STORIES,
    TINY,
    TeacherRecipe,
    general_stage,
    micro_teacher,
    prepare,
    randomly_initialised_student,
)
from .views.temperature import soften


def students() -> dict[str, Any]:
    return stored("06_distilbert")


def narrow_students() -> dict[str, Any]:
    return stored("06_tinybert")


def attention_grid() -> dict[str, Any]:
    return stored("06_tinybert_attention")


def past_plateau() -> dict[str, Any]:
    return stored("06_past_plateau")


def past_curves() -> dict[str, list[list[tuple[float, float]]]]:
    """Masked-token accuracy over the steps of the longer runs, a line a seed."""
    return {
        name: [[(look["step"], look["masked_accuracy"]) for look in run["curve"]] for run in runs]
        for name, runs in past_plateau()["runs"].items()
    }


@lru_cache(maxsize=2)
def level(rule: type[Unigram] | type[NeighbourCounts]) -> float:
    """Masked-token accuracy of a rule that counts in the training stories, on new ones."""
    return prepare().counted(rule)


def past(name: str, measure: str = "masked_accuracy") -> str:
    return percent(outcome(past_plateau(), measure)[name])


@lru_cache(maxsize=1)
def distillation_flops() -> str:
    """FLOPs of a step with the teacher, as a multiple of those of a step alone."""
    world, teacher = the_world(), the_teacher()
    rows = story_sequences(world, world.stories(64, seed=0), LENGTH)
    batch = pretraining_batches(rows, world.special, batch_size=FULL.batch_size)(0)
    student = randomly_initialised_student(PAST_PLATEAU["alone"], teacher, world, 0)
    alone = step_flops(student, masked_lm_loss, batch)
    return f"{step_flops(DistillationPair(student, teacher), distilbert_loss(), batch) / alone:.1f}"


def teacher_run() -> dict[str, Any]:
    run: dict[str, Any] = stored("06_teacher")["runs"]["teacher"][0]
    return run


@lru_cache(maxsize=1)
def the_world() -> MicroWorld:
    return MicroWorld.load()


@lru_cache(maxsize=1)
def the_teacher() -> BertForMaskedLM:
    return micro_teacher()


MILLISECONDS, MEGABYTES = 100, 300  # an invented service's budget: a text of TOKENS, the weights

MODELS: dict[str, tuple[Callable[..., Encoder], str]] = {
    "BERT-base": (bert, "base"),
    "DistilBERT": (distilbert, "base"),
    "TinyBERT-6": (tinybert_of, "6"),
    "TinyBERT-4": (tinybert_of, "4"),
}


class Parts(NamedTuple):
    """Parameters of an encoder by its parts."""

    embeddings: int
    blocks: int
    pooler: int

    @property
    def all(self) -> int:
        return sum(self)


@lru_cache(maxsize=4)
def parts_of(name: str) -> Parts:
    of, size = MODELS[name]
    with torch.device("meta"):  # shapes without memory
        model = of(size)
    pooler = 0 if model.pooler is None else count_parameters(model.pooler)
    return Parts(count_parameters(model.embeddings), count_parameters(model.stack), pooler)


def of_bert_base(name: str) -> str:
    return f"{parts_of(name).all / parts_of('BERT-base').all:.0%}"


def megabytes(name: str) -> str:
    """Of the weights, four bytes each."""
    return f"{4 * parts_of(name).all / 1e6:.0f}"


def gflops(family: str, size: str) -> float:
    return encoder_flops(published(family, size), TOKENS) / 1e9


def needed(family: str, size: str) -> str:
    """Billions of FLOPs a second that a machine must do to keep to the budget."""
    return f"{1e3 * gflops(family, size) / MILLISECONDS:.0f}"


def teacher_at(step: int) -> str:
    """The teacher's masked-token accuracy on new stories during its own training."""
    curve = {point["step"]: point["masked_accuracy"] for point in teacher_run()["curve"]}
    return f"{curve[step]:.1%}"


def below_the_teacher(row: str) -> str:
    """Points of TinyBERT's Table 1, the mean of the test sets."""
    table = printed("tinybert")["glue"]
    return f"{table['teacher'] - table[row]:.1f}"


WORDS = ("captain", "sailor", "baker")

LOGITS, STUDENT = (6.0, 4.0, 0.0), (3.0, 3.0, 0.0)


def toy(temperature: float, logits: Sequence[float] = LOGITS) -> list[float]:
    """The probabilities of the three words, in their order."""
    return soften(logits, WORDS, temperature, top=3).probabilities


def ratio(temperature: float) -> str:
    """How many times as likely the first word is as the second."""
    captain, sailor, _ = toy(temperature)
    return f"{captain / sailor:.1f}"


def apart() -> tuple[list[tuple[float, float, float]], float, float]:
    """For each word both probabilities and its term of the KL; cross-entropy; the teacher's
    entropy."""
    t, s = torch.tensor(toy(1.0)), torch.tensor(toy(1.0, STUDENT))
    terms = t * (t / s).log()
    rows = list(zip(t.tolist(), s.tolist(), terms.tolist(), strict=True))
    return rows, -(t * s.log()).sum().item(), -(t * t.log()).sum().item()


@lru_cache(maxsize=16)
def gradient_norm(temperature: float) -> float:
    """The norm of T²·KL's gradient for the notebook's random logits; no weight is trained."""
    draw = torch.Generator().manual_seed(0)
    ours = (2 * torch.randn(64, 1_000, generator=draw)).requires_grad_()
    theirs = 2 * torch.randn(64, 1_000, generator=draw)
    return torch.autograd.grad(soft_target_loss(ours, theirs, temperature), ours)[0].norm().item()


@lru_cache(maxsize=1)
def gradients_at_the_start() -> dict[str, dict[float, float]]:
    """The norm of T²·KL's gradient for the student's logits, by how the student is initialised and
    by T: the shipped teacher, the first batch of the experiments, no step made."""
    world, teacher = the_world(), the_teacher()
    batch = prepare(world).batches(FULL, 0)(0)
    real = batch.inputs["attention_mask"].bool()
    norms: dict[str, dict[float, float]] = {}
    for begin, recipe in (
        ("the teacher's layers", FULL),
        ("random initialisation", STARTS["fresh"]),
    ):
        student = randomly_initialised_student(recipe, teacher, world, 0)
        inputs = [batch.inputs[k] for k in ("input_ids", "attention_mask", "token_type_ids")]
        with torch.no_grad():
            theirs, ours = (model(*inputs).logits[real] for model in (teacher, student))
        ours.requires_grad_()
        norms[begin] = {
            T: torch.autograd.grad(soft_target_loss(ours, theirs, T), ours)[0].norm().item()
            for T in (1.0, 2.0, 4.0, 8.0)
        }
    return norms


def gradient_fall(begin: str) -> str:
    """How many times smaller it is at T = 8 than at T = 2, where the page says it is largest."""
    norms = gradients_at_the_start()[begin]
    assert norms[2.0] == max(norms.values())
    return f"{norms[2.0] / norms[8.0]:.0f}"


def probed() -> dict[str, Any]:
    return stored("06_probe")


def probe(name: str, steps: int = 200) -> str:
    """The unstated-fact probe after so many fine-tuning steps."""
    return percent(outcome(probed(), f"job_accuracy {steps}")[name])


def ahead(one: str, other: str, steps: int = 600) -> str:
    """In how many seeds one student is ahead of another on the probe: "2 of 3"."""
    values = outcome(probed(), f"job_accuracy {steps}")
    pairs = list(zip(values[one], values[other], strict=True))
    return f"{sum(a > b for a, b in pairs)} of {len(pairs)}"


def first_masked() -> str:
    """Masked-token accuracy before the first step, where layers are copied: the least and most."""
    values = outcome(probed(), "masked_accuracy")
    starts = [values[f"step 0: {name}"][0] for name in STARTS if name != "fresh"]
    return f"{min(starts):.0%} to {max(starts):.0%}"


STORY = 11  # of 40 new ones: a masked word of which the teacher is not certain


@lru_cache(maxsize=1)
def masked_story() -> tuple[str, str, torch.Tensor]:
    """A story with one [MASK], the masked word, and the teacher's logits (V,) for it."""
    world = the_world()
    *halves, masked = world.stories(40, seed=3, split="heldout")[STORY].with_gap("fact")
    text = " ".join(halves)
    ids = torch.tensor([world.tokenizer.encode(text)])
    with torch.no_grad():
        logits = the_teacher()(ids).logits[0, ids[0].tolist().index(world.special.mask)]
    return text, masked, logits


@lru_cache(maxsize=8)
def softened(temperature: float, top: int = 8) -> Any:
    world, (_, masked, logits) = the_world(), masked_story()
    names = [world.tokenizer.token(i) for i in range(world.special.vocab_size)]
    return soften(logits, names, temperature, top=top, truth=masked)


def runners_up() -> str:
    """The second and the third word, at T = 1."""
    one = softened(1.0)
    return " and ".join(f"{one.words[i]} {one.probabilities[i]:.1%}" for i in (1, 2))


def same_as_its_teacher() -> float:
    """A student with all of its teacher's layers: how far its logits are from the teacher's."""
    teacher, text = the_teacher(), masked_story()[0]
    shape = {name: getattr(teacher.config, name) for name in (
        "vocab_size", "max_positions", "num_layers", "hidden_size", "num_heads",
        "intermediate_size")}  # fmt: skip
    student = BertForMaskedLM(distilbert_encoder(DistilBertConfig(**shape)))
    initialise_from(student, teacher, range(teacher.config.num_layers)).eval()
    ids = torch.tensor([the_world().tokenizer.encode(text)])
    with torch.no_grad():
        return (student(ids).logits - teacher(ids).logits).abs().max().item()


NARROW = {"hidden_size": 256, "num_heads": 4, "intermediate_size": 1_024, "vocab_size": 1_000}


@lru_cache(maxsize=1)
def stored_activations() -> tuple[float, float]:
    """Megabytes stored for the backward pass by twelve layers and by six: the notebook's pair, a
    third as wide as base, eight texts of 64 tokens."""
    torch.manual_seed(0)
    texts = torch.randint(5, 1_000, (8, 64))
    whole, half = (activation_bytes(of("base", **NARROW), texts) for of in (bert, distilbert))
    return whole / 1e6, half / 1e6


def fewer(whole: float, half: float) -> str:
    return f"{1 - half / whole:.0%}"


def narrow_fewer() -> str:
    """How many fewer weights the narrow copy of DistilBERT has than that of BERT-base."""
    with torch.device("meta"):
        return fewer(*(count_parameters(of("base", **NARROW)) for of in (bert, distilbert)))


def times_on_a_cpu() -> float:
    """By the paper's own clock."""
    return float(settled("06", "60% faster").value)


def reached(measure: str) -> dict[str, list[float]]:
    return outcome(students(), measure)


def _change(name: str, measure: str) -> list[float]:
    """Gained against the triple loss, one number a seed that both have."""
    runs = students()["runs"]
    base = {run["seed"]: run[measure] for run in runs["triple loss"]}
    return [run[measure] - base[run["seed"]] for run in runs[name] if run["seed"] in base]


def points(name: str, measure: str) -> str:
    difference = verdict(_change(name, measure))
    return re.sub(r"^[+−](0\.0) ", r"\1 ", difference)


ATTENTION_AXES = {"x_title": "general steps", "y_title": "unstated-fact probe", "percent": True}


def attention_lines() -> dict[str, list[list[tuple[int, float]]]]:
    """The probe of narrow students by general steps, a line a seed, for each attention weight."""
    results = attention_grid()
    lines: dict[str, dict[int, list[tuple[int, float]]]] = {}
    for name, recipe in results["recipes"].items():
        line = lines.setdefault(f"attention × {recipe['attention']:g}", {})
        for run in results["runs"][name]:
            line.setdefault(run["seed"], []).append((recipe["general"], run["job_accuracy"]))
    return {name: list(line.values()) for name, line in lines.items()}


def deeper() -> dict[str, Any]:
    return stored("06_tinybert_deeper")


def deeper_score(weight: float) -> str:
    return percent(outcome(deeper(), "job_accuracy")[f"attention × {weight:g}"])


def seeds_of(results: dict[str, Any]) -> str:
    seeds = len(next(iter(results["runs"].values())))
    return f"{in_letters(seeds)} seed{'s' if seeds > 1 else ''}"


def weighted(weight: float, general: int) -> list[float]:
    """The probe of the narrow students of one cell of the grid, a number a seed."""
    results = attention_grid()
    (name,) = (
        name
        for name, recipe in results["recipes"].items()
        if (recipe["attention"], recipe["general"]) == (weight, general)
    )
    return [run["job_accuracy"] for run in results["runs"][name]]


def weight_none_many() -> str:
    """Without the attention loss, after the long general stage; the page says that no mean with
    it is above."""
    for general in GENERAL_STEPS:
        means = [mean(weighted(weight, general)) for weight in ATTENTION_WEIGHTS]
        assert means[0] == max(means), general
    return percent(weighted(0.0, GENERAL_STEPS[1]))


def tiny_all_range() -> str:
    """From the least to the most of the seeds of the whole recipe; the page says that the lighter
    and the longer runs lie above."""
    values = narrow_reached()["all"]
    assert max(values) < min(weighted(0.1, GENERAL_STEPS[0]) + weighted(1.0, GENERAL_STEPS[1]))
    return f"{min(values):.0%} to {max(values):.0%}"


def reached_from(measure: str) -> dict[str, list[float]]:
    """By the teacher's layers that a student is initialised from."""
    return {name: reached(measure)[f"begin: {name}"] for name in STARTS}


def top_masked() -> str:
    """The student of the top layers; the slide says that no other reaches more."""
    means = {name: mean(values) for name, values in reached_from("masked_accuracy").items()}
    assert means["top"] == max(means.values())
    return f"{means['top']:.0%}"


def initial_layers(name: str) -> tuple[int, ...]:
    """The teacher's layers, counted from 0, that this student is initialised from."""
    choose = BEGINNINGS[name]
    depth = the_teacher().config.num_layers
    return () if choose is None else tuple(choose(depth, FULL.num_layers))


def mappings() -> str:
    small, whole = published("tinybert", "4"), published("bert", "base")
    return "; ".join(
        f"{kind} {as_list(layer_mapping(small.num_layers, whole.num_layers, kind))}"
        for kind in ("top", "bottom")
    )


def does_not_fit() -> str:
    """What PyTorch says when a narrow vector is taken from a wide one."""
    small, whole = published("tinybert", "4"), published("bert", "base")
    ours, theirs = (torch.zeros(1, 5, c.hidden_size) for c in (small, whole))
    try:
        _ = ours - theirs
    except RuntimeError as error:
        return str(error).splitlines()[0].split(" at non")[0]
    raise AssertionError("the widths must not fit")


def matrix() -> torch.nn.Linear:
    with torch.device("meta"):
        return fit_matrix(published("tinybert", "4"), published("bert", "base"))


def paper_changes(part: str, of: str = "all") -> dict[str, str]:
    """Points against the row `of`, in an ablation of the paper."""
    rows = {k: v for k, v in printed("tinybert")[part].items() if isinstance(v, float)}
    return {name: signed(score - rows[of]) for name, score in rows.items()}


def narrow_reached() -> dict[str, list[float]]:
    """The narrow students on the unstated-fact probe."""
    return outcome(narrow_students(), "job_accuracy")


def narrow_change(name: str) -> list[float]:
    """Gained against the whole recipe, a number a seed."""
    reached = narrow_reached()
    return [a - b for a, b in zip(reached[name], reached["all"], strict=True)]


def tiny_best() -> str:
    """What that student reaches; the slide says that it is the best of all in every seed."""
    reached = narrow_reached()
    for seed, value in enumerate(reached["without attention"]):
        assert value == max(values[seed] for values in reached.values()), seed
    return percent(reached["without attention"])


def tiny_alone() -> str:
    """What a student alone reaches; the slide says that all parts together do no better."""
    reached = narrow_reached()
    assert mean(reached["all"]) <= mean(reached["alone"])
    return percent(reached["alone"])


@lru_cache(maxsize=1)
def first_losses() -> dict[str, float]:
    """The three inner losses of a student that has not made a step, on 64 plain stories."""
    world, teacher = the_world(), the_teacher()
    material = Stories(64, length=LENGTH, world=world)
    rows = material.train
    pair, _ = general_stage(TINY, material, teacher, steps=0)
    mapping = layer_mapping(TINY.num_layers, teacher.config.num_layers, TINY.mapping)
    with torch.no_grad():
        outputs = pair(rows.input_ids, rows.attention_mask, rows.token_type_ids)
        losses = tinybert_loss(mapping)(outputs, {})
    return {name: value.item() for name, value in losses.items() if name != "total"}


def task_changes() -> dict[str, float]:
    """Points by which DistilBERT differs from BERT-base in Table 1, the greatest loss first."""
    return dict(sorted(lost_by_task().items(), key=lambda item: item[1]))


def masked_tokens(name: str) -> str:
    return percent(reached("masked_accuracy")[name])


def facts(name: str) -> str:
    return percent(reached("job_accuracy")[name])


def tiny_of_teacher() -> str:
    """The narrow student's weights, as a fraction of the teacher's."""
    return f"{narrow_students()['runs']['all'][0]['parameters'] / teacher_run()['parameters']:.0%}"


def initialisations_range() -> str:
    """Points between the best and the worst mean on the task, of those initialised from layers."""
    means = [
        mean(values)
        for name, values in reached_from("job_accuracy").items()
        if initial_layers(name)
    ]
    return f"{100 * (max(means) - min(means)):.1f}"


def head_width(family: str, size: str) -> int:
    config = published(family, size)
    return config.hidden_size // config.num_heads


NUMBERS: dict[str, Callable[[], Any]] = {
    "grid_seeds": lambda: seeds_of(attention_grid()),
    "past_random_facts": lambda: past("fresh weights", "job_accuracy"),
    "past_seeds": lambda: f"{in_letters(len(PAST_SEEDS))} seed{'s' * (len(PAST_SEEDS) > 1)}",
    "toy_logits": lambda: ", ".join(f"{w} {x:g}" for w, x in zip(WORDS, LOGITS, strict=True)),
    "spread_masked": lambda: percent(reached_from("masked_accuracy")["spread"]),
    "teacher_masked": lambda: f"{teacher_run()['masked_accuracy']:.0%}",
    "teacher_facts": lambda: f"{teacher_run()['job_accuracy']:.1%}",
    "tiny_gained": lambda: f"{100 * mean(narrow_change('without attention')):.0f}",
}

TYPED = {
    "100": "97 of 100 answers",
    "13%": "TinyBERT-4 of BERT-base, as its paper says",
    "128": "tokens, of which the FLOPs are counted",
    "1.63": "668 s / 410 s, DistilBERT's Table 3",
    "3.69": "DistilBERT's Table 4",
    "22.35": "billions of FLOPs of BERT-base",
    "312": "TinyBERT-4's width",
    "39%": "less time by DistilBERT's Table 3",
    "60%": "a saying about DistilBERT's speed",
    "63%": "more texts in the same time, by DistilBERT's Table 3",
    "70.2": "TinyBERT's Table 1",
    "71%": "DistilBERT's speed on a phone, printed",
    "720": "8 GPUs × 90 hours, DistilBERT's section 3",
    "768": "BERT-base's width",
    "77.0": "a mean that both papers print",
    "79.4": "TinyBERT's Table 1",
    "79.5": "BERT-base's mean, as both papers print it",
    "96.9%": "77.0 / 79.5",
    "97%": "DistilBERT's printed claim",
}
