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
    """The named namespaces that are open there."""
    around = []
    boundary = re.compile(r"^(?:namespace ([\w:]+) \{|(\}  // namespace [\w:]+))$", re.MULTILINE)
    for opened, closed in boundary.findall(text[:position]):
        if opened:
            around.append(opened)
        elif closed and around:
            around.pop()
    return "::".join(around)


def local_names(source):
    """Each local name of a source: (a namespace in which it is found, the name), what it is, the line.

    Outside of a named namespace, a name also meets those of the namespaces that the source uses.
    """
    text = source.read_text()
    used = re.findall(r"^using namespace ([\w:]+);$", text, re.MULTILINE)
    for position, part in local_parts(text):
        around = enclosing_namespace(text, position)
        for kind, pattern in (("type", TYPE), ("function", FUNCTION), ("constant", CONSTANT), ("alias", ALIAS)):
            for match in pattern.finditer(part):
                told_apart_by = None
                if kind == "function":
                    told_apart_by = parameter_types(match[2])
                elif kind == "alias":
                    told_apart_by = match[2]
                line = text.count("\n", 0, position + match.start()) + 1
                for namespace in [around] if around else ["", *used]:
                    yield (namespace, match[1]), (kind, told_apart_by), line


def may_meet(one, other):
    """Whether both meanings of a name may stand in one file: overloads, or an alias of the same type."""
    if one[0] == other[0] == "function":
        return one != other
    return one == other and one[0] == "alias"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    clashes = set()
    for folder in sorted({path.parent for top in ("app", "core", "tests") for path in (root / top).rglob("*.cpp")}):
        known = collections.defaultdict(list)
        for source in sorted(folder.glob("*.cpp")):
            names = list(local_names(source))
            for name, meaning, line in names:
                for before, place in known[name]:
                    if not may_meet(meaning, before):
                        clashes.add(f"{source.relative_to(root)}:{line}: '{name[1]}' is also defined in {place}, and "
                                    "sources of a folder are compiled together: give one of them another name")
                        break
            for name, meaning, line in names:
                known[name].append((meaning, f"{source.relative_to(root)}:{line}"))
    print("\n".join(sorted(clashes)), end="\n" if clashes else "")
    sys.exit(len(clashes) > 0)


if __name__ == "__main__":
    main()
