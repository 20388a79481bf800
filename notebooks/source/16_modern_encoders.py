# ---
# jupyter:
#   jupytext:
#     cell_metadata_filter: tags,slideshow,-all
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # Modern encoders
#
# **Lecture 16** · {{duration}} · {{colab}}
#
# After this page you can
#
# - say what this page is going to teach.
#
# You need the encoder of lecture 02. Nothing is downloaded.
#
# {{parts}}

# %%
from course_lib import bert, claims_table, count_parameters, published, quiz, show

# %% [markdown]
# ## Predict first
#
# BERT-base has {{number:layers}} layers. How many parameters has the smallest published BERT? Write a number down.

# %% [markdown]
# ## By hand
#
# To be written.

# %% [markdown]
# ## Try it
#
# To be written.

# %% [markdown]
# ## The code

# %%
show(published)

# %% [markdown]
# ## Is it right?

# %% tags=["nbval-check-output"]
print(f"{count_parameters(bert('tiny')):,}")

# %% [markdown]
# ## See it
#
# To be written.

# %% [markdown]
# ## Measure it
#
# To be written.

# %% [markdown]
# ## What they claim, what you measured

# %%
claims_table("16")

# %% [markdown]
# ## More exercises
#
# To be written.

# %% [markdown]
# ## Quiz

# %%
quiz("16")

# %% [markdown]
# ## Questions for review
#
# {{review:16}}

# %% [markdown]
# ## Read on
#
# To be written.
