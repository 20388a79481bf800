"""What deck 12 computes: figures and tables."""
