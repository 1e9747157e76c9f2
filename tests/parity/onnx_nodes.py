#!/usr/bin/env python3
"""Runs the node tests of ONNX as programs of `pmaptrain exec`, and says which pass and which cannot be told in its ops.

    python3 -m venv /tmp/onnx && /tmp/onnx/bin/pip install onnx==1.23.2 numpy==2.4.6 safetensors==0.8.0
    /tmp/onnx/bin/python tests/parity/onnx_nodes.py [--binary PMAPTRAIN] [--only OP] [--fixtures] [--table]

Each test is a graph of ONNX nodes with inputs and what they must give; many come a second time as the graph of simpler
nodes that their op is short for. onnx_translation.py turns a graph into a program. --fixtures also writes small
tests that pass, two for each ONNX op and two more of bfloat16, to onnx_nodes.pmt and onnx_nodes.safetensors, which onnx_nodes.cpp runs.
--table writes onnx_nodes.md: what passes, and what is not covered and why.
"""

import argparse
import collections
import importlib.metadata
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from ml_dtypes import bfloat16
from onnx import numpy_helper
from safetensors.numpy import save_file

from onnx_translation import Untranslated, translate

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # tests of overflow overflow while they are made
    from onnx.backend.test.case.node import collect_testcases

    TESTS = [test for test in collect_testcases() if test.model is not None]

PINS = {"onnx": "1.23.2", "numpy": "2.4.6", "safetensors": "0.8.0"}
HERE = pathlib.Path(__file__).resolve().parent

# ONNX allows 1e-3; what is computed here is closer, but for tests whose own numbers are rounded to fewer digits. In
# bfloat16 NumPy rounds each addition of a sum, which is added up in f32 here: two units in the last place.
RELATIVE, ABSOLUTE = 1e-5, 1e-6
BFLOAT16_RELATIVE = 2.0**-6

LARGEST_FIXTURE = 4000  # bytes of one test's arrays


def plain(value):
    """An array of the test, however it is given."""
    if hasattr(value, "data_type"):
        return numpy_helper.to_array(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    raise Untranslated("sequences, maps and optional values")


def run(binary, program, inputs, folder) -> dict:
    """The program's results by name. RuntimeError with its words where it is refused."""
    (folder / "program.pmt").write_text(program, encoding="utf-8")
    command = [binary, "exec", folder / "program.pmt", "--output", folder / "results.npz"]
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    with np.load(folder / "results.npz") as results:
        # NumPy has no bfloat16 of its own: its bytes come back as two of any kind.
        return {name: value.view(bfloat16) if value.dtype == np.dtype("V2") else value
                for name, value in results.items()}


def is_bfloat16(array) -> bool:
    return array.dtype == bfloat16


def widened(*arrays):
    return [array.astype(np.float32) if is_bfloat16(array) else array for array in arrays]


def mistakes(results, expected, relative=RELATIVE, absolute=ABSOLUTE) -> list:
    found = []
    for name, value in expected.items():
        ours = results[name]
        if ours.dtype != value.dtype or ours.shape != value.shape:
            found.append(f"{name} is {ours.dtype}{ours.shape}, expected {value.dtype}{value.shape}")
        elif not np.allclose(*widened(ours, value), rtol=max(relative, BFLOAT16_RELATIVE * is_bfloat16(value)),
                             atol=absolute, equal_nan=True):
            with np.errstate(all="ignore"):
                apart = np.nanmax(np.abs(ours.astype(np.float64) - value.astype(np.float64)))
            found.append(f"{name} differs by up to {apart:.3g}")
    return found


def kind_of(test) -> str:
    """The ONNX op that a test is about; of the graphs that ops are short for, the same with '(expanded)'."""
    nodes = [node.op_type for node in test.model.graph.node]
    return nodes[0] if len(nodes) == 1 else test.name.removeprefix("test_").partition("_")[0] + "... (expanded)"


def write_fixtures(passed):
    chosen = []
    for cases in passed.values():
        sizes = {case[0]: sum(a.nbytes for group in case[2:] for a in group.values()) for case in cases}
        cases.sort(key=lambda case: (sizes[case[0]], case[0]))
        small = [case for case in cases if sizes[case[0]] <= LARGEST_FIXTURE]
        narrow = [any(map(is_bfloat16, (case[2] | case[3]).values())) for case in small]
        for kind in (False, True):
            chosen += [case for case, is_narrow in zip(small, narrow, strict=True) if is_narrow is kind][:2]
    tensors, text = {}, f"# Made by onnx_nodes.py from the node tests of onnx {PINS['onnx']}.\n"
    for name, program, inputs, expected in sorted(chosen, key=lambda case: case[0]):
        text += f"# case {name}\n{program}"
        tensors |= {f"{name}/{key}": np.asarray(value, order="C") for key, value in (inputs | expected).items()}
    (HERE / "onnx_nodes.pmt").write_text(text, encoding="utf-8")
    save_file(tensors, HERE / "onnx_nodes.safetensors")
    print(f"{len(chosen)} cases written")


def counted(kinds) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))


