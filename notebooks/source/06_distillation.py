# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Distillation: a small model learns from a large one's answers
#
# **Lecture 06** · {{duration}} · {{colab}}
#
# After this page you can
#
# - soften a distribution with a temperature, and say where the factor T² comes from;
# - build DistilBERT, initialise it from half of its teacher's layers, and train it with its three losses;
# - build TinyBERT's losses on intermediate layers, and say which teacher layer teaches which student layer;
# - say what a student keeps and what it loses, in quality, size and time, and measure each by itself;
# - choose between DistilBERT, TinyBERT, a small BERT of your own and a quantised one, for a budget that is given.
#
# You need the encoder and the masked-LM head of lecture 02, and fine-tuning (lecture 03) for the probe that measures
# students. Nothing is downloaded: the teacher is a small BERT that the course trained on its micro-world and ships with it.
#
# {{parts}}

# %%
import torch

from course_lib import (
    MicroWorld, bert, check, claims_table, compare, count_parameters, distilbert, distilbert_for_masked_lm, hint,
    published, quiz, reveal, show, tinybert,
)  # fmt: skip
from course_lib.lectures.lecture_06.experiments import micro_teacher
from course_lib.teaching import LiveLoss, gradient_chart, ablation_chart, curves_chart, tradeoff_chart
from course_lib.lectures.lecture_06.views import half_drawing, layer_map_view, positions_drawing, temperature_view

# %% [markdown]
# ## A model that must answer in time
#
# A ferry company sorts its passengers' messages: refund, lost luggage, timetable. A fine-tuned BERT-base could do it.
# The service has a budget: **{{number:MILLISECONDS}} milliseconds** for a message of {{number:TOKENS}} tokens, **two processor cores** and no GPU, and
# **{{number:MEGABYTES}} MB** for the weights. (Company and budget are invented.) Does BERT-base fit?
#
# We count weights and FLOPs by its published shape, and time one layer of that shape here, on one message. Twelve layers
# take twelve times that. (The code is a clock and a printed table; the lecture starts below it.)

# %%
from course_lib.bench import Contender, measure
from course_lib.lectures.lecture_06.numbers import MEGABYTES, MILLISECONDS, TOKENS


def layer_times(names):
    """Milliseconds one layer of each shape needs for a message, at most two cores, best of five."""
    message, threads = torch.randint(5, 1_000, (1, TOKENS)), torch.get_num_threads()

    def reading(config):
        layer = bert("base", num_layers=1, vocab_size=1_000, **{k: getattr(config, k) for k in (
            "hidden_size", "num_heads", "intermediate_size")}).eval()  # fmt: skip
        return torch.no_grad()(lambda: layer(message))

    contenders = [Contender(name, lambda c=c: reading(c), 1) for c, name in names.items()]
    torch.set_num_threads(min(2, threads))
    rows = measure(contenders, rounds=5, seconds=0.1)
    torch.set_num_threads(threads)
    return {config: 1e3 / max(row.rates) for config, row in zip(names, rows)}


# %%
from course_lib.config import encoder_flops


def against_the_budget(models, means=None):
    """A row a model: weights, FLOPs and time, and whether they fit; means: GLUE, printed."""
    with torch.device("meta"):  # knows shapes only
        models = {name: make() for name, make in models.items()}
    times = layer_times({model.config: name for name, model in reversed(models.items())})  # a shape once
    print(f"\n{'':12}MB weights  fits  GFLOPs    ms here  fits{'  GLUE' if means else ''}")
    for name, model in models.items():
        megabytes = 4 * count_parameters(model) / 1e6  # float32: four bytes a weight
        time = model.config.num_layers * times[model.config]
        small, quick = ("yes" if fits else "no" for fits in (megabytes <= MEGABYTES, time <= MILLISECONDS))
        flops = encoder_flops(model.config, TOKENS) / 1e9
        print(f"{name:12}{megabytes:10.0f}{small:>6}{flops:8.2f}{time:11.1f}{quick:>6}{(means or {}).get(name, ''):>6}")


against_the_budget({"BERT-base": lambda: bert("base")})

# %% [markdown]
# *{{number:megabytes('BERT-base')}} MB of weights are too many, whatever the machine. As to time: {{number:gflops('bert', 'base'):.2f}} billion FLOPs in {{number:MILLISECONDS}} ms are {{number:needed('bert', 'base')}} billion a
# second, without a pause; the table says how long this machine takes instead.*
#
# So we want fewer weights and fewer FLOPs, and want to lose little of what BERT-base knows. That is what this page is
# about. At its end the table comes back, with small models in it.
#
# ## Predict first
#
# DistilBERT (Sanh et al. 2019, arXiv 1910.01108) is BERT-base with half of its layers taken out. It learns from three
# things at once: the teacher's full distribution over words (**soft targets**), the masked words themselves (**MLM**),
# and the direction of the teacher's last hidden states (**cosine**).
#
# Three guesses. Write them down before you go on.
#
# 1. Half of the layers are gone. What fraction of the *weights* is left?
# 2. How many times faster does it read one text, on a CPU?
# 3. Leave out one of the three losses. Which one is missed most, and which one least?

# %%
my_guesses = {"weights left": ..., "times faster": ..., "missed most": ..., "missed least": ...}

# %% [markdown]
# ## By hand
#
# ### What a teacher knows besides the answer
#
# *"The ___ steers the boat into the harbour."* The right word is "captain". A label says just that. A trained model says
# more: captain, perhaps sailor, hardly baker. Which wrong answers are nearly right is knowledge too, and a label
# does not hold it. Suppose the teacher's logits (the numbers before the softmax) are 6, 4 and 0:

# %% tags=["nbval-check-output"]
words = ["captain", "sailor", "baker"]
logits = torch.tensor([6.0, 4.0, 0.0])
for T in (1.0, 2.0, 4.0):
    probabilities = (logits / T).softmax(-1)
    print(f"T = {T:.0f}:  " + "   ".join(f"{w} {p:.3f}" for w, p in zip(words, probabilities.tolist())))

