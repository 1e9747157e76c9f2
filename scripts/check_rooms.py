#!/usr/bin/env python3
"""Checks that every folder of core/ and app/ is in the map of ARCHITECTURE.md and includes only what is above it there,
that a file's namespace is pmaptrain itself, or is named as a folder that it is in, or as the file, and that no function
of a test is named as a folder's namespace: beside that folder's headers in a unity build, calls of it are ambiguous.

    scripts/check_rooms.py
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_FILES = 45
# main() is above every folder.
EXEMPT = {"app/main.cpp"}
# Folders that have the interface of what their rooms carry out: such a folder and its rooms include each other.
INTERFACES = ["core/runtime", "core/spec"]
# Each op is a folder of it.
ONE_FOLDER_EACH = "core/ops"
# Folders whose rooms are included by themselves alone.
PRIVATE = ["core/spec"]


def rooms_of(text):
    """The folders in the first column of the map, from the bottom up."""
    return [folder for folder in re.findall(r"^\| `((?:core|app)[^`]*)` \|", text, re.MULTILINE)]


def main():
    rooms = rooms_of((ROOT / "ARCHITECTURE.md").read_text())
    order = {room: index for index, room in enumerate(rooms)}
    sources = [p for top in ("core", "app") for p in (ROOT / top).rglob("*") if p.suffix in (".h", ".cpp", ".cuh", ".cu")]

    def room_of(path):
        """The folder of the map that a file is in: its own, or the nearest one around it."""
        for parent in path.parents:
            if str(parent) in order:
                return str(parent)
        return None

    problems, files, namespaces = [], {}, set()
    for source in sorted(sources):
        path = source.relative_to(ROOT)
        room = room_of(path)
        if room is None:
            problems.append(f"{path}: its folder is not in the map of ARCHITECTURE.md")
            continue
        if str(path.parent) != room and room != ONE_FOLDER_EACH:
            problems.append(f"{path}: its folder is not in the map of ARCHITECTURE.md")
        files[path.parent] = files.get(path.parent, 0) + 1
        names = set(re.findall(r"^namespace pmaptrain(?:::(\w+))?", source.read_text(), re.MULTILINE))
        namespaces |= names - {""}
        if names and not any(name in path.parts or path.stem.startswith(name) for name in names):
            problems.append(f"{path}: its namespace, {', '.join(sorted(names))}, is not its folder's")
        if str(path) in EXEMPT:
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            included = re.match(r'\s*#\s*include\s*"((?:core|app)/[^"]+)"', line)
            if not included:
                continue
            target = room_of(pathlib.PurePosixPath(included.group(1)))
            if target is None:
                continue
            for folder in PRIVATE:
                if target.startswith(folder + "/") and not room.startswith(folder):
                    problems.append(f"{path}:{number}: {target} is for {folder} alone")
            inside = any(room == folder and target.startswith(folder + "/") for folder in INTERFACES)
            if order[target] > order[room] and not inside:
                problems.append(f"{path}:{number}: {room} includes {included.group(1)}, and {target} is below it in the map")
    function = re.compile(rf"^[\w:][\w:<>,&* ]* ({'|'.join(sorted(namespaces))})\(", re.MULTILINE)
    for test in sorted(p for p in (ROOT / "tests").rglob("*") if p.suffix in (".h", ".cpp")):
        problems += [f"{test.relative_to(ROOT)}: {found}() is named as a namespace of core"
                     for found in function.findall(test.read_text())]
    problems += [f"{room}: in the map, but not there" for room in rooms if not (ROOT / room).is_dir()]
    problems += [f"{f}: {n} files, at most {MOST_FILES}: split it" for f, n in sorted(files.items()) if n > MOST_FILES]
    print("\n".join(problems) or f"{len(sources)} files in {len(rooms)} folders include only what is above them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