def most_first(uncovered):
    return sorted(uncovered.items(), key=lambda item: (-item[1].total(), item[0]))


def write_table(passed, rounded, uncovered):
    """What passed and what was not covered, by reason, as a document."""
    missing, count = sum(kinds.total() for kinds in uncovered.values()), passed.total() + rounded.total()
    lines = [
        "# The node tests of ONNX",
        "",
        f"Of the {count + missing} node tests of onnx {PINS['onnx']}, {count} pass as programs of `pmaptrain exec`, "
        f"{missing} are not covered.",
        "`onnx_nodes.py --table` wrote this. *(expanded)* are the tests that a second time give an op as the graph of",
        "simpler nodes that it is short for. Where there is *no op*, none of ours is that one, and the script does not",
        "put it together from several.",
        "",
        "## Not covered, and why",
        "",
        "| tests | because of | in the tests of |",
        "|--:|---|---|",
        *(f"| {kinds.total()} | {reason} | {counted(kinds)} |" for reason, kinds in most_first(uncovered)),
        "",
        "## Passed",
        "",
        counted(passed) + ".",
        "",
        f"These give what ONNX has, but only within its own tolerance, {RELATIVE:g} being asked of the others: "
        f"{counted(rounded) or 'none'}.",
    ]
    (HERE / "onnx_nodes.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--binary", default="build/release/pmaptrain")
    parser.add_argument("--only", help="tests of one ONNX op")
    parser.add_argument("--fixtures", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    for package, version in PINS.items():
        if importlib.metadata.version(package) != version:
            sys.exit(f"{package} is {importlib.metadata.version(package)}; this is written for {version}")

    passed, failed, uncovered = collections.defaultdict(list), [], collections.defaultdict(collections.Counter)
    rounded = {}
    with tempfile.TemporaryDirectory() as temporary:
        for test in TESTS:
            kind = kind_of(test)
            if options.only not in (None, kind):
                continue
            try:
                inputs, expected = ([plain(value) for value in group] for group in test.data_sets[0])
                program, inputs, expected = translate(test.model, inputs, expected)
                results = run(options.binary, program, inputs, pathlib.Path(temporary))
                found = mistakes(results, expected)
                if found and not mistakes(results, expected, test.rtol, test.atol):
                    rounded[test.name] = kind
                    continue
            except Untranslated as reason:
                uncovered[str(reason)][kind] += 1
                continue
            except RuntimeError as refusal:
                found = [str(refusal)]
            if found:
                failed.append((test.name, "; ".join(found)))
            else:
                passed[kind].append((test.name, program, inputs, expected))

    counts = collections.Counter({kind: len(cases) for kind, cases in passed.items()})
    print("passed:", counted(counts))
    print("\nnot covered:")
    for reason, kinds in most_first(uncovered):
        print(f"{kinds.total():5}  {reason}: {counted(kinds)}")
    for name, why in failed:
        print(f"FAILED {name}: {why}")
    print(f"passed, but only as closely as ONNX asks: {', '.join(rounded) or 'none'}")
    missing = sum(kinds.total() for kinds in uncovered.values())
    print(f"\n{counts.total() + len(rounded)} passed, {len(failed)} failed, {missing} not covered")
    if options.fixtures and not failed and options.only is None:
        write_fixtures(passed)
    if options.table and not failed and options.only is None:
        write_table(counts, collections.Counter(rounded.values()), uncovered)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
