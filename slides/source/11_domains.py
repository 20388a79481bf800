"""What deck 11 computes: figures and tables."""
