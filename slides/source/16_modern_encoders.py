"""What deck 16 computes: figures and tables."""