# %% [markdown]
# Dividing the logits by a **temperature** T before the softmax flattens the distribution. At T = 1 baker is nearly
# invisible; at T = 4 one can see both that it is last *and* by how much. The order of the words never changes.
#
# ### How far apart two distributions are
#
# The student's logits are 3, 3, 0. The **Kullback-Leibler divergence** KL(teacher ‖ student) is the mean of
# log(teacher's probability / student's probability), each word weighted by the teacher's probability. It is zero only
# when both agree.

# %% tags=["nbval-check-output"]
student = torch.tensor([3.0, 3.0, 0.0])
t, s = logits.softmax(-1), student.softmax(-1)
kl = (t * (t / s).log()).sum()
cross_entropy, entropy = -(t * s.log()).sum(), -(t * t.log()).sum()
print(f"KL {kl:.4f} = cross-entropy {cross_entropy:.4f} - the teacher's own entropy {entropy:.4f}")

# %% [markdown]
# The teacher's entropy does not depend on the student. So KL and cross-entropy with soft targets have the same gradient:
# papers that write one and programs that compute the other train the same student.
#
# ### Where T² comes from
#
# The gradient of the KL with respect to the student's logits is (student's probability − teacher's) / T. One 1/T
# stands there; and the softer the two distributions are, the smaller is their difference, roughly by another 1/T. So
# the gradient fades like 1/T², while that of any other loss beside it does not. The factor T² takes this back, for high temperatures.

# %%
from course_lib.kernels.distillation import soft_target_loss


def gradient_norm(T, factor):
    generator = torch.Generator().manual_seed(0)
    mine = (2 * torch.randn(64, 1_000, generator=generator)).requires_grad_()
    loss = soft_target_loss(mine, 2 * torch.randn(64, 1_000, generator=generator), T)
    return torch.autograd.grad(factor * loss, mine)[0].norm().item()


temperatures = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
gradient_chart(
    {"KL alone": [gradient_norm(T, 1 / T**2) for T in temperatures],
     "T² · KL": [gradient_norm(T, 1.0) for T in temperatures]},
    temperatures,
)  # fmt: skip

# %% [markdown]
# *Random logits of 64 positions and 1,000 words. Without the factor the gradient at T = 8 is {{number:round(gradient_norm(1.0) / (gradient_norm(8.0) / 8 ** 2))}} times smaller
# than at T = 1. With it, it falls to {{number:gradient_norm(8.0) / gradient_norm(1.0):.0%}}, most of that before T = 3, and then hardly changes: 1/T² is exact only for
# large T.*
#
# Do the weights between losses then mean the same at every T? Random logits are not a teacher's. For the teacher of this page, one real batch, and a student before its first step:

# %%
from course_lib.lectures.lecture_06.numbers import gradients_at_the_start

for begin, norms in gradients_at_the_start().items():
    print(f"{begin:24}" + "   ".join(f"T = {T:g}: {norm:.4f}" for T, norm in norms.items()))

# %% [markdown]
# **They do not: with T² the gradient is largest at T = 2 and {{number:gradient_fall('random initialisation')}} times smaller at T = 8** (random initialisation; from the teacher's layers it
# is alike). T² mends the scale for large T only: whoever changes T changes the balance of the losses, too.

# %% [markdown]
# ## Try it
#
# Two pieces that you have just seen for one word, now for many positions. A wrong answer gets the name of its mistake; `hint("06.1")` helps a
# step at a time, `reveal("06.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:06.1}}


# %%
def my_soften(logits, temperature):
    return ...


check("06.1", my_soften)

# %% [markdown]
# {{exercise:06.2}}


# %%
def my_soft_loss(student_logits, teacher_logits, temperature):
    return ...


check("06.2", my_soft_loss)

# %% [markdown]
# ## The code
#
# ### Half of BERT
#
# DistilBERT keeps the width and halves the depth. It drops the segment embeddings (it has no next-sentence objective)
# and the pooler (in pre-training only that objective uses it): its configuration has no segments, and it is built without
# a pooler. No random initialisation: its six layers are initialised from six of the teacher's twelve. The paper says
# "one layer out of two"; the released program takes 0, 2, 4, 7, 9 and 11, counted from 0: first and last, and evenly between.
#
# And the segments that the teacher had? Every text here is segment A. `initialise_from` adds that one vector to each
# position, so that the student's sum of embeddings is its teacher's.

# %%
half_drawing()

# %% [markdown]
# *Above BERT-base, below DistilBERT: each arrow is a layer that is copied, with all of its weights.*

# %%
from course_lib.family.distilbert import initialise_from, distilbert_encoder, every_other_layer, spread_layers

show(distilbert_encoder, spread_layers, initialise_from)

# %% tags=["nbval-check-output"]
print("12 layers to 6, first to last:", spread_layers(12, 6))
print("one layer out of two:         ", every_other_layer(12, 6))

# %% [markdown]
# ### The three losses
#
# Soft targets and cosine use all real tokens, the MLM loss only the masked positions. The README of the authors' program
# has two commands. The one for a single GPU weighs soft targets with 5, MLM with 2 and the cosine with 1; the one for four
# GPUs weighs all three with 0.33. Nobody says which of them made the released model. We take the first. Either way these
# are three free numbers, not α and 1 − α.
#
# One detail of the program is in no formula: its masks prefer *rare* words. A token is drawn with a weight of
# 1 / frequency^0.7, as in XLM's program (`pretraining_batches(…, rule="distilbert")`). Our students' masks are BERT's.

# %%
positions_drawing()

# %% [markdown]
# *A row for each loss, with its weight; ✓: the loss looks at this token.*

# %%
from course_lib.objectives.distillation import cosine_loss, distilbert_loss

show(soft_target_loss, cosine_loss, distilbert_loss)

# %% [markdown]
# `part_of_mean` leaves a mean as it is, unless the batch is a part of a larger one: then it takes that part of the larger batch's mean, so that
# the parts add up, however uneven they are.
#
# ### Teacher and student before the same text
#
# The training loop is that of lecture 02. It trains any model; so here is a model that holds two. The teacher reads
# under `no_grad` and never leaves evaluation mode: no dropout, no gradient, no change.

