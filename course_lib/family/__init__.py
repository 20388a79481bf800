"""One file a member of the family: the difference from BERT, and nothing else."""
