"""The room of lecture 05: everything that belongs to it alone."""