# %%
from course_lib.train.distilling import DistillationPair

show(DistillationPair)

# %% [markdown]
# ## Is it right?
#
# Our DistilBERT with its masked-LM head beside transformers' own, small, both with the same random weights: as many
# parameters, the same outputs, the same gradients?

# %%
small = {"num_layers": 3, "hidden_size": 128, "num_heads": 2, "intermediate_size": 512}
compare(distilbert_for_masked_lm("base", vocab_size=2_000, **small))

# %% [markdown]
# First guess of the page: count what is left, on PyTorch's *meta* device, which knows shapes only.

# %% tags=["nbval-check-output"]
with torch.device("meta"):
    counts = {
        "BERT-base": count_parameters(bert("base")),
        "DistilBERT": count_parameters(distilbert("base")),
        "TinyBERT-6": count_parameters(tinybert("6")),
        "TinyBERT-4": count_parameters(tinybert("4")),
    }
for name, count in counts.items():
    print(f"{name:12}{count:13,}   {count / counts['BERT-base']:6.1%} of BERT-base")

# %% [markdown]
# Half of the layers, three fifths of the weights: the embedding matrices stay whole. "40% smaller" is right; "half of
# BERT" is not.
#
# ## See it
#
# ### A real teacher's soft targets
#
# The course's teacher: four layers, {{number:the_teacher().config.hidden_size}} wide, trained on {{number:STORIES}} stories of the micro-world. We mask one
# word and look at the predicted distribution.

# %%
from course_lib.text.world import story_sequences

world = MicroWorld.load()
teacher = micro_teacher()
first, second, hidden = world.stories(40, seed=3, split="heldout")[11].with_gap("fact")
text = f"{first} {second}"
ids = torch.tensor([world.tokenizer.encode(text)])
with torch.no_grad():
    said = teacher(ids).logits[0, ids[0].tolist().index(world.special.mask)]
print(text, "\nmasked:", hidden)

# %%
names = [world.tokenizer.token(i) for i in range(world.special.vocab_size)]
temperature_view(said, names, truth=hidden)

# %% [markdown]
# *Bars: the teacher's likeliest words at the temperature you choose; the last bar is all other words together. Move T:
# below 1 the first word grows; higher, the runners-up close up, and finally everything is equally likely and nothing is
# said any more.*

# %% [markdown]
# At T = 1 the captain has {{number:softened(1.0).probabilities[0]:.0%}}. Look at who comes next: the diver, the sailor, trades of the harbour, then trades of other
# places. A label would have said only "captain".
#
# So T must be chosen: high enough that the second and third words are heard, low enough that the thousand others do not
# drown them. The students of this page use T = {{number:FULL.temperature:g}}, the default of DistilBERT's program, which neither of its commands changes. Here that gives the captain {{number:softened(2.0).probabilities[0]:.0%}}, and
# {{number:softened(2.0).rest:.0%}} to all words after the eighth together, next to nothing to each. DistilBERT's program softens *both*
# distributions, and uses T = 1 once the student is trained.
#
# ## Measure it
#
# ### One student, taught; one, alone
#
# Two students of two layers, trained live for the same 200 steps. The first is initialised from two of the teacher's
# layers and has the triple loss; the second has random initialisation and the MLM loss only.

# %%
from course_lib.lectures.lecture_06.experiments import STUDENTS, masked_accuracy, prepare, train_student

material = prepare(world)
live = {"the teacher": masked_accuracy(teacher, material)}
for name in ("triple loss", "alone"):
    print(name)
    student, history = train_student(STUDENTS[name], material, teacher, steps=200, callbacks=[LiveLoss()])
    live[name] = masked_accuracy(student, material)
    if name == "triple loss":
        taught = student

# %%
for name, accuracy in live.items():
    print(f"{name:14}{accuracy:7.1%} masked-token accuracy on new stories")

# %% [markdown]
# *The curves: the MLM loss of each, in nats; the two scales differ.*
#
# After 200 steps the first student is far ahead. Two things differ between them, the initialisation and the losses. Which
# of the two is it? And is 200 steps enough to ask? At step 500 of its own training the teacher's masked-token accuracy was {{number:teacher_at(500)}}, at
# step 1,000 {{number:teacher_at(1000)}}, at step {{number:TeacherRecipe().steps}} {{number:teacher_masked}}. So the long runs come first.
#
# ### Five times the steps
#
# Three students, {{number:PAST.steps}} steps and {{number:past_seeds}} ({{number:cpu_hours('06_past_plateau')}} hours on one core of a busy machine; a result file). A
# step with the teacher needs {{number:distillation_flops}} times the FLOPs of a step alone, so the student alone also gets *twice* the steps: still
# less than equal FLOPs, which was not run.
#
# Two measures: masked-token accuracy on new stories, and the unstated-fact probe: *what is the hero's job?*, for stories that
# never say it, after fine-tuning on {{number:LABELLED}} labelled ones. The last rows are zero lines: students before their first step ({{number:in_letters(len(SEEDS))}} seeds of the probe), and
# the majority class.

# %%
from course_lib.lectures.lecture_06.experiments import outcome
from course_lib.lectures.lecture_06.numbers import past_curves
from course_lib.teaching.results import in_words, read_result


def called(run):
    return run.replace("fresh weights", "random initialisation").replace("fresh", "random initialisation")


def print_rows(record, names, probe="job_accuracy"):
    for run, name in names.items():
        values = (outcome(record, what)[run] for what in ("masked_accuracy", probe))
        print(f"{name:40}" + "".join(f"{in_words(value):>26}" for value in values))


found, past, probed = (read_result(f"06_{name}") for name in ("distilbert", "past_plateau", "probe"))
taught_alone = read_result("06_teacher")["runs"]["teacher"][0]
student = {name: called(name).replace("random initialisation", "random initialisation, taught") for name in past["runs"]}
print(f"{'':40}{'masked-token accuracy':>26}{'unstated-fact probe':>26}")
print_rows(past, student)
print_rows(probed, {"step 0: spread": "the teacher's layers, step 0", "step 0: fresh": "random initialisation, step 0"}, "job_accuracy 200")
task = material.facts_heldout
print(f"{f'the majority class, of {len(task.names)}':40}{'–':>26}{task.labels.bincount().max() / len(task.labels):>26.1%}")

