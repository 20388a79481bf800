"""What page 05 shows that no other page does."""

from .calculator import parameter_calculator
from .factors import factors_picture, visits_picture
from .pairs import openings_picture, pairs_picture
from .scores import glue_table, reading_table
