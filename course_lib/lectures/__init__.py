"""One room a lecture: its exercises, claims, experiments, views and quiz."""
