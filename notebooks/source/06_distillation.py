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
# - say what a student keeps and what it loses in quality, size and time, and measure each separately;
# - choose between DistilBERT, TinyBERT, a small BERT of your own and a quantised one for a given budget.
#
# You need the encoder and the masked-LM head of lecture 02, and fine-tuning (lecture 03), with which we measure
# students. Nothing is downloaded: the teacher is a small BERT trained on the micro-world, which comes with the course.
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
# The service has a budget: **{{number:MILLISECONDS}} milliseconds** for a message of {{number:TOKENS}} tokens, **two
# processor cores** and no GPU, and **{{number:MEGABYTES}} MB** for the weights. (The company and its budget are
# invented.) Does BERT-base fit?
#
# We count the weights and FLOPs of its published shape, and time one layer of it here, on one message; twelve layers
# take about twelve times as long.

# %%
from functools import cache

from course_lib.bench import Contender, measure
from course_lib.lectures.lecture_06.numbers import MEGABYTES, MILLISECONDS, TOKENS


@cache
def layer_time(hidden_size, num_heads, intermediate_size):
    """Milliseconds one layer (with embeddings and pooler) needs for a message, two cores at most, best of five."""
    message, threads = torch.randint(5, 1_000, (1, TOKENS)), torch.get_num_threads()
    shape = {"hidden_size": hidden_size, "num_heads": num_heads, "intermediate_size": intermediate_size}
    layer = bert("base", num_layers=1, vocab_size=1_000, **shape).eval()
    torch.set_num_threads(min(2, threads))
    (timing,) = measure([Contender("layer", lambda: torch.no_grad()(lambda: layer(message)), 1)], rounds=5, seconds=0.1)
    torch.set_num_threads(threads)
    return 1e3 / max(timing.rates)


# %%
from course_lib.config import encoder_flops


def against_the_budget(models, means=None):
    """A row a model: weights, FLOPs and time, and whether they fit; means: GLUE, printed."""
    with torch.device("meta"):  # knows shapes only
        models = {name: make() for name, make in models.items()}
    configs = {name: model.config for name, model in models.items()}
    times = {name: c.num_layers * layer_time(c.hidden_size, c.num_heads, c.intermediate_size) for name, c in configs.items()}
    print(f"\n{'':12}MB weights  fits  GFLOPs    ms here  fits{'  GLUE' if means else ''}")
    for name, model in models.items():
        megabytes = 4 * count_parameters(model) / 1e6  # float32: four bytes a weight
        small_enough, fast_enough = ("yes" if fits else "no" for fits in (megabytes <= MEGABYTES, times[name] <= MILLISECONDS))
        flops = encoder_flops(configs[name], TOKENS) / 1e9
        print(f"{name:12}{megabytes:10.0f}{small_enough:>6}{flops:8.2f}{times[name]:11.1f}{fast_enough:>6}{(means or {}).get(name, ''):>6}")


against_the_budget({"BERT-base": lambda: bert("base")})

# %% [markdown]
# *{{number:megabytes('BERT-base')}} MB of weights are too many, whatever the machine. As for time,
# {{number:gflops('bert', 'base'):.2f}} billion FLOPs in {{number:MILLISECONDS}} ms require
# {{number:needed('bert', 'base')}} billion per second; the table shows this machine's time, at this moment.*
#
# So we want fewer weights and fewer FLOPs, but little loss of quality. The table comes back near the end, with small
# models in it.
#
# ## Predict first
#
# DistilBERT (Sanh et al. 2019, arXiv 1910.01108) is BERT-base with half of its layers removed. It is the *student* of
# BERT-base, its *teacher*, and learns from three things at once: the teacher's full distribution over words (**soft
# targets**), the masked words themselves (**MLM**), and the direction of the teacher's last hidden states (**cosine**).
#
# Write down three guesses before you go on.
#
# 1. Half of the layers are gone. What fraction of the *weights* is left?
# 2. How many times faster does it read one text on a CPU?
# 3. If you leave out one of the three losses, which one is missed most, and which one least?

# %%
my_guesses = {"weights left": ..., "times faster": ..., "missed most": ..., "missed least": ...}

# %% [markdown]
# ## By hand
#
# ### What a teacher knows besides the answer
#
# *"The ___ steers the boat into the harbour."* The correct word is "captain", and a label says just that. A trained
# model says more: captain, perhaps sailor, hardly baker. It knows which wrong answers are nearly right; a label does
# not contain that. Suppose the teacher's logits are 6, 4 and 0:

# %% tags=["nbval-check-output"]
words = ["captain", "sailor", "baker"]
logits = torch.tensor([6.0, 4.0, 0.0])
for T in (1.0, 2.0, 4.0):
    probabilities = (logits / T).softmax(-1)
    print(f"T = {T:.0f}:  " + "   ".join(f"{w} {p:.3f}" for w, p in zip(words, probabilities.tolist())))

# %% [markdown]
# Dividing the logits by a **temperature** T before the softmax flattens the distribution. At T = 1 baker is nearly
# invisible; at T = 4 you see that it comes last *and* by how much. The order of the words never changes.
#
# ### How far apart two distributions are
#
# The student's logits are 3, 3, 0. The **Kullback-Leibler divergence** KL(teacher ‖ student) is the mean of
# log(teacher's probability / student's probability), each word weighted by the teacher's probability. It is zero only
# when the two distributions agree.

# %% tags=["nbval-check-output"]
student_logits = torch.tensor([3.0, 3.0, 0.0])
t, s = logits.softmax(-1), student_logits.softmax(-1)
kl = (t * (t / s).log()).sum()
cross_entropy, entropy = -(t * s.log()).sum(), -(t * t.log()).sum()
print(f"KL {kl:.4f} = cross-entropy {cross_entropy:.4f} - the teacher's own entropy {entropy:.4f}")