# %%
curves_chart(
    {student[name]: lines for name, lines in past_curves().items()}, levels={"the teacher": taught_alone["masked_accuracy"]},
    x_title="training step", y_title="masked-token accuracy", percent=True, title="Past the plateau",
)  # fmt: skip

# %% [markdown]
# *One line a student. The learning rate falls to zero over the whole of a run, so a point on the way is not the end of a shorter run.*
#
# - **The teacher's layers** are worth much in masked tokens, {{number:past('triple loss')}} against {{number:past('fresh weights')}}, and nothing on the probe:
#   {{number:past('triple loss', 'job_accuracy')}} and {{number:past_random_facts}}. Both are what the layers had *before the first step*: {{number:probe('step 0: spread')}}.
# - **The teacher's losses**, both from random initialisation: {{number:past('fresh weights')}} against {{number:past('alone')}} of the masked tokens, and on the
#   probe {{number:past_random_facts}} against {{number:past('alone', 'job_accuracy')}}.
# - **More steps in the teacher's place**: {{number:PAST_PLATEAU['alone, twice the steps'].steps}} steps alone give {{number:past('alone, twice the steps')}} of the masked tokens, more than any
#   of the taught, and {{number:past('alone, twice the steps', 'job_accuracy')}} on the probe.
#
# **On the probe a student alone is no better than one that was never trained**, which has {{number:probe('step 0: fresh')}}. So this probe, with its 200 steps
# of fine-tuning, tells little of what a student alone has learned. Is it the 200 steps? Three times as many, for students of {{number:FULL.steps}} steps:

# %%
print(f"{'':40}{'200 fine-tuning steps':>26}{'600':>26}")
names = {"step 0: fresh": "never trained", "step 400: alone": "alone", "step 400: fresh weights": "taught, from random initialisation"}
for run, name in names.items():
    values = (outcome(probed, f"job_accuracy {steps}")[run] for steps in (200, 600))
    print(f"{name:40}" + "".join(f"{in_words(value):>26}" for value in values))

# %% [markdown]
# **What remains after 600: the taught student is ahead of the untrained one in {{number:ahead('step 400: fresh weights', 'step 0: fresh')}} seeds and of the one alone in {{number:ahead('step 400: fresh weights', 'step 400: alone')}}; the one alone is ahead of
# the untrained one in {{number:ahead('step 400: alone', 'step 0: fresh')}}.** The lead over the one alone is half as large as after 200, in the mean. (One rate was tried for each.)
#
# ### An early table, and its lesson: leave one out
#
# More students, three seeds of each, after {{number:FULL.steps}} steps. What the table says is **who is ahead then**, no more.

# %%
words_found, jobs = outcome(found, "masked_accuracy"), outcome(found, "job_accuracy")
print(f"{'':40}{'masked-token accuracy':>26}{'unstated-fact probe':>26}")
print_rows(found, {name: called(name) for name in STUDENTS})

# %%
both = {"masked-token accuracy": words_found, "unstated-fact probe": jobs}
ablation_chart(
    {what: {called(name): values[name] for name in STUDENTS} for what, values in both.items()}, percent=True,
    title="Students of two layers", x_title="accuracy",
)  # fmt: skip

# %% [markdown]
# *Each dot is a seed, each bar a mean. The teacher, of four layers: masked-token accuracy {{number:teacher_masked}}; fine-tuned, {{number:teacher_facts}}
# on the unstated-fact probe (one run). A student that was never trained: {{number:probe('step 0: fresh')}}.*
#
# **After {{number:FULL.steps}} steps the *initialisation* is nearly all one sees**: {{number:spread_masked}} of the masked tokens from two of the teacher's layers; with random
# initialisation {{number:masked_tokens('fresh weights')}} with the teacher's losses, {{number:masked_tokens('alone')}} without. Among those from the teacher's layers, in points against all three
# losses: without soft targets {{number:points('without soft targets', 'masked_accuracy')}}, without MLM {{number:points('without masked words', 'masked_accuracy')}}, without cosine {{number:points('without cosine', 'masked_accuracy')}}; MLM only: {{number:masked_tokens("teacher's layers, masked words only")}}.
#
# The paper's own figures (Table 4, change of the mean over nine GLUE tasks against the whole recipe):
#
# | left out | change |
# |---|---|
# | soft targets | −2.96 |
# | cosine | −1.46 |
# | masked words (MLM) | −0.31 |
# | the teacher's layers (random initialisation) | −3.69 |
#
# Both orders begin with initialisation, then soft targets. Ours is one after {{number:FULL.steps}} steps, the paper's one after 90 hours: agreement is no
# confirmation, and disagreement no refutation.
#
# ### Which layers to initialise from
#
# How much does a student know *before the first loss is computed*, and after {{number:FULL.steps}} steps?

# %%
print(f"{'masked-token accuracy, probe:':32}{'at step 0':>20}{'after 400 steps':>44}")
for begin in (name.removeprefix("begin: ") for name in words_found if name.startswith("begin: ")):
    start = probed["runs"][f"step 0: {begin}"][0]["masked_accuracy"]
    probe_at_0 = in_words(outcome(probed, "job_accuracy 200")[f"step 0: {begin}"])
    later = (in_words(values[f"begin: {begin}"]) for values in (words_found, jobs))
    print(f"{called(begin):24}{start:7.1%}{probe_at_0:>24}  " + "".join(f"{value:>24}" for value in later))

