"""Computations worth making fast: each file holds the readable reference and its fast twin, same
signature."""
