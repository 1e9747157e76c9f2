#!/usr/bin/env python3
"""Runs the Python program of docs/sweeps.md: Optuna, which is told what `pmaptrain run --json` gives.

    scripts/check_recipes.py PROGRAM

Needs third_party/optuna (scripts/bootstrap --dev); says so where it is missing.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPTUNA = ROOT / "third_party" / "optuna"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if not OPTUNA.exists():
        print("skipped: scripts/bootstrap --dev fetches optuna into third_party/optuna")
        return 0
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    search = re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1)
    config = re.search(r"cat > mlp.yaml <<'END'\n(.*?)END\n", page, re.DOTALL).group(1)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "mlp.yaml").write_text(config, encoding="utf-8")
        (pathlib.Path(folder) / "search.py").write_text(search, encoding="utf-8")
        found = subprocess.run(
            [sys.executable, "search.py", program],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(OPTUNA)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    print(found.stdout)
    best = re.search(r"^best \{'learning_rate': [\d.]+\} ([\d.]+)$", found.stdout, re.MULTILINE)
    if found.returncode != 0 or best is None or not 0.3 < float(best.group(1)) <= 1:
        print("the program of docs/sweeps.md finds no model better than chance")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
