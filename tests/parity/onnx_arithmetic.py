"""How ONNX's nodes are told in ops of a program: arithmetic on elements, activations, reductions and order.

For onnx_translation.py: functions of (node, program, operands...) that return a node's result, or a list of them.
"""

import math

import numpy as np

from onnx_translation import SIGNED, Untranslated, dtype_named, floating, node

# ---- elementwise ----

SAME = {"Abs": "abs", "Sign": "sign", "Floor": "floor", "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Sin": "sin",
        "Cos": "cos", "Tanh": "tanh", "Erf": "erf", "Neg": "neg", "Relu": "relu", "Sub": "sub", "Div": "div"}
FOLDS = {"Add": "add", "Mul": "mul", "Sum": "add", "Max": "max", "Min": "min"}
COMPARISONS = {"Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt", "LessOrEqual": "le"}


@node(*SAME)
def same(n, p, *operands):
    return p.elementwise(SAME[n.proto.op_type], *operands)


@node(*FOLDS)
def fold(n, p, first, *rest):
    for x in rest:
        first = p.elementwise(FOLDS[n.proto.op_type], first, x)
    return first


@node(*COMPARISONS)
def compare(n, p, a, b):
    return p.compare(COMPARISONS[n.proto.op_type], a, b)


@node("Mean")
def mean(n, p, *operands):
    return p.number("div", fold_add(p, operands), len(operands))


def fold_add(p, operands):
    total = operands[0]
    for x in operands[1:]:
        total = p.elementwise("add", total, x)
    return total


@node("Identity")
def identity(n, p, x):
    return x


@node("Ceil")
def ceil(n, p, x):
    return p.elementwise("neg", p.elementwise("floor", p.elementwise("neg", x)))


@node("Reciprocal")
def reciprocal(n, p, x):
    return p.elementwise("div", p.constant(1, x.dtype), x)


@node("Pow")
def power(n, p, x, y):
    floating(x, "powers")
    return p.elementwise("pow", x, p.cast(y, x.dtype))


@node("Mod")
def mod(n, p, a, b):
    rest = p.elementwise("rem", a, b)
    if n.attribute("fmod", 0) or a.dtype not in SIGNED:
        return rest
    # The divisor's sign instead of the dividend's.
    zero = p.constant(0, a.dtype)
    b = p.broadcast(b, rest.shape)
    other_sign = p.compare("ne", p.compare("lt", rest, zero), p.compare("lt", b, zero))
    fixed = p.select(other_sign, p.elementwise("add", rest, b), rest)
    return p.select(p.compare("eq", rest, zero), rest, fixed)


@node("Clip")
def clip(n, p, x, low=None, high=None):
    if low is not None and high is not None:
        return p.emit("clamp", [low, x, high], x.dtype, x.shape)
    if low is not None:
        x = p.elementwise("max", x, low)
    return x if high is None else p.elementwise("min", x, high)


@node("And")
def logical_and(n, p, a, b):
    return p.select(a, b, p.constant(False, "bool"))


@node("Or")
def logical_or(n, p, a, b):
    return p.select(a, p.constant(True, "bool"), b)


@node("Xor")
def logical_xor(n, p, a, b):
    return p.compare("ne", a, b)


@node("Not")
def logical_not(n, p, x):
    return p.compare("eq", x, p.constant(False, "bool"))


@node("IsNaN")
def is_nan(n, p, x):
    return p.compare("ne", x, x)


@node("IsInf")
def is_inf(n, p, x):
    signs = [sign for sign, key in ((1, "detect_positive"), (-1, "detect_negative")) if n.attribute(key, 1)]
    found = p.constant(False, "bool", x.shape)
    for sign in signs:
        found = p.select(p.compare("eq", x, p.constant(sign * math.inf, x.dtype)), p.constant(True, "bool"), found)
    return found


@node("Where")
def where(n, p, which, a, b):
    return p.select(which, a, b)


@node("Cast")
def cast(n, p, x):
    return p.cast(x, dtype_named(n.attribute("to")))


@node("CastLike")
def cast_like(n, p, x, like):
    return p.cast(x, like.dtype)


# ---- activations: several ops each ----


@node("Sigmoid")
def sigmoid(n, p, x):
    one = p.constant(1, x.dtype)
    return p.elementwise("div", one, p.elementwise("add", p.elementwise("exp", p.elementwise("neg", x)), one))


@node("Softplus")
def softplus(n, p, x):
    return p.elementwise("log1p", p.elementwise("exp", x))


@node("Elu")
def elu(n, p, x):
    below = p.number("mul", p.elementwise("expm1", x), n.attribute("alpha", 1.0))
    return p.select(p.compare("gt", x, p.constant(0, x.dtype)), x, below)


@node("LeakyRelu")
def leaky_relu(n, p, x):
    below = p.number("mul", x, n.attribute("alpha", 0.01))
    return p.select(p.compare("gt", x, p.constant(0, x.dtype)), x, below)


@node("Gelu")
def gelu(n, p, x):
    if n.attribute("approximate", "none") == "tanh":
        cube = p.elementwise("mul", squared(p, x), x)
        inner = p.elementwise("add", x, p.number("mul", cube, 0.044715))
        curve = p.elementwise("tanh", p.number("mul", inner, math.sqrt(2 / math.pi)))
    else:
        curve = p.elementwise("erf", p.number("mul", x, math.sqrt(0.5)))
    return p.elementwise("mul", p.number("mul", x, 0.5), p.number("add", curve, 1))


