"""What deck 15 computes: figures and tables."""
