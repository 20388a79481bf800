"""What deck 09 computes: figures and tables."""
