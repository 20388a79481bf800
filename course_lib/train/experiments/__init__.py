"""Experiments too long for a lecture, a file a lecture; `..results` runs them and keeps what they
find."""
