"""The command: write the models, let the chosen readers read them, and store what came out."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from course_lib.checkpoints.exporting import missing_packages
from course_lib.files import data_root, write_atomic, write_manifest

from .each import row_of
from .light import LIGHT, versions
from .others import OTHERS, run_other
from .samples import write_samples
from .tables import RESULT, readme_tables, stored


def run(work: Path, others: Sequence[str], keep: Path | None) -> dict[str, dict[str, Any]]:
    """The readers that are installed here, and those others that can be; who cannot is named."""
    readers: dict[str, dict[str, Any]] = {}
    for name, (read, packages) in LIGHT.items():
        try:
            about = versions(packages)
        except ModuleNotFoundError as error:
            print(f"{name} is not run: {error}")
            continue
        rows = {folder.name: row_of(read, folder) for folder in sorted(work.iterdir())}
        readers[name] = {"versions": about, "rows": rows}
    for name in others:
        try:
            readers |= run_other(name, work, keep)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"{name} is not run: {error}")
    return readers


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m course_lib.bench.readers",
        description="Which programs read what save_folder and export_onnx write.",
    )
    parser.add_argument(
        "--others",
        nargs="+",
        choices=(*OTHERS, "all"),
        default=[],
        help="readers that get an environment each (pip or npm, some minutes)",
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where environments stay")
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="where the models stay")
    parser.add_argument("--markdown", action="store_true", help="only show what is stored")
    options = parser.parse_args(arguments)  # fmt: skip
    if not options.markdown:
        if missing := missing_packages():
            parser.error(f"{', '.join(missing)}: pip install 'bert-family-course[onnx]'")
        others = tuple(OTHERS) if "all" in options.others else options.others
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            work = options.work or Path(folder)
            if not work.is_dir() or not any(work.iterdir()):
                write_samples(work)
            readers = run(work, others, options.keep)
        day = date.today().isoformat()
        today = {name: {**row, "measured": day} for name, row in readers.items()}
        result = {"readers": {**stored(), **today}}
        path = data_root() / "results" / f"{RESULT}.json"
        write_atomic(path, json.dumps(result, indent=1) + "\n")
        write_manifest(data_root())
        print(f"saved to data/results/{path.name}")
    print(readme_tables(stored()))


if __name__ == "__main__":
    main()