# %% [markdown]
# The teacher's entropy does not depend on the student. So KL and cross-entropy with soft targets have the same
# gradient. A paper may write one and its code compute the other: the student is the same.
#
# ### Where T² comes from
#
# The gradient of the KL with respect to the student's logits is (student's probability − teacher's) / T, which contains
# one factor 1/T. Softer distributions are also closer together, which gives roughly another 1/T. So the gradient
# shrinks like 1/T², while the gradients of the other losses do not. At high temperatures the factor T² compensates for
# this. (`soft_target_loss` contains T²; the cell takes it out for "KL alone".)

# %%
from course_lib.kernels.distillation import soft_target_loss


def gradient_norm(T, factor):
    generator = torch.Generator().manual_seed(0)
    student_logits = (2 * torch.randn(64, 1_000, generator=generator)).requires_grad_()
    loss = soft_target_loss(student_logits, 2 * torch.randn(64, 1_000, generator=generator), T)
    return torch.autograd.grad(factor * loss, student_logits)[0].norm().item()


temperatures = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
gradient_chart(
    {"KL alone": [gradient_norm(T, 1 / T**2) for T in temperatures],
     "T² · KL": [gradient_norm(T, 1.0) for T in temperatures]},
    temperatures,
)  # fmt: skip

# %% [markdown]
# *Random logits for 64 positions and 1,000 words. Without the factor the gradient at T = 8 is
# {{number:round(gradient_norm(1.0) / (gradient_norm(8.0) / 8 ** 2))}} times smaller than at T = 1. With the factor it
# falls to {{number:gradient_norm(8.0) / gradient_norm(1.0):.0%}}, mostly before T = 3, and then hardly changes: the
# 1/T² law holds only for large T.*
#
# Losses are added with weights. Does a weight then mean the same at every T? Random logits cannot tell. Here are the
# gradients for this page's teacher, one real batch, and a student before its first step:

# %%
from course_lib.lectures.lecture_06.numbers import gradients_at_the_start

for initialisation, norms in gradients_at_the_start().items():
    print(f"{initialisation:24}" + "   ".join(f"T = {T:g}: {norm:.4f}" for T, norm in norms.items()))

# %% [markdown]
# **It does not: with T² the gradient is largest at T = 2 and {{number:gradient_fall('random initialisation')}} times
# smaller at T = 8** (random initialisation; a student initialised from the teacher's layers behaves alike). T² corrects
# the scale only where T is large compared with the logits. Here the gradient still falls between T = 4 and T = 8. If you
# change T, you also change the balance of the losses.

# %% [markdown]
# ## Try it
#
# Build two pieces that you have just seen for one word, now for many positions. Checks name your mistakes;
# `hint("06.1")` helps one step at a time, and `reveal("06.1")` shows a solution. No later cell needs your answers.
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
# and the pooler (in pre-training only that objective uses it). Its six layers are not initialised at random but from
# six of the teacher's twelve. The paper says "one layer out of two"; the released code takes 0, 2, 4, 7, 9 and 11,
# counted from 0: the first, the last, and evenly spaced layers between.
#
# Every text here is segment A. So `initialise_from` adds the teacher's vector of segment A to each position embedding, and
# the student's sum of embeddings equals its teacher's.

# %%
half_drawing()

# %% [markdown]
# *Above: BERT-base; below: DistilBERT. Each arrow is a layer that is copied with all of its weights.*

# %%
from course_lib.family.distilbert import initialise_from, distilbert_encoder, every_other_layer, spread_layers

show(distilbert_encoder, spread_layers, initialise_from)

# %% tags=["nbval-check-output"]
print("12 layers to 6, first to last:", spread_layers(12, 6))
print("one layer out of two:         ", every_other_layer(12, 6))

# %% [markdown]
# ### The three losses
#
# Soft targets and cosine use all real tokens, the MLM loss only the masked positions. The README of the authors' code
# has two commands. The one for a single GPU gives soft targets the weight 5, MLM 2 and the cosine 1; the one for four
# GPUs gives all three 0.33. The authors do not say which of them made the released model. We use the first. In both,
# the weights are three independent numbers, not α and 1 − α as often in distillation.
#
# One detail of the code is in no formula: its masks prefer *rare* words. A token is drawn with a weight of 1 /
# frequency^0.7, as in the code of XLM, lecture 10 (`pretraining_batches(…, rule="distilbert")`). Our students use
# BERT's masks.

# %%
positions_drawing()

# %% [markdown]
# *Each row is a loss with its weight; ✓ means that the loss uses this token.*

# %%
from course_lib.objectives.distillation import cosine_loss, distilbert_loss

show(soft_target_loss, cosine_loss, distilbert_loss)

# %% [markdown]
# `part_of_mean` is an ordinary mean. If a batch is processed in parts, it gives each part's contribution to the mean of
# the whole batch.
#
# ### Teacher and student before the same text
#
# We use the training loop of lecture 02. It trains any model, so we give it a model that contains two. The teacher runs
# under `no_grad` and stays in evaluation mode: it has no dropout and no gradient, and it does not change. (The `matrix`
# belongs to TinyBERT, below.)

# %%
from course_lib.train.distilling import DistillationPair

show(DistillationPair)

# %% [markdown]
# ## Is it right?
#
# We give a small DistilBERT of ours, masked-LM head included, and transformers' own the same random weights. Do parameter
# counts, outputs and gradients agree?

# %%
small = {"num_layers": 3, "hidden_size": 128, "num_heads": 2, "intermediate_size": 512}
compare(distilbert_for_masked_lm("base", vocab_size=2_000, **small))

