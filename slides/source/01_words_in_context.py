"""What deck 01 computes: figures and tables."""
