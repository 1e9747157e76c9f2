#!/usr/bin/env python3
"""Every test case of tests/<folder>/ carries the tag [<folder>], by which ctest chooses cases, and scripts/test names each
folder in one part of what it tests with AddressSanitizer.
"""

import pathlib
import re
import sys

CASE = re.compile(r'\b(?:TEMPLATE_|DEVICE_)?TEST_CASE(?:_METHOD)?\s*\(((?:[^"()]|"(?:[^"\\]|\\.)*")*)')
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def main() -> int:
    tests = pathlib.Path(__file__).resolve().parent.parent / "tests"
    wrong = 0
    script = (tests.parent / "scripts/test").read_text(encoding="utf-8")
    parts = re.findall(r'^  "\(([\w|]+)\)"$', script, re.MULTILINE)
    named = [folder for part in parts for folder in part.split("|")]
    for folder in sorted({path.relative_to(tests).parts[0] for path in tests.glob("*/*.cpp")}):
        if named.count(folder) != 1:
            print(f"scripts/test: error: {named.count(folder)} parts of the sanitizers' work name the folder {folder}")
            wrong += 1
    for path in sorted(tests.rglob("*.cpp")):
        folder = path.relative_to(tests).parts[0]
        if folder == path.name:
            continue
        text = path.read_text(encoding="utf-8")
        for case in CASE.finditer(text):
            strings = "".join(STRING.findall(case.group(1)))
            if f"[{folder}]" not in strings:
                line = text.count("\n", 0, case.start()) + 1
                print(f"{path.relative_to(tests.parent)}:{line}: error: a test case lacks its folder's tag [{folder}]")
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
