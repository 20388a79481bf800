"""What page 05 shows that no other page does."""

from .calculator import parameter_calculator

__all__ = ["parameter_calculator"]