@node("Softmax", "LogSoftmax")
def softmax(n, p, x):
    axis = n.axis(len(x.shape), -1)
    shifted = p.elementwise("sub", x, reduce_max(p, x, [axis], True))
    powers = p.elementwise("exp", shifted)
    total = p.reduce("reduce_sum", powers, [axis], True)
    if n.proto.op_type == "Softmax":
        return p.elementwise("div", powers, total)
    return p.elementwise("sub", shifted, p.elementwise("log", total))


# ---- reductions, order ----


def negated(p, x):
    """Where the smaller was, the larger is."""
    if x.dtype in SIGNED:
        return p.elementwise("neg", x)
    largest = {"u8": 2**8 - 1, "u32": 2**32 - 1}[x.dtype]
    return p.elementwise("sub", p.constant(largest, x.dtype), x)


def reduce_max(p, x, axes, keep):
    if x.dtype == "bool":
        return p.cast(reduce_max(p, p.cast(x, "u8"), axes, keep), "bool")
    if any(x.shape[axis] == 0 for axis in axes):
        raise Untranslated("the largest of nothing")
    return p.reduce("reduce_max", x, axes, keep)


def reduce_min(p, x, axes, keep):
    if x.dtype == "bool":
        return p.cast(reduce_min(p, p.cast(x, "u8"), axes, keep), "bool")
    return negated(p, reduce_max(p, negated(p, x), axes, keep))


def reduce_mean(p, x, axes, keep):
    return p.number("div", p.reduce("reduce_sum", x, axes, keep), math.prod(x.shape[i] for i in axes))


def reduce_sum_of(before=None, after=None):
    def function(p, x, axes, keep):
        x = before(p, x) if before else x
        total = p.reduce("reduce_sum", x, axes, keep)
        return p.elementwise(after, total) if after else total

    return function


def absolute(p, x):
    return p.elementwise("abs", x)


def squared(p, x):
    return p.elementwise("mul", x, x)


REDUCTIONS = {"ReduceMax": reduce_max, "ReduceMin": reduce_min, "ReduceMean": reduce_mean,
              "ReduceSum": reduce_sum_of(), "ReduceL1": reduce_sum_of(absolute),
              "ReduceL2": reduce_sum_of(squared, "sqrt"), "ReduceSumSquare": reduce_sum_of(squared),
              "ReduceLogSum": reduce_sum_of(None, "log"),
              "ReduceLogSumExp": reduce_sum_of(lambda p, x: p.elementwise("exp", x), "log")}


@node(*REDUCTIONS)
def reduction(n, p, x, *_):
    axes = n.attribute("axes") or n.number(1, [])
    if not axes and n.attribute("noop_with_empty_axes", 0):
        return x if n.proto.op_type == "ReduceSum" else REDUCTIONS[n.proto.op_type](p, x, [], False)
    axes = sorted(axis % len(x.shape) for axis in (axes or range(len(x.shape))))
    return REDUCTIONS[n.proto.op_type](p, x, axes, bool(n.attribute("keepdims", 1)))


@node("GlobalAveragePool")
def global_average_pool(n, p, x):
    return reduce_mean(p, x, list(range(2, len(x.shape))), True)


@node("GlobalMaxPool")
def global_max_pool(n, p, x):
    return reduce_max(p, x, list(range(2, len(x.shape))), True)


@node("ArgMax", "ArgMin")
def argmax(n, p, x):
    axis = n.axis(len(x.shape), 0)
    x = negated(p, x) if n.proto.op_type == "ArgMin" else x
    last = n.attribute("select_last_index", 0)
    x = p.reverse(x, axis) if last else x
    shape = [size for i, size in enumerate(x.shape) if i != axis]
    index = p.emit("argmax", [x], "i32", shape, dim=axis)
    if last:
        index = p.elementwise("sub", p.constant(x.shape[axis] - 1, "i32"), index)
    if n.attribute("keepdims", 1):
        index = p.reshape(index, [1 if i == axis else size for i, size in enumerate(x.shape)])
    return p.cast(index, "i64")


@node("CumSum")
def cumsum(n, p, x, *_):
    axis, reverse = int(n.number(1)) % len(x.shape), bool(n.attribute("reverse", 0))
    if n.attribute("exclusive", 0):
        # What comes before each one: all but the last, one later.
        size, none = x.shape[axis], [0] * len(x.shape)
        one = [int(i == axis) for i in range(len(x.shape))]
        x = p.part(x, axis, 1, size) if reverse else p.part(x, axis, 0, size - 1)
        x = p.pad(x, none if reverse else one, one if reverse else none)
    return p.emit("cumsum", [x], x.dtype, x.shape, dim=axis, reverse=reverse)


@node("TopK")
def top_k(n, p, x, *_):
    axis, k, rank = n.axis(len(x.shape), -1), int(np.ravel(n.number(1))[0]), len(x.shape)
    to_last = [i for i in range(rank) if i != axis] + [axis]
    back = np.argsort(to_last)
    largest = n.attribute("largest", 1)
    x = p.transpose(x if largest else negated(p, x), to_last)
    shape = (*x.shape[:-1], k)
    values, indices = p.equation("top_k", [x], [(x.dtype, shape), ("i32", shape)], k=k)
    values = values if largest else negated(p, values)
    return [p.transpose(values, back), p.transpose(p.cast(indices, "i64"), back)]