# %% [markdown]
# **The layers carry over all that the probe asks for, and only a part of the masked tokens.** On the probe the four that copy layers
# are at their teacher's level ({{number:teacher_facts}}) before any training, and stay there. Of the teacher's {{number:teacher_masked}} masked tokens they begin with {{number:first_masked()}}: with layers taken
# out, the rest must be learned anew.
#
# After {{number:FULL.steps}} steps the *top* two layers are ahead: {{number:top_masked}}, against {{number:spread_masked}} for layers spread over the depth and {{number:percent(reached_from('masked_accuracy')['bottom'])}} for
# the bottom two. The head is the teacher's, and was trained on the output of the top layers; but *every other*, without the last layer, starts nearly as high, so this is not the whole reason.
# The paper tried only one way against random initialisation. Sajjad et al. (2020) drop layers of trained models without any distillation and find
# that the *top* ones can go: they fine-tune for a task, where no head of the teacher is kept.
#
# ### Size, time, memory: three different things
#
# Latency first: twelve layers against six, at batch 1 and batch 32, turn by turn. The layers are a third as wide as base's, so that this takes seconds; what matters is the
# ratio.

# %%
third = {"hidden_size": 256, "num_heads": 4, "intermediate_size": 1_024, "vocab_size": 1_000}
pair = {"12 layers": bert("base", **third), "6 layers": distilbert("base", **third)}


def readers(batch):
    text = torch.randint(5, 1_000, (batch, 64))

    def reading(model):
        with torch.no_grad():
            model(text)

    return [Contender(name, lambda m=m: lambda: reading(m), batch * 64) for name, m in pair.items()]


speed = {batch: measure(readers(batch), rounds=5, seconds=0.3) for batch in (1, 32)}
for batch, (whole, half) in speed.items():
    times = [1e3 * 64 * batch / row.median for row in (whole, half)]
    print(f"batch {batch:2}: {times[0]:7.1f} ms and {times[1]:7.1f} ms, {half.median / whole.median:.2f} times faster")

# %% [markdown]
# Second guess. The paper's own measurement is 668 against 410 seconds, **1.63 times** faster (Table 3: one CPU, batch
# of 1). TinyBERT's authors measured 2.0 on a GPU; FLOPs alone say 2.0. All are true; none is "the" speed. What
# does not shrink with the layers (tokenising, embeddings, the head, Python) sets the difference. A ratio well above 2 on
# your page means that something else was using the processor: run the cell again.
#
# And memory? "40% less memory" is said of DistilBERT. It has 40% fewer *weights*. The
# activations stored for the backward pass depend on layers and text.

# %%
from course_lib.train.memory import activation_bytes

texts = torch.randint(5, 1_000, (8, 64))
kept = {name: activation_bytes(model, texts) / 1e6 for name, model in pair.items()}
sizes = {name: 4 * count_parameters(model) / 1e6 for name, model in pair.items()}
for name in pair:
    print(f"{name:10}{sizes[name]:7.1f} MB of weights{kept[name]:8.1f} MB of activations stored for the backward pass")
print(
    f"{1 - sizes['6 layers'] / sizes['12 layers']:.0%} fewer weights, {1 - kept['6 layers'] / kept['12 layers']:.0%} less activations"
)

# %% [markdown]
# So the activations are halved with the layers, while the weights are not halved in DistilBERT: memory is two numbers,
# and "40% less" is one of them. (The weights shrink by {{number:narrow_fewer}} in this narrow copy, not by 40%: with 1,000 words instead
# of 30,522 the embedding matrices, which stay whole, weigh less.)
#
# ### A real distilled model, in its own size class
#
# MiniLM distils in yet another way: only the *last* layer teaches, by its attention weights and by the dot products of its value
# vectors, so neither depth nor width must fit the teacher's. The one here (six layers, 384 wide) is every second layer of a
# twelve-layer model that was made so, trained afterwards to give sentence vectors. How large is it beside other small models?

# %%
shapes = {
    "BERT-base": published("bert", "base"), "BERT-medium": published("bert", "medium"),
    "BERT-small": published("bert", "small"),
    "MiniLM": published("bert", "base", num_layers=6, hidden_size=384, intermediate_size=1_536),
    "TinyBERT-4": published("tinybert", "4"),
}  # fmt: skip
print(f"{'':12}{'layers':>7}{'width':>7}{'weights':>14}{'FLOPs, 128 tokens':>26}")
for name, shape in shapes.items():
    with torch.device("meta"):
        weights = count_parameters(bert("base", **{k: getattr(shape, k) for k in (
            "num_layers", "hidden_size", "num_heads", "intermediate_size")}))  # fmt: skip
    print(f"{name:12}{shape.num_layers:7}{shape.hidden_size:7}{weights:14,}{encoder_flops(shape, 128) / 1e9:22.2f} G")

# %% [markdown]
# BERT-small costs a little more than MiniLM and has more weights.

# %% [markdown]
# ## TinyBERT: intermediate-layer distillation
#
# DistilBERT copies layers, so its width is its teacher's. TinyBERT (Jiao et al. 2020, arXiv 1909.10351) may be
# narrower too, if its number of heads is the teacher's (attention is compared head by head) and, with the uniform mapping,
# its layers divide the teacher's. It starts from random initialisation and learns the teacher's intermediate layers too, that is, how the teacher
# *arrives* at its answers. Four losses:
#
# - **embedding**: the vectors before the first layer;
# - **attention**: the attention scores of each head, *before* the softmax;
# - **hidden**: the hidden states after each layer;
# - **prediction**: the soft targets, as above (with T = 1).
#
# ### Two widths that do not fit
#
# A student of 312, a teacher of 768: their vectors cannot be subtracted.

# %%
mine, theirs = torch.randn(1, 5, 312), torch.randn(1, 5, 768)
try:
    mine - theirs
except RuntimeError as error:
    print(error)

# %% [markdown]
# So a matrix W is learned beside the student, 312×768 and a bias of 768, and thrown away afterwards. One matrix serves
# all layers in the released program.

# %%
from course_lib.family.tinybert import fit_matrix, layer_mapping
from course_lib.objectives.distillation import attention_loss, hidden_loss, tinybert_loss

matrix = fit_matrix(published("tinybert", "4"), published("bert", "base"))
print("widened:", tuple(matrix(mine).shape), f"  the matrix: {count_parameters(matrix):,} numbers")
show(attention_loss, hidden_loss, tinybert_loss)

# %% [markdown]
# Why attention scores and not the attention weights after the softmax? Small weights are all close to 0. One head has
# scores (9, 3, 0) for three words, another (9, 0, 0): almost the same weights, although only the first head
# distinguishes the second word from the third.

