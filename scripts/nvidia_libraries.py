"""Where NVIDIA's libraries are that a machine has as Python's packages nvidia-*; as a program it prints versions."""

import ctypes
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path


def folders():
    code = "import nvidia; print(*nvidia.__path__, sep='\\n')"
    for python in ("python3", sys.executable):
        found = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if found.returncode == 0:
            return [str(folder) for path in found.stdout.split() for folder in sorted(Path(path).glob("*/lib"))]
    return []


def environment():
    """This process's environment, with LD_LIBRARY_PATH for a program that opens these libraries."""
    variables = dict(os.environ)
    paths = [*filter(None, [variables.get("LD_LIBRARY_PATH")]), *folders()]
    if paths:
        variables["LD_LIBRARY_PATH"] = ":".join(paths)
    return variables


def versions():
    yield f"Python {sys.version.split()[0]}"
    for library, function in (("libcudnn.so.9", "cudnnGetVersion"), ("libcublasLt.so.13", "cublasLtGetVersion")):
        try:
            yield f"{library} {getattr(ctypes.CDLL(library), function)()}"
        except OSError as error:
            yield f"{library}: {error}"
    names = {f"{found.name} {found.version}" for found in importlib.metadata.distributions() if found.name}
    yield from sorted(name for name in names if name.startswith(("torch ", "triton ", "jax", "nvidia-")))


if __name__ == "__main__":
    print("\n".join(versions()))
