"""Every speed figure of the course, ours beside the peer's, in one run: `python -m
course_lib.bench`.

Contenders take turns within a round, so that a slow moment of the machine hits all of them; a table
shows the median over rounds with the middle half, and beside it the machine's own matrix-product
rate. The peer is the transformers library. Where ours is not the peer's mathematics (dropout off,
head on selected positions only), the rows name the change. Times are reported, never asserted."""

from .measuring import Contender, Measured, Table, as_table, measure

__all__ = ["Contender", "Measured", "Table", "as_table", "measure"]