# %% tags=["nbval-check-output"]
a, b = torch.tensor([9.0, 3.0, 0.0]), torch.tensor([9.0, 0.0, 0.0])
for what, gap in {"attention weights": a.softmax(-1) - b.softmax(-1), "attention scores": a - b}.items():
    print(f"mean squared error of {what}: {gap.square().mean():.6f}")

# %% [markdown]
# ### Who learns from whom
#
# A student of M layers, a teacher of N. **Uniform**: layer m learns from layer g(m) = m·N/M; with 4 and 12, from 3, 6,
# 9, 12. **Top**: from the last M. **Bottom**: from the first M. The embeddings always learn from the embeddings, the
# output from the output.

# %%
layer_map_view(4, 12)

# %% [markdown]
# *Lines lead from each layer of the student to the layer it learns from; choose the mapping.*

# %% [markdown]
# ### Two stages, and data augmentation
#
# Stage one, *general distillation*: intermediate-layer losses on plain text, no predictions. Stage two, *task-specific
# distillation*: the teacher is fine-tuned on the task; the student first learns its intermediate layers on the task's
# texts, then its predictions. A task has few texts, so data augmentation makes more: words are replaced by what a masked-word model would put there. (The paper takes neighbours in
# GloVe for words of several pieces; in our world every word is one piece.) Augmentation is a part of stage two, not a
# third stage.
#
# TinyBERT's program departs from its paper, and from ours, in small things. Its means run over padding as well, and the
# prediction loss is divided by the number of classes once more: `tinybert_loss(…, as_released=True)`. Its augmentation shows
# BERT the original text beside the masked one, leaves stop words and words with anything but letters as they are, and drops doubles.

# %%
from course_lib.text.augmentation import augment

grown = augment(material.facts[:1], teacher, world.special, copies=3)
for row in grown.sequences.input_ids:
    print(" ".join(world.tokenizer.token(i) for i in row.tolist() if i not in world.special.never_masked)[:110])

# %% [markdown]
# The first line is the text, the others are variants: four words in ten are replaced, each by one of the fifteen words
# that the teacher finds likeliest in its place. That is no longer good English. And if the hero's name changed, the old
# label may be wrong. The student needs no label: it learns the teacher's prediction for each text.
#
# ### What each part is worth
#
# Students of two layers and *half the width*, three seeds. The teacher is the same network, fine-tuned for {{number:TINY.prediction}}
# steps instead of 200. The measure is the unstated-fact probe alone: intermediate-layer losses train no masked-LM head.
#
# Each row leaves one thing out of *all*: one loss, or both *layer losses* (attention and hidden). *Without the teacher's
# answers* the last stage learns the labels instead; *alone* has no teacher at all, no augmentation, only the labels, and no
# pre-training either (the paper's small model without a teacher, BERT_TINY, is pre-trained).

# %%
tiny = read_result("06_tinybert")
job = outcome(tiny, "job_accuracy")
print(f"{'the teacher, fine-tuned':36}{tiny['taught_by']['job_accuracy']:.1%}")
for name, values in job.items():
    print(f"{name:36}{in_words(values)}")

# %%
ablation_chart(
    {"unstated-fact probe": job}, percent=True, title="Students half as deep and half as wide", x_title="accuracy"
)

# %% [markdown]
# *Each dot is a seed; the row without the attention loss lies furthest right.*

# %% [markdown]
# This is not the paper's order, so look twice. After {{number:TINY.general}} general steps the student *without* the attention loss is the
# best in every seed: {{number:tiny_best}}, {{number:tiny_gained}} points above all losses together. The hidden loss helps where attention is left out
# (without both: {{number:percent(narrow_reached()['without both layer losses'])}}). Soft targets {{number:percent(narrow_reached()['all'])}}, labels in their place {{number:percent(narrow_reached()["without the teacher's answers"])}}: within the spread of the seeds. The student that
# learns alone has {{number:tiny_alone}}.
#
# ### Is it the attention loss?
#
# Two things are unlike the paper, and both can be changed here. *Weight*: the losses are added as they are, and they are not of
# equal size: at the start attention is {{number:first_losses()['attention']:.1f}}, hidden {{number:first_losses()['hidden']:.1f}}, embedding {{number:first_losses()['embedding']:.1f}}. *Steps*: the paper's students read 2.5 billion words three
# times before any task; ours make {{number:GENERAL_STEPS[0]}} steps from random initialisation. So: attention times 0, 0.1 and 1, after {{number:GENERAL_STEPS[0]}} general
# steps and after {{number:GENERAL_STEPS[1]}}. All else stays equal; {{number:grid_seeds}} a cell, {{number:cpu_hours('06_tinybert_attention')}} CPU hours.

# %%
from course_lib.lectures.lecture_06.numbers import ATTENTION_AXES, attention_lines

for name, values in outcome(read_result("06_tinybert_attention"), "job_accuracy").items():
    print(f"{name:36}{in_words(values)}")
curves_chart(attention_lines(), **ATTENTION_AXES, title="A lighter attention loss, a longer general stage")

# %% [markdown]
# *Lines are means of the {{number:grid_seeds}}, bands reach from the worst to the best. A mark and a colour for each weight.*
#
# **It was weight and steps.** With a tenth of the weight, {{number:GENERAL_STEPS[0]}} steps are enough: {{number:percent(weighted(0.1, GENERAL_STEPS[0]))}}, without the attention loss {{number:percent(weighted(0.0, GENERAL_STEPS[0]))}}. With the
# full weight and {{number:GENERAL_STEPS[1]}} steps the student comes to {{number:percent(weighted(1.0, GENERAL_STEPS[1]))}}, without the attention loss to {{number:weight_none_many}}. Each change alone closes most of the gap;
# both together give {{number:percent(weighted(0.1, GENERAL_STEPS[1]))}}. So the
# table above tells no harm of attention: at full weight the student needs a longer general stage, and we had stopped it.
#
# How sure is this? After {{number:GENERAL_STEPS[0]}} steps at full weight the {{number:grid_seeds}} reach {{number:tiny_all_range}}; every lighter and every longer run
# lies above. Differences of a point among the others are smaller than what seeds do.
#
# What it does *not* show: that the attention loss helps. In the paper it is worth {{number:paper_changes('losses')['without_attention'].removeprefix('−')}} points; here no student with it is ahead of the one
# without. One cause can be tested: with two layers of four, the hidden states may already say what the scores could add.
#
# ### Deeper, and fewer labels
#
# So once more: a teacher of {{number:deeper()['teacher']['num_layers']}} layers ({{number:deeper()['teacher']['masked_accuracy']:.0%}} of the masked words), students of half as many, {{number:deeper()['labels']}} labels
# instead of {{number:LABELLED}}, {{number:GENERAL_STEPS[1]}} general steps, {{number:seeds_of(deeper())}}.

