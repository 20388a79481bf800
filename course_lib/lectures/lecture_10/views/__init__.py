"""What page 10 shows that no other page does."""

from .across import across_view, alignment_table
from .centring import centring_view, nearest_on_paper
from .fertility import fertility_view
from .objectives import objectives_drawing
from .parallel import parallel_view
from .real import languages_table, layers_table, real_counts, retrieval_chart, vocabulary_chart
from .results import (
    aligned_chart,
    by_model,
    by_pair,
    by_spelling,
    curse_table,
    four_languages_chart,
    low_resource_chart,
    spelling_chart,
    table_of,
    transfer_chart,
)
from .sampling import sampling_view
from .sequence import pair_view
from .sizes import size_of, sizes_table
