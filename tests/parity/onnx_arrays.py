"""How ONNX's nodes are told in ops of a program: shapes and indices.

For onnx_translation.py: functions of (node, program, operands...) that return a node's result, or a list of them.
"""

import math

import numpy as np
from onnx import numpy_helper

from onnx_translation import Untranslated, dtype_named, known, node

# ---- shapes ----


@node("Reshape")
def reshape(n, p, x, shape):
    shape = n.number(1)
    if not n.attribute("allowzero", 0):
        shape = [x.shape[i] if size == 0 else size for i, size in enumerate(shape)]
    if -1 in shape:
        rest = -math.prod(shape)
        shape = [math.prod(x.shape) // rest if size == -1 else size for size in shape]
    return p.reshape(x, shape)


@node("Flatten")
def flatten(n, p, x):
    axis = n.attribute("axis", 1)
    return p.reshape(x, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])])


@node("Squeeze")
def squeeze(n, p, x, axes=None):
    axes = n.number(1, [i for i, size in enumerate(x.shape) if size == 1])
    return p.reshape(x, [size for i, size in enumerate(x.shape) if i not in axes and i - len(x.shape) not in axes])


@node("Unsqueeze")
def unsqueeze(n, p, x, axes):
    shape, rank = list(x.shape), len(x.shape) + np.size(n.number(1))
    for axis in sorted(axis % rank for axis in np.atleast_1d(n.number(1)).tolist()):
        shape.insert(axis, 1)
    return p.reshape(x, shape)


@node("Transpose")
def transpose(n, p, x):
    return p.transpose(x, n.attribute("perm", range(len(x.shape))[::-1]))


@node("Expand")
def expand(n, p, x, shape):
    return p.broadcast(x, np.broadcast_shapes(x.shape, n.number(1)))


@node("Tile")
def tile(n, p, x, repeats):
    shape, repeats = x.shape, n.number(1)
    pairs = [size for pair in zip(repeats, shape, strict=True) for size in pair]
    repeated = p.broadcast(p.reshape(x, [size for s in shape for size in (1, s)]), pairs)
    return p.reshape(repeated, [r * s for r, s in zip(repeats, shape, strict=True)])


@node("Concat")
def concat(n, p, *operands):
    return p.concatenate(operands, n.axis(len(operands[0].shape), 0))