# %% [markdown]
# Your first guess: we count what is left, on PyTorch's *meta* device, which stores only shapes. (TinyBERT follows
# below.)

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
# Half of the layers leave three fifths of the weights, because the embedding matrices stay whole. "40% smaller" is
# correct; "half of BERT" is not.
#
# ## See it
#
# ### A real teacher's soft targets
#
# The course's teacher has four layers of width {{number:the_teacher().config.hidden_size}} and was trained on
# {{number:STORIES}} stories of the micro-world. We mask one word of which it is not certain, and look at the
# predicted distribution.

# %%
from course_lib.text.world import story_sequences

world = MicroWorld.load()
teacher = micro_teacher()
first, second, masked_word = world.stories(40, seed=3, split="heldout")[11].with_gap("fact")
text = f"{first} {second}"
ids = torch.tensor([world.tokenizer.encode(text)])
with torch.no_grad():
    mask_logits = teacher(ids).logits[0, ids[0].tolist().index(world.special.mask)]
print(text, "\nmasked:", masked_word)

# %%
vocabulary = [world.tokenizer.token(i) for i in range(world.special.vocab_size)]
temperature_view(mask_logits, vocabulary, truth=masked_word)

# %% [markdown]
# *The bars are the teacher's most likely words at the temperature you choose; the last bar is all other words together.
# Move T: below 1 the first word grows; at higher T the next words catch up, until all are nearly equal.*

# %% [markdown]
# At T = 1 "captain" has {{number:softened(1.0).probabilities[0]:.0%}}. The next words are diver and sailor, jobs at the
# harbour, then jobs elsewhere.
#
# T must be high enough to make the second and third words visible, but low enough that the thousand others do not drown
# them. The students before TinyBERT use T = {{number:FULL.temperature:g}}, the default of DistilBERT's code, unchanged by
# its commands. Here "captain" then has {{number:softened(2.0).probabilities[0]:.0%}}. All words after the eighth have
# {{number:softened(2.0).rest:.0%}} together, next to nothing each. DistilBERT's code softens *both* distributions, and
# uses T = 1 once the student is trained.
#
# ## Measure it
#
# ### One student, taught; one, alone
#
# We train two students of two layers live, for 200 steps each. The first is initialised from the teacher's
# embeddings, head and two of its layers, and has all three losses (the *triple loss*); the second has random initialisation and only the MLM loss.
# In all sections before TinyBERT, students share one learning rate for training and one for fine-tuning.

# %%
from course_lib.lectures.lecture_06.experiments import STUDENTS, masked_accuracy, prepare, train_student

material = prepare(world)
live = {"the teacher": masked_accuracy(teacher, material)}
for name in ("triple loss", "alone"):
    print(name)
    student, history = train_student(STUDENTS[name], material, teacher, steps=200, callbacks=[LiveLoss()])
    live[name] = masked_accuracy(student, material)

# %%
for name, accuracy in live.items():
    print(f"{name:14}{accuracy:7.1%} masked-token accuracy on new stories")

# %% [markdown]
# *The curves show the MLM loss of each student, in nats; their scales differ.*
#
# After 200 steps the first student is far ahead. Does its initialisation explain this, or do its losses? And are 200 steps
# enough to tell? In its own training the teacher's masked-token accuracy was {{number:teacher_at(500)}} at step 500,
# {{number:teacher_at(1000)}} at step 1,000 and {{number:teacher_masked}} at step {{number:TeacherRecipe().steps}}. So we look at long runs first.
#
# ### Five times the steps
#
# We train three students for {{number:PAST.steps}} steps, five times as many as in the early table below, with
# {{number:past_seeds}} (stored results; {{number:cpu_hours('06_past_plateau')}} hours on one core of a busy machine). A
# step with the teacher needs {{number:distillation_flops}} times the FLOPs of a step alone, so the student alone is also
# trained for *twice* the steps. Equal FLOPs would be more; we did not run that.
#
# We measure masked-token accuracy on new stories and the **unstated-fact probe**: *what is the hero's job?*, asked
# about stories that never say it, after fine-tuning on {{number:LABELLED}} labelled ones. The last rows are baselines:
# students before their first step ({{number:in_letters(len(SEEDS))}} seeds) and the majority class.

# %%
from course_lib.lectures.lecture_06.experiments import outcome
from course_lib.lectures.lecture_06.numbers import past_curves
from course_lib.teaching.results import in_words, read_result


def run_label(run):
    label = run.replace("fresh weights", "random initialisation").replace("fresh", "random initialisation")
    return label.replace("masked words", "MLM")


def print_rows(record, names, probe="job_accuracy"):
    for run, name in names.items():
        values = (outcome(record, what)[run] for what in ("masked_accuracy", probe))
        print(f"{name:40}" + "".join(f"{in_words(value):>26}" for value in values))


early_runs, long_runs, probe_runs = (read_result(f"06_{name}") for name in ("distilbert", "past_plateau", "probe"))
teacher_run = read_result("06_teacher")["runs"]["teacher"][0]
long_labels = {name: run_label(name).replace("initialisation", "initialisation, taught") for name in long_runs["runs"]}
print(f"{'':40}{'masked-token accuracy':>26}{'unstated-fact probe':>26}")
print_rows(long_runs, long_labels)
print_rows(probe_runs, {"step 0: spread": "the teacher's layers, step 0", "step 0: embeddings and head": "only its embeddings and head, step 0",
                        "step 0: fresh": "random initialisation, step 0"}, "job_accuracy 200")
task = material.facts_heldout
print(f"{f'the majority class, of {len(task.names)}':40}{'–':>26}{task.labels.bincount().max() / len(task.labels):>26.1%}")

