"""ONNX graphs as program text: translate(). For onnx_nodes.py; docs/program.md describes the text.

What a node takes as data but a program as an attribute (axes, shapes, pads) is the value that the test gives it. Nodes
of which everything is known beforehand, such as those that compute with shapes, are computed by ONNX itself.
"""

import dataclasses
import importlib
import itertools
import math

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

DTYPES = {"bfloat16": "bf16", "float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8",
          "uint32": "u32", "bool": "bool"}
FLOATING, SIGNED = ("bf16", "f32", "f64"), ("bf16", "f32", "f64", "i32", "i64")


class Untranslated(Exception):
    """Why a test cannot be told in the program's ops."""


@dataclasses.dataclass
class Value:
    name: str | None  # none: known, and not yet in the program
    dtype: str
    shape: tuple
    known: np.ndarray | None = None  # by the graph itself
    given: np.ndarray | None = None  # by the test


def dtype_of(array) -> str:
    name = np.asarray(array).dtype.name
    if name not in DTYPES:
        raise Untranslated("element types that there are not" if name != "object" and not name.startswith("str")
                           else "text")
    return DTYPES[name]


def dtype_named(number):
    name = helper.tensor_dtype_to_np_dtype(number).name
    if name not in DTYPES:
        raise Untranslated("element types that there are not")
    return DTYPES[name]


def floating(x, what):
    if x.dtype not in FLOATING:
        raise Untranslated(f"{what} of integers")


def text_of(value) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(f"{v[0]}:{v[1]}" if isinstance(v, tuple) else str(v) for v in value) + "]"
    if isinstance(value, (float, np.floating)):
        if math.isnan(value):
            return ".nan"
        return repr(float(value)) if math.isfinite(value) else ".inf" if value > 0 else "-.inf"
    return str(value)


class Program:
    """Equations, with their types, and the arrays that they begin with."""

    def __init__(self):
        self.inputs, self.lines, self.arrays, self.used = {}, [], {}, set()
        self.names = (f"v{i}" for i in itertools.count())

    def input(self, name, array) -> Value:
        value = Value(name, dtype_of(array), np.shape(array), given=np.asarray(array))
        self.inputs[name] = f"batch %{name}:{self.type(value)}"
        self.arrays[name] = value.given
        return value

    @staticmethod
    def type(value) -> str:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]{{}}"

    def equation(self, op, operands, results, /, **attributes):
        """Appends an equation; `results` are (dtype, shape)."""
        names = [self.placed(operand).name for operand in operands]
        values = [Value(next(self.names), dtype, tuple(map(int, shape))) for dtype, shape in results]
        shown = ", ".join(f"{key}={text_of(value)}" for key, value in attributes.items())
        left = ", ".join(f"%{value.name}:{self.type(value)}" for value in values)
        self.lines.append(f"{left} = {op}{f'[{shown}]' if shown else ''} {', '.join('%' + n for n in names)}".strip())
        return values

    def emit(self, op, operands, dtype, shape, /, **attributes) -> Value:
        return self.equation(op, operands, [(dtype, shape)], **attributes)[0]

    def placed(self, value) -> Value:
        """The value as one of the program: what is known becomes a constant, or an input of its own."""
        if value.name is None:
            array = value.known
            if array.size and (array == array.flat[0]).all():
                value.name = self.constant(array.flat[0], value.dtype, value.shape).name
            else:
                value.name = self.input(f"known{len(self.inputs)}", array).name
        self.used.add(value.name)
        return value

    def text(self, results) -> str:
        """With the results returned as out0, out1, ...; inputs of which only the shape was needed are left out."""
        returns = [f"return out{i} = %{self.placed(value).name}" for i, value in enumerate(results)]
        self.inputs = {name: line for name, line in self.inputs.items() if name in self.used}
        self.arrays = {name: self.arrays[name] for name in self.inputs}
        return "\n".join([*self.inputs.values(), *self.lines, *returns]) + "\n"

    # ---- what the nodes below are made of ----
    def constant(self, number, dtype, shape=()) -> Value:
        number = float(number) if dtype in FLOATING else int(number)
        return self.emit("constant", [], dtype, shape, dtype=dtype, shape=list(shape), value=number)

    def cast(self, x, dtype) -> Value:
        return x if x.dtype == dtype else self.emit("cast", [x], dtype, x.shape, dtype=dtype)

    def reshape(self, x, shape) -> Value:
        shape = list(map(int, shape))
        return x if list(x.shape) == shape else self.emit("reshape", [x], x.dtype, shape, shape=shape)

    def transpose(self, x, order) -> Value:
        order = list(map(int, order))
        if order == sorted(order):
            return x
        return self.emit("transpose", [x], x.dtype, [x.shape[i] for i in order], permutation=order)

    def broadcast(self, x, shape) -> Value:
        """By NumPy's rule."""
        shape = tuple(map(int, shape))
        if tuple(x.shape) == shape:
            return x
        offset = len(shape) - len(x.shape)
        kept = [i for i, size in enumerate(x.shape) if size != 1 or shape[i + offset] == 1]
        x = self.reshape(x, [x.shape[i] for i in kept])
        return self.emit("broadcast", [x], x.dtype, shape, shape=list(shape), dims=[i + offset for i in kept])

    def elementwise(self, op, *operands, dtype=None) -> Value:
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        operands = [x if x.shape == () else self.broadcast(x, shape) for x in operands]
        return self.emit(op, operands, dtype or operands[-1].dtype, shape)

    def number(self, op, x, number) -> Value:
        return self.elementwise(op, x, self.constant(number, x.dtype), dtype=None)

    def slice(self, x, starts, limits) -> Value:
        shape = [limit - start for start, limit in zip(starts, limits, strict=True)]
        return self.emit("slice", [x], x.dtype, shape, starts=list(starts), limits=list(limits))

    def part(self, x, axis, start, limit) -> Value:
        return self.slice(x, [start if i == axis else 0 for i in range(len(x.shape))],
                          [limit if i == axis else size for i, size in enumerate(x.shape)])

    def pad(self, x, low, high) -> Value:
        shape = [sum(sizes) for sizes in zip(x.shape, low, high, strict=True)]
        return self.emit("pad", [x], x.dtype, shape, low=list(low), high=list(high))

    def concatenate(self, values, axis) -> Value:
        shape = list(values[0].shape)
        shape[axis] = sum(value.shape[axis] for value in values)
        return self.emit("concatenate", values, values[0].dtype, shape, dim=axis)

    def reverse(self, x, *axes) -> Value:
        return self.emit("reverse", [x], x.dtype, x.shape, dims=list(axes))

    def reduce(self, op, x, axes, keep=False) -> Value:
        kept = [size for i, size in enumerate(x.shape) if i not in axes]
        result = self.emit(op, [x], x.dtype, kept, dims=sorted(axes))
        return self.reshape(result, [1 if i in axes else size for i, size in enumerate(x.shape)]) if keep else result

    def compare(self, op, a, b) -> Value:
        return self.elementwise(op, a, b, dtype="bool")

    def select(self, which, a, b) -> Value:
        return self.elementwise("select", which, a, b)