@node("Split")
def split(n, p, x, sizes=None):
    axis = n.axis(len(x.shape), 0)
    parts = len(n.proto.output)
    even = -(-x.shape[axis] // parts)
    sizes = n.number(1, [min(even, x.shape[axis] - i * even) for i in range(parts)])
    ends = np.cumsum(sizes).tolist()
    return [p.part(x, axis, end - size, end) for size, end in zip(sizes, ends, strict=True)]


@node("Slice")
def slice_(n, p, x, *_):
    starts, ends = n.number(1), n.number(2)
    axes, steps = n.number(3, list(range(len(starts)))), n.number(4, [1] * len(starts))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        axis %= len(x.shape)
        taken = range(x.shape[axis])[slice(start, end, step)]
        if abs(step) != 1:
            raise Untranslated("slices with steps")
        if not taken:
            x = p.part(x, axis, 0, 0)
        else:
            x = p.part(x, axis, min(taken), max(taken) + 1)
        if step == -1:
            x = p.reverse(x, axis)
    return x


@node("Pad")
def pad(n, p, x, pads, fill=None, axes=None):
    if n.attribute("mode", "constant") != "constant":
        raise Untranslated("padding by other values of the array")
    axes = [axis % len(x.shape) for axis in n.number(3, list(range(len(x.shape))))]
    low, high, pads = [0] * len(x.shape), [0] * len(x.shape), n.number(1)
    for i, axis in enumerate(axes):
        low[axis], high[axis] = pads[i], pads[i + len(axes)]
    padded = p.pad(x, low, high)
    if fill is None:
        return padded
    return p.select(p.pad(p.constant(True, "bool", x.shape), low, high), padded, p.reshape(fill, []))


@node("DepthToSpace")
def depth_to_space(n, p, x):
    (batch, channels, height, width), block = x.shape, n.attribute("blocksize")
    few = channels // block**2
    if n.attribute("mode", "DCR") == "DCR":
        x, order = p.reshape(x, [batch, block, block, few, height, width]), [0, 3, 4, 1, 5, 2]
    else:
        x, order = p.reshape(x, [batch, few, block, block, height, width]), [0, 1, 4, 2, 5, 3]
    return p.reshape(p.transpose(x, order), [batch, few, height * block, width * block])


def iota(p, shape, axis):
    return p.emit("iota", [], "i64", shape, dtype="i64", shape=list(shape), dim=axis)


@node("EyeLike")
def eye_like(n, p, x):
    dtype = dtype_named(n.attribute("dtype")) if "dtype" in n.attributes else x.dtype
    rows = p.number("add", iota(p, x.shape, 0), n.attribute("k", 0))
    return p.cast(p.compare("eq", rows, iota(p, x.shape, 1)), dtype)


@node("Trilu")
def trilu(n, p, x, *_):
    rank = len(x.shape)
    rows = p.number("add", iota(p, x.shape, rank - 2), n.number(1, 0))
    inside = p.compare("le" if n.attribute("upper", 1) else "ge", rows, iota(p, x.shape, rank - 1))
    return p.select(inside, x, p.constant(0, x.dtype))


@node("Range")
def range_(n, p, start, limit, delta):
    count = max(0, math.ceil((n.number(1) - n.number(0)) / n.number(2)))
    steps = p.cast(iota(p, [count], 0), start.dtype)
    return p.elementwise("add", p.elementwise("mul", steps, delta), start)


# ---- indices ----


def wrapped(p, indices, size):
    """Indices that count from the end, as those from the start."""
    from_end = p.compare("lt", indices, p.constant(0, indices.dtype))
    return p.select(from_end, p.number("add", indices, size), indices)


@node("Gather")
def gather(n, p, x, indices):
    axis, rank = n.axis(len(x.shape), 0), len(x.shape)
    rows = p.transpose(x, [axis] + [i for i in range(rank) if i != axis])
    taken = p.emit("gather", [rows, wrapped(p, indices, x.shape[axis])], x.dtype, (*indices.shape, *rows.shape[1:]))
    ranked = len(indices.shape)
    order = list(range(ranked, ranked + axis)) + list(range(ranked)) + list(range(ranked + axis, ranked + rank - 1))
    return p.transpose(taken, order)


def flat_indices(p, indices, axis, shape):
    """Where each index along `axis`, at its own place along the others, is in the flattened array."""
    total = None
    for i in range(len(shape)):
        part = wrapped(p, p.cast(indices, "i64"), shape[i]) if i == axis else iota(p, indices.shape, i)
        part = p.number("mul", part, math.prod(shape[i + 1:]))
        total = part if total is None else p.elementwise("add", total, part)
    return total


@node("GatherElements")
def gather_elements(n, p, x, indices):
    where = flat_indices(p, indices, n.axis(len(x.shape), 0), x.shape)
    return p.emit("gather", [p.reshape(x, [math.prod(x.shape)]), where], x.dtype, indices.shape)


def rows_of(p, indices, shape):
    """Vectors of indices along the first dimensions, as one index into what these make together."""
    depth, total = indices.shape[-1], None
    for i in range(depth):
        part = p.part(indices, len(indices.shape) - 1, i, i + 1)
        part = p.number("mul", wrapped(p, p.reshape(part, indices.shape[:-1]), shape[i]), math.prod(shape[i + 1:depth]))
        total = part if total is None else p.elementwise("add", total, part)
    return total, [math.prod(shape[:depth]), *shape[depth:]]


@node("GatherND")
def gather_nd(n, p, x, indices):
    if n.attribute("batch_dims", 0):
        raise Untranslated("indices for each example of a batch")
    where, shape = rows_of(p, indices, x.shape)
    return p.emit("gather", [p.reshape(x, shape), where], x.dtype, (*indices.shape[:-1], *shape[1:]))


def scattered(n, p, x, where, updates, shape):
    """x with the updates added, or put, at the rows of `where`; x is taken in `shape`."""
    how = n.attribute("reduction", "none")
    if how not in ("none", "add"):
        raise Untranslated("scattering by a product, maximum or minimum")
    flat = p.reshape(x, shape)
    added = p.emit("scatter_add", [where, updates], x.dtype, shape, rows=shape[0])
    if how == "none":
        # No two updates meet: those tests have each index once.
        ones = p.constant(1, x.dtype, updates.shape)
        hits = p.emit("scatter_add", [where, ones], x.dtype, shape, rows=shape[0])
        flat = p.select(p.compare("eq", hits, p.constant(0, x.dtype)), flat, p.constant(0, x.dtype))
    return p.reshape(p.elementwise("add", flat, added), x.shape)


@node("ScatterElements")
def scatter_elements(n, p, x, indices, updates):
    where = flat_indices(p, indices, n.axis(len(x.shape), 0), x.shape)
    return scattered(n, p, x, where, updates, [math.prod(x.shape)])


@node("ScatterND")
def scatter_nd(n, p, x, indices, updates):
    where, shape = rows_of(p, indices, x.shape)
    return scattered(n, p, x, where, updates, shape)


@node("OneHot")
def one_hot(n, p, indices, depth, values):
    depth, rank = int(np.ravel(n.number(1))[0]), len(indices.shape)
    where = wrapped(p, p.cast(indices, "i64"), depth)
    hot = p.emit("one_hot", [where], "i32", (*indices.shape, depth), depth=depth, dtype="i32")
    axis = n.attribute("axis", -1) % (rank + 1)
    hot = p.transpose(hot, [*range(axis), rank, *range(axis, rank)])
    off, on = (p.reshape(p.part(values, 0, i, i + 1), []) for i in range(2))
    return p.select(p.compare("eq", hot, p.constant(1, "i32")), on, off)


@node("ConstantOfShape")
def constant_of_shape(n, p, shape):
    value = n.attribute("value")
    array = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    return p.constant(array[0], known(array).dtype, n.number(0))