# %%
curves_chart(
    {long_labels[name]: lines for name, lines in past_curves().items()}, levels={"the teacher": teacher_run["masked_accuracy"]},
    x_title="training step", y_title="masked-token accuracy", percent=True, title="Past the plateau",
)  # fmt: skip

# %% [markdown]
# *Each line is a student. From random initialisation accuracy rises slowly at first: the plateau. The learning rate falls
# to zero over a whole run, so a point on the way does not show what a shorter run would reach.* Two baselines without a network: always predicting the
# most frequent word has a masked-token accuracy of {{number:level(Unigram):.0%}}, and the word most often counted between the
# same two neighbours {{number:level(NeighbourCounts):.0%}}.
#
# - **The teacher's layers** help a lot in masked-token accuracy, {{number:past('triple loss')}} against
#   {{number:past('fresh weights')}}, but not on the probe: {{number:past('triple loss', 'job_accuracy')}} and
#   {{number:past_random_facts}}. Both are at the level that the layers reach *before the first step*:
#   {{number:probe('step 0: spread')}}.
# - **The teacher's losses**: from random initialisation, masked-token accuracy is {{number:past('fresh weights')}} with them
#   and {{number:past('alone')}} without, which one seed cannot tell apart; the probe gives {{number:past_random_facts}}
#   against {{number:past('alone', 'job_accuracy')}}.
# - **More steps instead of a teacher**: {{number:PAST_PLATEAU['alone, twice the steps'].steps}} steps alone give a
#   masked-token accuracy of {{number:past('alone, twice the steps')}}, about as much as the better taught student, but
#   {{number:past('alone, twice the steps', 'job_accuracy')}} on the probe.
#
# **On the probe a student alone is no better than one that was never trained**, which has
# {{number:probe('step 0: fresh')}}. So this probe, with its 200 steps of fine-tuning, shows little of what a student
# learns alone. Are 200 steps too few? Here are three times as many, for students trained for {{number:FULL.steps}}
# steps (we did not repeat it for the long runs):

# %%
print(f"{'':40}{'200 fine-tuning steps':>26}{'600':>26}")
names = {"step 0: fresh": "never trained", "step 400: alone": "alone", "step 400: fresh weights": "taught, from random initialisation"}
for run, name in names.items():
    values = (outcome(probe_runs, f"job_accuracy {steps}")[run] for steps in (200, 600))
    print(f"{name:40}" + "".join(f"{in_words(value):>26}" for value in values))

# %% [markdown]
# **After 600 fine-tuning steps the taught student is still ahead of the untrained one in
# {{number:ahead('step 400: fresh weights', 'step 0: fresh')}} seeds and ahead of the one alone in
# {{number:ahead('step 400: fresh weights', 'step 400: alone')}}; the one alone is ahead of the untrained one in
# {{number:ahead('step 400: alone', 'step 0: fresh')}}.** The taught student's mean lead over the one alone is half as
# large as after 200 steps.
#
# ### An early table, and its lesson: leave one out
#
# Now we train more students, with three seeds each, for {{number:FULL.steps}} steps. (*Random initialisation* has all
# three losses, *alone* only MLM.) The table only shows **which student is ahead at that point**. Where layers are
# copied, seeds differ only in batches and fine-tuning.

# %%
wide_masked, wide_probe = outcome(early_runs, "masked_accuracy"), outcome(early_runs, "job_accuracy")
print(f"{'':40}{'masked-token accuracy':>26}{'unstated-fact probe':>26}")
print_rows(early_runs, {name: run_label(name) for name in STUDENTS})

# %%
both = {"masked-token accuracy": wide_masked, "unstated-fact probe": wide_probe}
ablation_chart(
    {what: {run_label(name): values[name] for name in STUDENTS} for what, values in both.items()}, percent=True,
    title="Students of two layers", x_title="accuracy",
)  # fmt: skip

# %% [markdown]
# *Each dot is a seed, each bar a mean. The teacher, with four layers, has a masked-token accuracy of
# {{number:teacher_masked}} and, fine-tuned, {{number:teacher_facts}} on the unstated-fact probe (one run). A student
# that was never trained has {{number:probe('step 0: fresh')}} on the probe.*
#
# **After {{number:FULL.steps}} steps the *initialisation* accounts for nearly all differences in masked-token accuracy**: it is
# {{number:spread_masked}} from two of the teacher's layers; from random initialisation it is
# {{number:masked_tokens('fresh weights')}} with the teacher's losses and {{number:masked_tokens('alone')}} without.
# Compared with the triple loss, students from the teacher's layers gain or lose these points: without soft targets
# {{number:points('without soft targets', 'masked_accuracy')}}, without MLM
# {{number:points('without masked words', 'masked_accuracy')}}, without cosine
# {{number:points('without cosine', 'masked_accuracy')}}. With MLM only they reach
# {{number:masked_tokens("teacher's layers, masked words only")}}.
#
# Compare the paper's figures (Table 4: change of the mean over nine GLUE tasks):
#
# | left out | change |
# |---|---|
# | soft targets | −2.96 |
# | cosine | −1.46 |
# | masked words (MLM) | −0.31 |
# | the teacher's layers (random initialisation) | −3.69 |
#
# Both orders begin with initialisation, then soft targets. But ours is of masked-token accuracy after
# {{number:FULL.steps}} steps, which cannot test the paper's.
#
# ### Which layers to initialise from
#
# How good is a student *before its first training step*, and after {{number:FULL.steps}} steps?

