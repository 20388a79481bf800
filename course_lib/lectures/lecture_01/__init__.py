"""The room of lecture 01: everything that belongs to it alone."""
