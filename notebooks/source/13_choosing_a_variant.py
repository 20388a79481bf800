# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Choosing a variant: nine tasks, one honest benchmark, and a guide
#
# **Lecture 13** · {{duration}} · {{colab}}
#
# After this page you can
#
# - say what GLUE's nine tasks ask, what each is scored by, and what "the average" of them means;
# - compare models so that the comparison holds: same text, same FLOPs, seeds, intervals, controls;
# - time a model properly, and say what its size, its memory and its time have to do with each other;
# - exchange one member of the family for another in code, and know what changes;
# - choose a model for a task, give the reason, and say what would change your mind.
#
# You need fine-tuning from lecture 03. Each member's own page says how it works. Nothing is downloaded.
#
# {{parts}}

# %%
from course_lib import check, claims_table, quiz, show
from course_lib.lectures.lecture_13 import benchmark, guide, interfaces
from course_lib.lectures.lecture_13.views import (
    averages_table, benchmark_view, equal_size_chart, guide_view, interfaces_table, tasks_chart,
)  # fmt: skip
from course_lib.teaching import LiveLoss
from course_lib.teaching.results import stored
from course_lib.text.glue import GLUE, glue_items

# %% [markdown]
# ## Predict first
#
# Somebody hands you a table: twelve models, one number each. "Take the highest." Three guesses before you do.
#
# 1. Seven of ten sentences are good English. A model calls *every* sentence good. What does GLUE give it, from −1 to 1?
# 2. One paper prints an average of 79.6 for BERT. The eight scores that another paper prints for DistilBERT average 79.6 too. Are the two as good as each other? Yes or no.
# 3. All members of the family read the same stories, for equally many FLOPs, and learn nine tasks. By how many points of the average does the best one lead BERT?

# %%
my_guesses = {"calls all good": ..., "as good": ..., "points ahead": ...}

# %% [markdown]
# ## By hand
#
# ### A score that cannot be bribed
#
# Twenty sentences, fourteen of them good. A model calls sixteen good: thirteen rightly.
#
# | | called good | called bad |
# |---|---|---|
# | **good** | 13 | 1 |
# | **bad** | 3 | 3 |
#
# Accuracy: (13 + 3) / 20 = 80%. Calling everything good would have 70%. **Matthews' correlation** takes both into account:
#
# (13 · 3 − 3 · 1) / √(16 · 4 · 14 · 6) = 36 / 73.3 = **0.49**
#
# Call everything good, and a column of the table is empty: 0. That is the first guess. GLUE scores one of its nine tasks, CoLA, this way.
#
# ### The same row, two averages
#
# A row of scores: MNLI 84 on known topics and 82 on new ones, CoLA 52, RTE 66.
#
# | recipe | sum | average |
# |---|---|---|
# | four numbers, MNLI twice | (84 + 82 + 52 + 66) / 4 | **71.0** |
# | three tasks, MNLI's two numbers averaged | (83 + 52 + 66) / 3 | **67.0** |
#
# Four points, and no model has changed. Papers use both, and four more.
#
# ### Is 82% more than 80%?
#
# A hundred test texts. Both models are right on 78, both wrong on 16. On **six** texts they differ: four times the second is right, twice the first. A coin that falls 4 to 2 surprises nobody. The difference of two points rests on six texts.
#
# ## Try it
#
# Six pieces to build. `hint("13.1")` helps a step at a time, `reveal("13.1")` shows a solution. No later cell needs your answers.
#
# {{exercise:13.1}}


# %%
def my_matthews(tp, fp, fn, tn):
    return ...


check("13.1", my_matthews)

# %% [markdown]
# {{exercise:13.2}}


# %%
def my_average(row, recipe):
    return ...


check("13.2", my_average)
