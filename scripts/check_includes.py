#!/usr/bin/env python3
"""Includes point down only: a file includes its own room and those below it. Prints every other include, and fails.

    scripts/check_includes.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:core|app)/[^"]+)"')

# From the bottom up: each line is a room, by the beginnings of the paths of its files; the longest that fits counts.
# ARCHITECTURE.md says what each is for. A new folder of core/ needs a line, or is part of the folder around it.
ROOMS = [
    ["core/base/"],
    ["core/mesh/"],
    ["core/graph/"],
    ["core/analysis/"],
    ["core/kernel/"],
    ["core/ops/"],
    ["core/passes/"],
    ["core/runtime/"],
    ["core/spec/durations.", "core/spec/optimizer.", "core/spec/spec."],
    ["core/spec/yaml/"],
    ["core/spec/types/"],
    ["core/spec/rows/"],
    ["core/spec/keys/", "core/spec/keys.", "core/spec/print."],
    ["core/spec/bind/", "core/spec/division."],
    ["core/spec/changes/", "core/spec/change.", "core/spec/compare."],
    ["core/spec/load."],
    ["core/data/"],
    ["core/model/"],
    ["core/train/"],
    ["app/"],
]

# Rooms of which the folder around them alone includes headers: others include those in that folder itself.
PRIVATE = ["core/spec/"]

LEVELS = {prefix: level for level, prefixes in enumerate(ROOMS) for prefix in prefixes}


def level_of(path: str) -> int | None:
    fitting = [prefix for prefix in LEVELS if path.startswith(prefix)]
    return LEVELS[max(fitting, key=len)] if fitting else None


def mistakes_of(path: str, text: str) -> list[str]:
    level = level_of(path)
    if level is None:
        return [f"{path}: error: this file is in no room of scripts/check_includes.py"]
    mistakes = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = INCLUDE.match(line)
        if match is None:
            continue
        included = match.group(1)
        its_level = level_of(included)
        if its_level is None:
            mistakes.append(f"{path}:{number}: error: {included} is in no room of scripts/check_includes.py")
        elif its_level > level:
            mistakes.append(f"{path}:{number}: error: {included} is of a room above this one")
        for folder in PRIVATE:
            inner = included.removeprefix(folder)
            if inner != included and "/" in inner and not path.startswith(folder):
                mistakes.append(f"{path}:{number}: error: {included} is for {folder} alone")
    return mistakes


def main() -> int:
    mistakes = []
    for folder in ("core", "app"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                mistakes += mistakes_of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
    print("\n".join(mistakes), end="\n" if mistakes else "")
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