# %%
print(f"{'':24}{'at step 0':>37}  {'after 400 steps':>48}")
print(f"{'initialised from':24}{'masked-token':>13}{'probe':>24}  {'masked-token':>24}{'probe':>24}")
for layers in (name.removeprefix("begin: ") for name in wide_masked if name.startswith("begin: ")):
    masked_at_0 = probe_runs["runs"][f"step 0: {layers}"][0]["masked_accuracy"]
    probe_at_0 = in_words(outcome(probe_runs, "job_accuracy 200")[f"step 0: {layers}"])
    later = (in_words(values[f"begin: {layers}"]) for values in (wide_masked, wide_probe))
    print(f"{run_label(layers):24}{masked_at_0:13.1%}{probe_at_0:>24}  " + "".join(f"{value:>24}" for value in later))

# %% [markdown]
# **Copied layers are enough for the probe from the start, but not for masked-token accuracy.** On the probe the four
# students with copied layers are at their teacher's level ({{number:teacher_facts}}) before any training, and stay
# near it. Part of that comes from the embeddings and the head, which are copied with the layers: alone, under random
# layers, they give {{number:probe('step 0: embeddings and head')}} on the probe, where a student with nothing copied has
# {{number:probe('step 0: fresh')}}. In masked-token accuracy they begin with {{number:first_masked()}}, against the teacher's
# {{number:teacher_masked}}, and must learn the rest again.
#
# After {{number:FULL.steps}} steps the *top* two layers are ahead with {{number:top_masked}}, against
# {{number:spread_masked}} for layers spread over the depth and
# {{number:percent(reached_from('masked_accuracy')['bottom'])}} for the bottom two. One reason may be the head, which
# the teacher trained on the output of its top layers. But the choice *every other* omits the last layer and starts
# nearly as high. The paper compared only one choice of layers with random initialisation. Sajjad et al. (2020),
# without any distillation, find that the *top* layers can go; but they fine-tune for a task and do not keep the
# pre-training head.
#
# ### Size, time, memory: three different things
#
# We begin with latency. Twelve layers and six take turns, at batch 1 and batch 32. The layers are a third as wide as
# base's, so that this takes only seconds; look at the ratio.

# %%
third_of_width = {"hidden_size": 256, "num_heads": 4, "intermediate_size": 1_024, "vocab_size": 1_000}
pair = {"12 layers": bert("base", **third_of_width), "6 layers": distilbert("base", **third_of_width)}


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
# This answers your second guess. The paper measured 668 against 410 seconds, **1.63 times** faster (Table 3: one CPU,
# batch of 1). TinyBERT's authors measured 2.0 on a GPU; FLOPs alone give 2.0. Parts that do not shrink with the layers,
# such as tokenising or the head, may make the difference; our cell times neither. A ratio well above 2 on your page
# suggests that something else was using the processor: run the cell again.
#
# And memory? Some say that DistilBERT needs "40% less memory". It has 40% fewer *weights*. The activations stored for
# the backward pass depend on the layers and the text.

# %%
from course_lib.teaching.memory import activation_bytes

texts = torch.randint(5, 1_000, (8, 64))
activations = {name: activation_bytes(model, texts) / 1e6 for name, model in pair.items()}
sizes = {name: 4 * count_parameters(model) / 1e6 for name, model in pair.items()}
for name in pair:
    print(f"{name:10}{sizes[name]:7.1f} MB of weights{activations[name]:8.1f} MB of activations stored for the backward pass")
print(
    f"{1 - sizes['6 layers'] / sizes['12 layers']:.0%} fewer weights, "
    f"{1 - activations['6 layers'] / activations['12 layers']:.0%} less memory for activations"
)

# %% [markdown]
# So half of the layers store half of the activations, but DistilBERT keeps more than half of the weights. Memory is at
# least two numbers, and "40% less" is one of them. (In this narrow copy the weights shrink by {{number:narrow_fewer}}, not by
# 40%: with 1,000 words instead of 30,522, the embedding matrices, which stay whole, are a smaller part.)
#
# ### A real distilled model, in its own size class
#
# MiniLM distils in another way: only the *last* layer teaches, through its attention weights and the dot products of
# its value vectors. So neither depth nor width must match the teacher's, only the number of heads. The one that this
# course uses (all-MiniLM-L6-v2: six layers, 384 wide) has every second layer of a twelve-layer model distilled in this
# way, and was trained afterwards to give sentence vectors. How large is it beside other small models?

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
# BERT-small needs somewhat more FLOPs than MiniLM and has more weights: compare MiniLM with it, not with BERT-base.

# %% [markdown]
# ## TinyBERT: intermediate-layer distillation
#
# DistilBERT copies layers, so it is as wide as its teacher. TinyBERT (Jiao et al. 2020, arXiv 1909.10351) may also be
# narrower. It needs the teacher's number of heads, because attention is compared head by head, and with the uniform
# mapping (below) its number of layers must divide the teacher's. It starts from random initialisation and also learns
# the teacher's intermediate layers, that is, how the teacher *arrives* at its answers. It has four losses:
#
# - **embedding**: the vectors before the first layer;
# - **attention**: the attention scores of each head, *before* the softmax;
# - **hidden**: the hidden states after each layer;
# - **prediction**: the soft targets, as above (with T = 1).
#
# ### Two widths that do not fit
#
# The vectors of a student of width 312 and a teacher of width 768 cannot be subtracted.

# %%
student_states, teacher_states = torch.randn(1, 5, 312), torch.randn(1, 5, 768)
try:
    student_states - teacher_states
except RuntimeError as error:
    print(error)

# %% [markdown]
# So a matrix W (312×768, with a bias of 768) is trained together with the student and discarded afterwards. In the
# released code one matrix serves all layers.

# %%
from course_lib.family.tinybert import fit_matrix, layer_mapping
from course_lib.objectives.distillation import attention_loss, hidden_loss, tinybert_loss

matrix = fit_matrix(published("tinybert", "4"), published("bert", "base"))
print("widened:", tuple(matrix(student_states).shape), f"  the matrix: {count_parameters(matrix):,} numbers")
show(attention_loss, hidden_loss, tinybert_loss)