# %%
for name, values in outcome(read_result("06_tinybert_deeper"), "job_accuracy").items():
    print(f"{name:16}{in_words(values)}   each seed: {', '.join(f'{value:.1%}' for value in values)}")

# %% [markdown]
# With it {{number:deeper_score(1.0)}}, without {{number:deeper_score(0.0)}}, and the seeds disagree: one is better with the attention loss, the other without. Depth is not what was
# missing, as far as {{number:seeds_of(deeper())}} can tell. (Both students are above their teacher, which {{number:deeper()['labels']}} labels bring
# to {{number:deeper()['taught_by']['job_accuracy']:.0%}} only. They read twenty variants of each text, the teacher one; whether that is why was not tested.) Causes
# that are left, and not tested: the student's heads are half as wide as its teacher's; and a constant added to all scores of
# one query changes no attention weight, but the loss penalises it.
#
# The paper's ablation (mean of four development scores, TinyBERT-4):
#
# | all | w/o general | w/o task stage | w/o augmentation | w/o embedding | w/o prediction | w/o attention | w/o hidden | w/o both layer losses |
# |---|---|---|---|---|---|---|---|---|
# | 75.6 | 72.5 | 68.5 | 68.4 | 74.1 | 73.5 | 71.0 | 72.9 | **56.3** |
#
# Uniform mapping 75.6, top 70.9, bottom 71.3.
#
# ### What is kept
#
# Quality against size, for the models of this page.

# %%
from statistics import mean

sized = {run: found["runs"][run][0]["parameters"] for run in ("triple loss", "alone")}
points = [
    {"name": "teacher, 200 steps", "x": read_result("06_teacher")["runs"]["teacher"][0]["parameters"],
     "y": read_result("06_teacher")["runs"]["teacher"][0]["job_accuracy"]},
    *({"name": f"2×128, {run}", "x": sized[run], "y": mean(jobs[run]), "low": min(jobs[run]), "high": max(jobs[run])}
      for run in sized),
    *({"name": f"2×64, {run}", "x": tiny["runs"][run][0]["parameters"], "y": mean(job[run]), "low": min(job[run]),
       "high": max(job[run])} for run in ("without attention", "alone")),
]  # fmt: skip
tradeoff_chart(points, x="weights", y="unstated-fact probe, accuracy", title="Quality against size", percent=True)

# %% [markdown]
# *Dots: means over seeds, bars: least and most. Upper left is good. The wide students, like the teacher here, were
# fine-tuned for 200 steps, the narrow ones for {{number:TINY.prediction}}: compare those of one width. Both students called "alone" were stopped
# before they had learned the stories: how far they are below the others is the distance at that step, not the price of
# having no teacher. A wide student that was never trained has {{number:probe('step 0: fresh')}}, the zero line.*

# %% [markdown]
# ## What the papers reached
#
# DistilBERT (Table 1; GLUE development sets, medians of five runs):
#
# | | mean of 9 | CoLA | MNLI | MRPC | QNLI | QQP | RTE | SST-2 | STS-B | WNLI |
# |---|---|---|---|---|---|---|---|---|---|---|
# | BERT-base | 79.5 | 56.3 | 86.7 | 88.6 | 91.8 | 89.6 | 69.3 | 92.7 | 89.0 | 53.5 |
# | DistilBERT | 77.0 | 51.3 | 82.2 | 87.5 | 89.2 | 88.5 | 59.9 | 91.3 | 86.9 | 56.3 |
#
# 77.0/79.5 is 96.9%: "97% of BERT". But a mean hides its parts: RTE loses 9.4 points, CoLA 5.0, while WNLI *gains*
# 2.8. And one cell is misprinted: BERT-base's row does not have the mean that stands beside it. Exercise 06.6 finds the cell.
#
# TinyBERT (Table 1, test sets): BERT-base 79.5; TinyBERT-6 79.4; TinyBERT-4 77.0 with 13% of the weights; the same
# small shape without distillation 70.2. Training is not for free: DistilBERT took 90 hours on eight V100 GPUs, on all of
# BERT's text, *after* somebody had trained BERT.
#
# DistilBERT on two tasks outside GLUE (Table 2; a second, task-specific distillation is an option, tried on SQuAD only):
#
# | | IMDb, test accuracy | SQuAD 1.1, development set: exact match / F1 |
# |---|---|---|
# | BERT-base | 93.46 | 81.2 / 88.5 |
# | DistilBERT | 92.82 | 77.7 / 85.8 |
# | the same, a second distillation on SQuAD | – | 79.1 / 86.9 |
#
# What is lost depends on the task: 0.64 points for the mood of a film review, 2.7 of F1 for a span in a text. And on a
# phone: in a question answering program on an iPhone 7 Plus, DistilBERT was 71% faster than BERT-base, tokenising left
# out, and weighed 207 MB (section 4.1). We count {{number:megabytes('DistilBERT')}} MB of float32 weights; how its file was stored, the paper does not
# say.
#
# ### Back to the budget
#
# {{number:MILLISECONDS}} ms, two cores, {{number:MEGABYTES}} MB. The last column is the mean of the GLUE test sets that TinyBERT's Table 1 prints. Its
# last row is TinyBERT-4's shape, pre-trained as BERT was, without a teacher.

# %%
from course_lib.teaching.claims import printed

