"""What deck 13 computes: figures and tables."""
