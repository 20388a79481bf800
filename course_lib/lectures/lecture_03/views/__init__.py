"""What page 03 shows that no other page does."""

from .code_words import code_words_view
from .cut_pairs import cut_view
from .finetuning_charts import learning_curves, loss_line
from .glue_tables import glue_progress, glue_questions
from .outcomes import task_outcomes
from .reliability import reliability_view
from .span_pairs import span_explorer, span_table
from .tagged_words import tag_view
from .task_heads import task_shapes
