#!/usr/bin/env python3
"""Compares what `pmaptrain schema` says with what pmaptrain accepts, by an independent validator of JSON Schema.

    scripts/check_schema.py PMAPTRAIN

The shipped configs and tests/schema/accepted.yaml are accepted by both, tests/schema/refused.yaml is refused by both,
and tests/schema/beyond.yaml, what a schema cannot say, by pmaptrain alone. Needs Debian's python3-jsonschema and
python3-yaml.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "schema"
SHIPPED = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("bench/configs/*.yaml")])
REFUSED = 2  # the exit status of a config that is wrong; one whose data is missing is well-formed


class CoreLoader(yaml.SafeLoader):
    """YAML 1.2's core schema and merge keys, which editors and pmaptrain read; PyYAML's own is YAML 1.1."""

    yaml_implicit_resolvers = {}


TAG = "tag:yaml.org,2002:"
for name, pattern, first in [
    ("merge", r"<<", ["<"]),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.0123456789")),
]:
    CoreLoader.add_implicit_resolver(TAG + name, re.compile(f"^(?:{pattern})$"), first)


def core_int(loader, node):
    text = loader.construct_scalar(node)
    return int(text, 0 if text[:2] in ("0o", "0x") else 10)


CoreLoader.add_constructor(TAG + "int", core_int)


def load_core(text):
    return yaml.load(text, Loader=CoreLoader)


def sections(text):
    """The lines of each top-level key of a text that has only such keys."""
    parts = {}
    for line in text.splitlines(keepends=True):
        key = re.match(r"([\w-]+):", line)
        if key:
            parts[key[1]] = line
    return parts


def text_of(case, base):
    """The base with the case's own sections instead of its."""
    own = set(re.findall(r"^([\w-]+):", case["config"], re.MULTILINE)) | set(case.get("without", []))
    return "".join(lines for key, lines in base.items() if key not in own) + case["config"] + "\n"


class Checker:
    def __init__(self, program, folder):
        self.program = program
        self.folder = pathlib.Path(folder)
        schema = json.loads(subprocess.run([program, "schema"], check=True, capture_output=True).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        self.validator = jsonschema.Draft202012Validator(schema)
        self.wrong = self.checked = 0

    def check(self, title, text, path, schema_accepts, program_accepts):
        said = next(iter(self.validator.iter_errors(load_core(text))), None)
        run = subprocess.run([self.program, "validate", str(path), "--json"], capture_output=True, text=True, check=False)
        answer = json.loads(run.stdout)
        for who, accepts, expected, why in [
            ("the schema", said is None, schema_accepts, said.message if said else ""),
            ("pmaptrain", run.returncode != REFUSED, program_accepts, answer.get("errors", "")),
        ]:
            if accepts != expected:
                print(f"error: {title}: {who} {'accepts' if accepts else 'refuses'} it: {why}\n{text}", file=sys.stderr)
                self.wrong += 1
        self.checked += 1

    def check_cases(self, name, schema_accepts, program_accepts):
        base = sections((CASES / "base.yaml").read_text(encoding="utf-8"))
        for case in yaml.safe_load((CASES / name).read_text(encoding="utf-8")):
            path = self.folder / "config.yaml"
            text = text_of(case, base)
            path.write_text(text, encoding="utf-8")
            self.check(f"{name}: {case['case']}", text, path, schema_accepts, program_accepts)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(str(pathlib.Path(sys.argv[1]).resolve()), folder)
        for path in SHIPPED:
            checker.check(path.relative_to(ROOT), path.read_text(encoding="utf-8"), path, True, True)
        checker.check_cases("accepted.yaml", True, True)
        checker.check_cases("refused.yaml", False, False)
        checker.check_cases("beyond.yaml", True, False)
    print(f"check_schema: {checker.checked} configs, {checker.wrong} disagreements", file=sys.stderr)
    return 1 if checker.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
