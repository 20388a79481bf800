"""The room of lecture 07: everything that belongs to it alone."""