# %% [markdown]
# Why does it compare attention scores and not the attention weights after the softmax? With scores the authors saw faster
# convergence and better results. A possible reason: small weights are all close to 0. Suppose one head has the scores
# (9, 3, 0) for three words and another (9, 0, 0). Their weights are almost the same, although only the first head
# distinguishes the second word from the third.

# %% tags=["nbval-check-output"]
a, b = torch.tensor([9.0, 3.0, 0.0]), torch.tensor([9.0, 0.0, 0.0])
for what, gap in {"attention weights": a.softmax(-1) - b.softmax(-1), "attention scores": a - b}.items():
    print(f"mean squared error of {what}: {gap.square().mean():.6f}")

# %% [markdown]
# ### Who learns from whom
#
# The student has M layers, the teacher N. **Uniform**: student layer m learns from teacher layer g(m) = m·N/M; with 4
# and 12 layers, from 3, 6, 9, 12. **Top**: the student learns from the last M layers. **Bottom**: from the first M. The
# embeddings always learn from the embeddings, the output from the output.

# %%
layer_map_view(4, 12)

# %% [markdown]
# *A line connects each layer of the student with the layer it learns from. Choose the mapping.*

# %% [markdown]
# ### Two stages, and data augmentation
#
# Stage one is *general distillation*: only the intermediate-layer losses, on plain text. Stage two is *task-specific
# distillation*: the teacher is fine-tuned on the task; the student first learns the teacher's intermediate layers on
# the task's texts, then its predictions. A task has few texts, so data augmentation makes more: a masked language model
# replaces words by likely ones. (For words of several pieces the paper takes neighbours in GloVe, lecture 01; in our
# world every word is one piece.)
#
# TinyBERT's code differs from its paper, and from our code, in small ways. Its means include padding, and it divides
# the prediction loss once more by the number of classes: `tinybert_loss(…, as_released=True)`. Its augmentation shows
# BERT the original text beside the masked one, does not replace stop words or words with non-letters, and drops
# duplicates.

# %%
from course_lib.text.augmentation import augment

augmented = augment(material.facts[:1], teacher, world.special, copies=3)
for token_ids in augmented.sequences.input_ids:
    print(" ".join(world.tokenizer.token(i) for i in token_ids.tolist() if i not in world.special.never_masked)[:110])

# %% [markdown]
# The first line is the text, the others are variants: about four words in ten are replaced, each by one of the fifteen
# words that the teacher finds most likely in its place (perhaps itself). This is no longer good English, and if the
# hero's name changed, the old label may be wrong. But the student needs no label: it learns the teacher's prediction for
# each text.
#
# ### What each part is worth
#
# We train students of two layers and *half the width* with three seeds. Their teacher is the one above, fine-tuned for
# {{number:TINY.prediction}} steps instead of 200. We measure only the unstated-fact probe: intermediate-layer losses
# train no masked-LM head.
#
# Each row omits something from *all*: one loss, or both *layer losses* (attention and hidden). *Without the teacher's
# answers* the last stage learns the labels instead, also for the variants. *Alone* has only the labels: no teacher, no
# augmentation, and no pre-training either (the paper's small model without a teacher, BERT_TINY, is pre-trained).

# %%
narrow_runs = read_result("06_tinybert")
narrow_probe = outcome(narrow_runs, "job_accuracy")
print(f"{'the teacher, fine-tuned':36}{narrow_runs['taught_by']['job_accuracy']:.1%}")
for name, values in narrow_probe.items():
    print(f"{name:36}{in_words(values)}")

# %%
ablation_chart(
    {"unstated-fact probe": narrow_probe}, percent=True, title="Students half as deep and half as wide", x_title="accuracy"
)

# %% [markdown]
# *Each dot is a seed; the students without the attention loss are furthest right.*

# %% [markdown]
# This differs from the paper's order (below), so we look closer. After {{number:TINY.general}} steps of general distillation (*general steps*) the student
# *without* the attention loss is best in every seed: {{number:tiny_best}}, {{number:tiny_gained}} points above all
# losses together. Without attention, the hidden loss helps in every seed (without both:
# {{number:percent(narrow_reached()['without both layer losses'])}}). Soft targets give
# {{number:percent(narrow_reached()['all'])}} and labels
# {{number:percent(narrow_reached()["without the teacher's answers"])}}, a difference within the spread of the seeds.
# The student that learns alone has {{number:tiny_alone}}, no less than with all losses.
#
# ### Is it the attention loss?
#
# Two things may explain it, and we can change both. *Weight*: the losses are added without weights, though their sizes
# differ: at the start attention is {{number:first_losses()['attention']:.1f}}, hidden
# {{number:first_losses()['hidden']:.1f}}, embedding {{number:first_losses()['embedding']:.1f}}. *Steps*: the paper's
# students read 2.5 billion words three times before any task; ours take {{number:GENERAL_STEPS[0]}} steps from random
# initialisation. So we multiply the attention loss by 0, 0.1 and 1, for {{number:GENERAL_STEPS[0]}} general steps and
# for {{number:GENERAL_STEPS[1]}}. Everything else is equal; each combination has {{number:grid_seeds}}
# ({{number:cpu_hours('06_tinybert_attention')}} CPU hours).

# %%
from course_lib.lectures.lecture_06.numbers import ATTENTION_AXES, attention_lines

for name, values in outcome(read_result("06_tinybert_attention"), "job_accuracy").items():
    print(f"{name:36}{in_words(values)}")
curves_chart(attention_lines(), **ATTENTION_AXES, title="A lighter attention loss, a longer general stage")

