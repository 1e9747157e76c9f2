#!/usr/bin/env python3
"""Checks that no two sources of a folder define the same local name.

Sources of a folder are compiled together; how many at a time differs between presets. Two local functions of one name
and the same parameters, or two local types or constants of one name, are an error only where both files fall into one
group. This finds them for every grouping.

  scripts/check_names.py      writes each clash with FILE:LINE, and exits with 1 where there is one
"""

import collections
import pathlib
import re
import sys

# A return type or the type of a constant, as far as it stands before a name.
TYPED = r"[\w:<>,&* ]*?[\w>&*]"
FUNCTION = re.compile(rf"^(?=\w)(?:template <[^>]*> )?{TYPED} (\w+)\(([^;{{}}]*)\)(?: noexcept)? \{{", re.MULTILINE)
TYPE = re.compile(r"^(?:struct|class|enum class|enum) (\w+)[^;{]*\{", re.MULTILINE)
CONSTANT = re.compile(rf"^(?:inline |static )*(?:constexpr|const) {TYPED} (\w+)(?:\[\w*\])? ?[={{](?!=)", re.MULTILINE)
ALIAS = re.compile(r"^(?:using|namespace) (\w+) = ([^;]+);", re.MULTILINE)


def local_parts(text):
    """The texts of the anonymous namespaces of a source, each with the position where it begins."""
    for begin in re.finditer(r"^namespace \{$", text, re.MULTILINE):
        end = text.find("\n}  // namespace\n", begin.end())
        yield begin.end(), text[begin.end():end if end >= 0 else len(text)]


def parameter_types(parameters):
    """The types of a list of parameters: defaults and names are left out, since they do not tell functions apart."""
    depth, types, current = 0, [], ""
    for letter in parameters + ",":
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            types.append(re.sub(r"(?<=[\w>&*\]]) ?\b\w+$", "", re.sub(r"\s+", " ", current.split("=")[0]).strip()))
            current = ""
        else:
            current += letter
    return tuple(types)


def enclosing_namespace(text, position):
    """The namespace around an anonymous one, by the last `namespace NAME {` before it."""
    names = re.findall(r"^namespace ([\w:]+) \{$", text[:position], re.MULTILINE)
    return names[-1] if names else ""


def local_names(source, shown):
    text = source.read_text()
    for position, part in local_parts(text):
        around = enclosing_namespace(text, position)
        for kind, pattern in (("type", TYPE), ("function", FUNCTION), ("constant", CONSTANT)):
            for match in pattern.finditer(part):
                parameters = parameter_types(match[2]) if kind == "function" else ()
                line = text.count("\n", 0, position + match.start()) + 1
                yield (around, kind, match[1], parameters), "", f"{shown}:{line}"
        # One alias may stand in two sources as long as it means the same.
        for match in ALIAS.finditer(part):
            line = text.count("\n", 0, position + match.start()) + 1
            yield (around, "alias", match[1], ()), match[2], f"{shown}:{line}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    clashes = 0
    folders = sorted({path.parent for top in ("app", "core", "tests") for path in (root / top).rglob("*.cpp")})
    for folder in folders:
        places = collections.defaultdict(dict)
        for source in sorted(folder.glob("*.cpp")):
            for key, meaning, place in local_names(source, source.relative_to(root)):
                places[key].setdefault(source, (meaning, place))
        for (_, kind, name, _), sources in places.items():
            meanings = {meaning for meaning, _ in sources.values()}
            if len(sources) > 1 and (kind != "alias" or len(meanings) > 1):
                (_, first), (_, second), *_ = sources.values()
                print(f"{second}: the {kind} '{name}' is also defined in {first}: both are compiled together")
                clashes += 1
    sys.exit(clashes > 0)


if __name__ == "__main__":
    main()
