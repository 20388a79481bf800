"""A mutation campaign: broken inputs, drawn with a fixed seed, at each door of the library.

    python tests/mutation --mutants 4000 --seed 0 [--door NAME]

A door is a function that reads what others wrote. Each mutant is a valid input with one thing
broken; `breaking.py` says how its end is sorted. Bare and silent are faults; each is listed with
the number that draws it again (--only NUMBER). A further door is a further `Door` in a list of
doors; tests/library/test_mutation.py runs a few hundred mutants."""

from __future__ import annotations

import argparse
import sys

from breaking import campaign, table
from broken_checkpoints import CHECKPOINTS
from broken_runs import RUNS

DOORS = [*CHECKPOINTS, *RUNS]


def main() -> int:
    parser = argparse.ArgumentParser(description="Broken inputs at every door, sorted.")
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--door", default="", help="only doors whose name holds this")
    parser.add_argument("--only", type=int, default=-1, help="one mutant, by its number")
    options = parser.parse_args()
    doors = [door for door in DOORS if options.door in door.name]
    outcomes = list(campaign(doors, options.mutants, options.seed, options.only))
    print(table(outcomes))
    faults = [one for one in outcomes if one.kind in ("bare", "silent")]
    for one in faults if options.only < 0 else outcomes:
        print(f"\n{one.kind}, --only {one.number}: {one.door}\n    {one.what}\n    {one.result}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
