"""What page 08 shows that no other page does."""

from .distance_buckets import bucket_chart, delta_tables
from .position_bias import bias_maps, t5_bucket
from .score_spread import score_statistics, score_variance
from .three_scores import attention_parts, draw_score_maps, measure_scores, score_maps
