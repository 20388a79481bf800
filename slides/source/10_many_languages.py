"""What deck 10 computes: figures and tables."""
