"""Who reads what we save: models written by `save_folder` and `export_onnx`, opened by other
programs and compared with ours, number by number.

    python -m course_lib.bench.readers                       the readers that are installed here
    python -m course_lib.bench.readers --others all          and those that get an environment each
    python -m course_lib.bench.readers --markdown            only the tables of what is stored

samples.py writes the models, light.py holds the readers that run here, others.py runs the scripts
`read_….py` and `read_in_node.mjs` in environments of their own, tables.py shows what came out.
Stored in data/results/12_readers.json; a reader that is not run keeps what it gave last."""