# %% [markdown]
# *Lines are means of the {{number:grid_seeds}}; bands reach from the worst to the best.*
#
# **A lighter weight or more steps: either closes most of the gap.** With a tenth of the weight,
# {{number:GENERAL_STEPS[0]}} steps are enough: {{number:percent(weighted(0.1, GENERAL_STEPS[0]))}}, against
# {{number:percent(weighted(0.0, GENERAL_STEPS[0]))}} without the attention loss. With the full weight and
# {{number:GENERAL_STEPS[1]}} steps the student reaches {{number:percent(weighted(1.0, GENERAL_STEPS[1]))}}, against
# {{number:weight_none_many}} without the attention loss. Both changes together give
# {{number:percent(weighted(0.1, GENERAL_STEPS[1]))}}. So the table above does not show that the attention loss does harm in general:
# at full weight the student needs a longer general stage.
#
# After {{number:GENERAL_STEPS[0]}} steps at full weight the {{number:grid_seeds}} reach
# {{number:tiny_all_range}}; every run with a lighter weight or more steps is above that. The other means differ by about
# a point, no more than the seeds do; but at full weight, after {{number:GENERAL_STEPS[1]}} steps, every seed is still
# behind the same seed without the loss.
#
# We have *not* shown that the attention loss helps. In the paper it is worth
# {{number:paper_changes('losses')['without_attention'].removeprefix('−')}} points; here no mean with it is above the
# mean without. A possible cause: in a student with two of four layers, the hidden states may already contain what
# the attention scores could add.
#
# ### Deeper, and fewer labels
#
# So we repeat the experiment with a teacher of {{number:deeper()['teacher']['num_layers']}} layers
# ({{number:deeper()['teacher']['masked_accuracy']:.0%}} masked-token accuracy), students of half as many,
# {{number:deeper()['labels']}} labels instead of {{number:LABELLED}}, {{number:GENERAL_STEPS[1]}} general steps, and
# {{number:seeds_of(deeper())}}.

# %%
for name, values in outcome(read_result("06_tinybert_deeper"), "job_accuracy").items():
    print(f"{name:16}{in_words(values)}   each seed: {', '.join(f'{value:.1%}' for value in values)}")

# %% [markdown]
# The student has {{number:deeper_score(1.0)}} with the attention loss and {{number:deeper_score(0.0)}} without, and the
# seeds disagree. As far as {{number:seeds_of(deeper())}} can tell, more depth and fewer labels, changed at once, do not
# make the attention loss help; depth may still matter. (Both students are above their teacher, which reaches only
# {{number:deeper()['taught_by']['job_accuracy']:.0%}} with {{number:deeper()['labels']}} labels. They read
# twenty variants of each text, the teacher one: a possible reason, not tested.) Two more causes are untested. The student's
# heads are half as wide as its teacher's. And if all scores of one query grow by a constant, no attention weight changes,
# but the loss does.
#
# Here is the paper's ablation (TinyBERT-4; mean of the development scores of MNLI-m, MNLI-mm, MRPC and CoLA):
#
# | all | w/o general | w/o task stage | w/o augmentation | w/o embedding | w/o prediction | w/o attention | w/o hidden | w/o both layer losses |
# |---|---|---|---|---|---|---|---|---|
# | 75.6 | 72.5 | 68.5 | 68.4 | 74.1 | 73.5 | 71.0 | 72.9 | **56.3** |
#
# The uniform mapping gives 75.6, top 70.9 and bottom 71.3.
#
# ### What is kept
#
# How much accuracy on the probe is left in students of each width?

# %%
from statistics import mean

sizes_by_run = {run: early_runs["runs"][run][0]["parameters"] for run in ("triple loss", "alone")}
points = [
    {"name": "teacher, 200 steps", "x": teacher_run["parameters"], "y": teacher_run["job_accuracy"]},
    {"name": "teacher, 400 steps", "x": teacher_run["parameters"], "y": narrow_runs["taught_by"]["job_accuracy"]},
    *({"name": f"2×128, {run}", "x": sizes_by_run[run], "y": mean(wide_probe[run]), "low": min(wide_probe[run]),
       "high": max(wide_probe[run])} for run in sizes_by_run),
    *({"name": f"2×64, {run}", "x": narrow_runs["runs"][run][0]["parameters"], "y": mean(narrow_probe[run]),
       "low": min(narrow_probe[run]), "high": max(narrow_probe[run])} for run in ("without attention", "alone")),
]  # fmt: skip
tradeoff_chart(points, x="weights", y="unstated-fact probe, accuracy", title="Quality against size", percent=True)

# %% [markdown]
# *Dots are means over seeds; bars reach from the worst to the best. Upper left is good. The wide students and the teacher
# were fine-tuned for 200 steps, the narrow students for {{number:TINY.prediction}}: compare each with the teacher after as many.
# "Without attention" is the best row of its table. The wide student called "alone" was stopped early, the narrow one
# was never pre-trained: their gaps are not the cost of having no teacher. A wide student that was never trained has {{number:probe('step 0: fresh')}}.*

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
# 77.0/79.5 is 96.9%: "97% of BERT". But a mean hides its parts: RTE loses 9.4 points, CoLA 5.0, while WNLI *gains* 2.8 (two of 71 texts, up
# to the majority class). And BERT-base's row does not have the printed mean: exercise 06.6 finds the misprinted cell.
#
# TinyBERT reports test sets (Table 1): BERT-base has 79.5, TinyBERT-6 79.4, and TinyBERT-4 77.0 with 13% of the
# weights; the same small shape without distillation has 70.2 (augmentation may explain part of this gap). Training is not free: DistilBERT took 90 hours on eight
# V100 GPUs, on all of BERT's text, *after* somebody had trained BERT.
#
# DistilBERT was also tested on two tasks outside GLUE (Table 2; the second distillation is an option, tried on SQuAD
# only):
#
# | | IMDb, test accuracy | SQuAD 1.1, development set: exact match / F1 |
# |---|---|---|
# | BERT-base | 93.46 | 81.2 / 88.5 |
# | DistilBERT | 92.82 | 77.7 / 85.8 |
# | the same, a second distillation on SQuAD | – | 79.1 / 86.9 |
#
# How much is lost depends on the task: 0.64 points of accuracy for the sentiment of a film review, 2.7 points of F1 for finding a span in a
# text. On a phone (a question-answering app on an iPhone 7 Plus) DistilBERT was 71% faster than BERT-base (tokenising
# not counted) and had 207 MB (section 4.1). We count {{number:megabytes('DistilBERT')}} MB of float32 weights; the
# paper does not say how its file was stored.
#
# ### Back to the budget
#
# The budget was {{number:MILLISECONDS}} ms, two cores and {{number:MEGABYTES}} MB. The last column is the mean over the
# GLUE test sets from TinyBERT's Table 1. The last row is TinyBERT-4's shape, pre-trained like BERT, without a teacher.