reached = printed("tinybert")["glue"]
against_the_budget(
    {"BERT-base": lambda: bert("base"), "DistilBERT": lambda: distilbert("base"),
     "TinyBERT-6": lambda: tinybert("6"), "TinyBERT-4": lambda: tinybert("4"),
     "no teacher": lambda: tinybert("4")},
    {"BERT-base": reached["teacher"], "DistilBERT": reached["distilbert_6"], "TinyBERT-6": reached["tinybert_6"],
     "TinyBERT-4": reached["tinybert_4"], "no teacher": reached["bert_tiny"]},
)  # fmt: skip

# %% [markdown]
# *Memory*: every student fits. *Time*: six layers of BERT-base's width halve the FLOPs, no more; they answer in {{number:MILLISECONDS}} ms
# only where the cores do {{number:needed('distilbert', 'base')}} billion FLOPs a second. TinyBERT-4, narrower as well, needs {{number:needed('tinybert', '4')}} billion. (A narrow layer
# does fewer FLOPs a second than a wide one: that is why the time is measured.)
#
# The weights are the same everywhere, the time is your machine's. Three cases:
#
# - *Your table says yes to DistilBERT.* Then the company has the choice, and what follows decides.
# - *No to DistilBERT, yes to TinyBERT-4.* The company takes TinyBERT-4, distilled for its own task. By the printed means
#   this costs {{number:below_the_teacher('tinybert_4')}} points against BERT-base; the same shape without a teacher costs the same time and memory and
#   loses {{number:below_the_teacher('bert_tiny')}}.
# - *No to all*, as on an old or a busy processor. Then distillation alone does not keep to this budget: shorter messages, a
#   smaller shape still, or other hardware must help.
#
# GLUE is not the company's task: it must measure its own.
#
# ### Which to take when
#
# | take | when | because | source |
# |---|---|---|---|
# | DistilBERT | many tasks, or tasks still to come; half the time is enough | distilled once, then fine-tuned as BERT is; not where RTE-like inference decides (−9.4) | DistilBERT, sections 3 and 4, Table 1 |
# | TinyBERT | one task, its texts at hand, a tight budget | narrower too; but without the task stage 68.5 instead of 75.6, so each task needs its own teacher and distillation | TinyBERT, section 4, ablation of the learning procedure |
# | a small BERT, pre-trained | no suitable teacher, or a shape or language that nobody distilled | pre-trained small models, fine-tuned, can compete with elaborate distillation; plain distillation on the task adds to it. In TinyBERT's comparison they lose: {{number:printed('tinybert')['glue']['bert_tiny']}} against {{number:str(printed('tinybert')['glue']['tinybert_4'])}} | Turc et al. 2019, arXiv 1908.08962, abstract; TinyBERT, Table 1 |
# | quantise: 8 bits a weight | the model is nearly small enough; memory is short | a quarter of the bytes with little loss, if it is trained for it while fine-tuning; faster only on hardware made for 8-bit integers | Zafrir et al. 2019, *Q8BERT*, arXiv 1910.06188, abstract |
# | prune attention heads | a trained model must do less work, without a new training | many heads can be removed after training with little loss; feed-forward parts and embeddings stay | Michel et al. 2019, arXiv 1905.10650, abstract |
#
# The last two do not compete with distillation: a student can be pruned and quantised as well (DistilBERT, section 5,
# calls them orthogonal). This page measures neither.

# %%
print(f"{'':16}{'you said':>14}   answer")
answers = {
    "weights left": f"{counts['DistilBERT'] / counts['BERT-base']:.0%}",
    "times faster": f"{speed[1][1].median / speed[1][0].median:.2f} here at batch 1; 1.63 in the paper",
    "missed most": "soft targets (paper; here too, after so few steps)",
    "missed least": "masked words (paper); the cosine (here, after so few steps)",
}
for name, value in answers.items():
    print(f"{name:16}{str(my_guesses[name]).replace('Ellipsis', '–'):>14}   {value}")

# %% [markdown]
# ## What they claim, what you measured
#
# Each line was settled by code that ran just now, by a result file, or, where neither can, by a source.

# %%
claims_table("06")

# %% [markdown]
# ## More exercises
#
# {{exercise:06.3}}


# %%
def my_triple_loss(student, teacher, real, labels, weights, temperature):
    return ...


check("06.3", my_triple_loss)

# %% [markdown]
# {{exercise:06.4}}


# %%
def my_initialise(student, teacher):
    return ...


check("06.4", my_initialise)

# %% [markdown]
# {{exercise:06.5}}


# %%
def my_layer_losses(student, teacher, mapping, matrix, real):
    return ...


check("06.5", my_layer_losses)

# %% [markdown]
# {{exercise:06.6}}


# %%
def my_misprint(row, printed, again):
    return ...


check("06.6", my_misprint)

# %% [markdown]
# ## Quiz

# %%
quiz("06")

# %% [markdown]
# ## Questions for review
#
# {{review:06}}

# %% [markdown]
# ## Read on
#
# - Hinton, Vinyals and Dean (2015), *Distilling the Knowledge in a Neural Network*, arXiv 1503.02531: soft targets and
#   the temperature.
# - Sanh et al. (2019), *DistilBERT*, arXiv 1910.01108. Five pages; check each number of its text against its tables.
# - Jiao et al. (2020), *TinyBERT*, arXiv 1909.10351: sections 3 and 4.
# - Turc et al. (2019), *Well-Read Students Learn Better*, arXiv 1908.08962: small BERTs, pre-trained first, distilled
#   after.
# - Wang et al. (2020), *MiniLM*, arXiv 2002.10957: only the last layer teaches.
# - Sun et al. (2019), *Patient Knowledge Distillation*, arXiv 1908.09355: the teacher's inner [CLS] vectors teach, before TinyBERT.
# - Sajjad et al. (2020), arXiv 2004.03844: dropping layers, without a teacher.
# - Stanton et al. (2021), *Does Knowledge Distillation Really Work?*, arXiv 2106.05945: *fidelity*, how often student and teacher
#   agree on new inputs, stays low even where the student's accuracy rises. This page measures accuracy only.
