"""What is compared, and how it is run."""

import contextlib
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class Contender:
    name: str
    command: list
    pick: object = None  # makes a result such as bench's of what pmaptrain_limits or a run prints
    runs: list = field(default_factory=list)
    failure: str = ""
    lasts: float = 0  # seconds that its steps are to take, where its command has an option --steps


@dataclass
class Work:
    name: str
    title: str
    contenders: list


def run(contender, timeout, sampler=None):
    """Runs a contender once; after a failure it is left out of later rounds. What `sampler` finds meanwhile is added."""
    if contender.failure:
        return
    command = [str(part) for part in contender.command]
    if contender.lasts:
        short = result_of(contender, command, timeout)
        if short is None:
            return
        command += ["--steps", str(max(200, int(contender.lasts / short["step_seconds"]["median"])))]
    with sampler or contextlib.nullcontext() as samples:
        document = result_of(contender, command, timeout)
    if document is not None:
        contender.runs.append(document | (samples.found() if samples else {}))


def result_of(contender, command, timeout):
    """What the command prints; None, and the contender's failure, where that is of no use."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT)
    except FileNotFoundError:
        contender.failure = f"there is no {command[0]}"
        return None
    except subprocess.TimeoutExpired:
        contender.failure = f"not done within {timeout} s"
        return None
    if done.returncode != 0:
        try:  # pmaptrain says in JSON what went wrong
            contender.failure = json.loads(done.stdout)["errors"][0]["message"]
            return None
        except (ValueError, LookupError, TypeError):
            pass
        lines = (done.stderr.strip() or done.stdout.strip() or "nothing said").splitlines()
        errors = [line for line in lines if "error" in line.lower()]
        contender.failure = f"exit status {done.returncode}: {(errors or lines)[-1].strip()}"
        return None
    # The document is the last thing printed; libraries may have said something before it.
    start = 0 if done.stdout.lstrip().startswith("{") else done.stdout.rfind("\n{") + 1
    try:
        document = json.loads(done.stdout[start:])
        if contender.pick:
            document = contender.pick(document)
        document["step_seconds"]["median"]
    except (ValueError, KeyError) as error:
        contender.failure = f"its output was not understood: {type(error).__name__} {error}"
        return None
    return document