# %%
from course_lib.teaching.claims import printed

glue_means = printed("tinybert")["glue"]
against_the_budget(
    {"BERT-base": lambda: bert("base"), "DistilBERT": lambda: distilbert("base"),
     "TinyBERT-6": lambda: tinybert("6"), "TinyBERT-4": lambda: tinybert("4"),
     "no teacher": lambda: tinybert("4")},
    {"BERT-base": glue_means["teacher"], "DistilBERT": glue_means["distilbert_6"], "TinyBERT-6": glue_means["tinybert_6"],
     "TinyBERT-4": glue_means["tinybert_4"], "no teacher": glue_means["bert_tiny"]},
)  # fmt: skip

# %% [markdown]
# *Memory*: every student fits. *Time*: six layers of BERT-base's width halve the FLOPs. They answer in
# {{number:MILLISECONDS}} ms only if the cores reach {{number:needed('distilbert', 'base')}} billion FLOPs per second.
# TinyBERT-4, which is also narrower, needs {{number:needed('tinybert', '4')}} billion. (A narrow layer reaches fewer
# FLOPs per second than a wide one, so we measure the time.) BERT-base, DistilBERT and TinyBERT-6 have equal
# layers, timed once: their times are as 2 to 1 to 1. There are three cases:
#
# - *Your table says yes to DistilBERT.* Then the company has a choice, and the next table helps.
# - *It says no to DistilBERT, but yes to TinyBERT-4.* Then the company takes TinyBERT-4, distilled for its own task. By the printed means
#   this costs {{number:below_the_teacher('tinybert_4')}} points against BERT-base; the same shape without a teacher needs the same time and memory and
#   loses {{number:below_the_teacher('bert_tiny')}}.
# - *It says no to all*, as on an old or busy processor. Then none of these students meets the budget: the company needs shorter messages, an
#   even smaller shape, or other hardware.
#
# GLUE is not the company's task: the company must measure its own.
#
# ### Which to take when
#
# | take | when | because | source |
# |---|---|---|---|
# | DistilBERT | many tasks, or tasks still to come; half the FLOPs are enough | distilled once, then fine-tuned like BERT; but it loses most on RTE (−9.4) | DistilBERT, sections 3 and 4, Table 1 |
# | TinyBERT | one task with texts at hand, a tight budget | also narrower; but it has 68.5 instead of 75.6 without the task stage, so each task needs its own teacher and distillation | TinyBERT, section 4, ablation of the learning procedure |
# | a small BERT, pre-trained | no suitable teacher, or a shape or language that nobody distilled | fine-tuned small pre-trained models can compete with elaborate distillation; plain distillation on the task improves them further. In TinyBERT's comparison they lose: {{number:printed('tinybert')['glue']['bert_tiny']}} against {{number:str(printed('tinybert')['glue']['tinybert_4'])}} | Turc et al. 2019, arXiv 1908.08962, abstract; TinyBERT, Table 1 |
# | quantise: 8 bits per weight | the model is nearly small enough; memory is short | a quarter of the bytes with little loss, if fine-tuning takes the quantisation into account; faster only on hardware made for 8-bit integers | Zafrir et al. 2019, *Q8BERT*, arXiv 1910.06188, abstract |
# | prune attention heads | a trained model must do less work without being retrained | many heads can be removed after training with little loss; feed-forward parts and embeddings stay | Michel et al. 2019, arXiv 1905.10650, abstract |
#
# The last two do not compete with distillation: a student can also be pruned and quantised (DistilBERT, section 5).
# This page measures neither.
#
# Now compare your three guesses:

# %%
print(f"{'':16}{'your guess':>14}   answer")
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
# Each line was checked by code that ran just now, by a result file, or, where neither is possible, by a source.

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
# - Sanh et al. (2019), *DistilBERT*, arXiv 1910.01108. Check its text against its tables.
# - Jiao et al. (2020), *TinyBERT*, arXiv 1909.10351: sections 3 and 4.
# - Turc et al. (2019), *Well-Read Students Learn Better*, arXiv 1908.08962: small BERTs, pre-trained first, distilled
#   after.
# - Wang et al. (2020), *MiniLM*, arXiv 2002.10957: only the last layer teaches.
# - Sun et al. (2019), *Patient Knowledge Distillation*, arXiv 1908.09355: an earlier method, in which the teacher's intermediate [CLS] vectors teach.
# - Sajjad et al. (2020), arXiv 2004.03844: dropping layers, without a teacher.
# - Stanton et al. (2021), *Does Knowledge Distillation Really Work?*, arXiv 2106.05945: *fidelity*, how often student and teacher
#   agree on new inputs, stays low even when the student's accuracy rises. This page measures accuracy only.