class Node:
    """One node: its operands, its attributes with their defaults."""

    def __init__(self, program, proto, operands):
        self.program, self.proto, self.operands = program, proto, operands
        self.attributes = {a.name: helper.get_attribute_value(a) for a in proto.attribute}

    def attribute(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def operand(self, i):
        return self.operands[i] if i < len(self.operands) else None

    def number(self, i, default=None):
        """An operand that decides about shapes: its value, as the graph or the test gives it."""
        value = self.operand(i)
        if value is None:
            return default
        array = value.known if value.known is not None else value.given
        if array is None:
            raise Untranslated("shapes that depend on values")
        return array.tolist()

    def axis(self, rank, default) -> int:
        return self.attribute("axis", default) % max(rank, 1)


NODES = {}


def node(*names):
    def register(function):
        NODES.update(dict.fromkeys(names, function))
        return function

    return register


def known(array) -> Value:
    array = np.asarray(array)
    return Value(None, dtype_of(array), array.shape, known=array)


def folded(proto, operands, opset) -> list | None:
    """The results of a node of which everything is known: a shape, or computed from what is known."""
    if proto.op_type == "Shape":
        shape = operands[0].shape[slice(*(next((a.i for a in proto.attribute if a.name == key), None)
                                          for key in ("start", "end")))]
        return [known(np.array(shape, np.int64))]
    if proto.op_type == "Size":
        return [known(np.int64(math.prod(operands[0].shape)))]
    if any(value is not None and value.known is None for value in operands):
        return None
    if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in proto.attribute):
        return None
    graph = helper.make_graph([proto], "one", [helper.make_value_info(name, onnx.TypeProto()) for name in
                                               dict.fromkeys(filter(None, proto.input))],
                              [helper.make_value_info(name, onnx.TypeProto()) for name in proto.output if name])
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=opset))
    feed = {name: value.known for name, value in zip(proto.input, operands, strict=True) if name}
    return [known(result) for result in evaluator.run(None, feed)]


def translate(model, inputs, expected):
    """The text of a program for a model; its inputs by name; what each of its outputs must be, by name."""
    for table in ("onnx_arithmetic", "onnx_arrays", "onnx_windows"):  # which fill NODES
        importlib.import_module(table)

    graph, program = model.graph, Program()
    for array in (*inputs, *expected):
        dtype_of(array)
    names = [value.name for value in graph.input]
    values = {"": None} | {t.name: known(numpy_helper.to_array(t)) for t in graph.initializer}
    for i, (name, array) in enumerate(zip([n for n in names if n], inputs, strict=False)):
        values[name] = program.input(f"in{i}", array)
    for proto in graph.node:
        operands = [values[name] for name in proto.input]
        results = folded(proto, operands, model.opset_import)
        if results is None:
            if proto.domain not in ("", "ai.onnx") or proto.op_type not in NODES:
                raise Untranslated(f"no op for {proto.op_type}")
            results = NODES[proto.op_type](Node(program, proto, operands), program, *operands)
            results = results if isinstance(results, list) else [results]
        values |= dict(zip(proto.output, results, strict=False))
    outputs = [values[value.name] for value in graph.output]
    if all(value.known is not None for value in outputs):
        raise Untranslated("results that are known beforehand")
    text = program.text(outputs)
    return text, program.arrays, {f"out{i}": np.asarray(array) for i, array in enumerate(expected)}
