"""How ONNX's nodes are told in ops of a program: products, convolutions, pooling, and a loss.

For onnx_translation.py: functions of (node, program, operands...) that return a node's result, or a list of them.
"""

import numpy as np

from onnx_translation import Untranslated, floating, node

# ---- products ----


@node("MatMul")
def matmul(n, p, a, b):
    rows = p.reshape(a, a.shape if len(a.shape) > 1 else (1, *a.shape))
    columns = p.reshape(b, b.shape if len(b.shape) > 1 else (*b.shape, 1))
    batch, sizes = np.broadcast_shapes(rows.shape[:-2], columns.shape[:-2]), (rows.shape[-2], columns.shape[-1])
    if batch:
        rows, columns = (p.broadcast(x, (*batch, *x.shape[-2:])) for x in (rows, columns))
    y = p.emit("batch_matmul" if batch else "matmul", [rows, columns], a.dtype, (*batch, *sizes))
    return p.reshape(y, (*batch, *sizes[len(a.shape) == 1:2 - (len(b.shape) == 1)]))


@node("Gemm")
def gemm(n, p, a, b, c=None):
    flags = {key: bool(n.attribute(short, 0)) for key, short in (("transpose_a", "transA"), ("transpose_b", "transB"))}
    shape = (a.shape[flags["transpose_a"]], b.shape[not flags["transpose_b"]])
    y = p.emit("matmul", [a, b], a.dtype, shape, **flags)
    y = p.number("mul", y, n.attribute("alpha", 1.0))
    if c is None:
        return y
    return p.elementwise("add", y, p.broadcast(p.number("mul", c, n.attribute("beta", 1.0)), shape))


class Windows:
    """A node's windows as programs have them: over height and width, or depth too, with pairs of padding; one dimension
    is a height of 1."""

    def __init__(self, n, sizes, kernel):
        rank = len(sizes)
        if rank > 3:
            raise Untranslated("windows in four dimensions")
        self.lead = max(0, 2 - rank)
        self.kernel, self.sizes = list(kernel), list(sizes)
        self.strides = list(n.attribute("strides", [1] * rank))
        self.dilations = list(n.attribute("dilations", [1] * rank))
        self.spans = [d * (k - 1) + 1 for d, k in zip(self.dilations, self.kernel, strict=True)]
        pads, mode = n.attribute("pads", [0] * 2 * rank), n.attribute("auto_pad", "NOTSET")
        self.pads = list(zip(pads[:rank], pads[rank:], strict=True))
        if mode.startswith("SAME"):
            self.pads = []
            for size, span, stride in zip(self.sizes, self.spans, self.strides, strict=True):
                total = max(0, (-(-size // stride) - 1) * stride + span - size)
                small, large = total // 2, total - total // 2
                self.pads.append((small, large) if mode == "SAME_UPPER" else (large, small))
        self.ends = [size + low for size, (low, _) in zip(self.sizes, self.pads, strict=True)]

    def outputs(self):
        return [(size + sum(pads) - span) // stride + 1 for size, pads, span, stride in
                zip(self.sizes, self.pads, self.spans, self.strides, strict=True)]

    def round_up(self):
        """Pads the end for a last window that is only begun; it begins within the image or the padding before it."""
        for i, (low, high) in enumerate(self.pads):
            count = -(-(self.sizes[i] + low + high - self.spans[i]) // self.strides[i]) + 1
            last = (count - 1) * self.strides[i]
            last -= self.strides[i] if last >= self.ends[i] else 0
            self.pads[i] = (low, max(0, last + self.spans[i] - self.sizes[i] - low))

    def placed(self, values, one):
        return [one] * self.lead + list(values)

    def attributes(self, **more):
        return more | {"strides": self.placed(self.strides, 1), "padding": self.placed(self.pads, (0, 0))}

    def of_convolution(self, n):
        """`groups` only where there are any, and `dilation` of two dimensions, as they are printed."""
        is_shown = len(self.dilations) > 2 or any(d != 1 for d in self.dilations)
        more = {"dilation": self.placed(self.dilations, 1)} if is_shown else {}
        return self.attributes() | more | ({"groups": n.attribute("group")} if n.attribute("group", 1) != 1 else {})

    def of_pooling(self):
        if len(self.kernel) > 2:
            raise Untranslated("pooling in three dimensions")
        if any(d != 1 for d in self.dilations):
            raise Untranslated("pooling windows with gaps (dilation)")
        return self.attributes(window=self.placed(self.kernel, 1))


def channels_last(p, x, windows):
    x = p.reshape(x, [*x.shape[:2], *windows.placed(x.shape[2:], 1)])
    return p.transpose(x, [0, *range(2, len(x.shape)), 1])


def channels_second(p, y, windows):
    y = p.transpose(y, [0, len(y.shape) - 1, *range(1, len(y.shape) - 1)])
    return p.reshape(y, [*y.shape[:2], *y.shape[2 + windows.lead:]])


def kernel_last(p, w, windows):
    w = p.reshape(w, [*w.shape[:2], *windows.placed(w.shape[2:], 1)])
    return p.transpose(w, [*range(2, len(w.shape)), 1, 0])


@node("Conv")
def conv(n, p, x, w, bias=None):
    windows = Windows(n, x.shape[2:], w.shape[2:])
    image = channels_last(p, x, windows)
    kernel = kernel_last(p, w, windows)
    shape = [x.shape[0], *windows.placed(windows.outputs(), 1), w.shape[0]]
    y = p.emit("conv", [image, kernel] + ([bias] if bias else []), x.dtype, shape, **windows.of_convolution(n))
    return channels_second(p, y, windows)


@node("ConvTranspose")
def conv_transpose(n, p, y, w, bias=None):
    rank = len(w.shape) - 2
    windows = Windows(n, y.shape[2:], w.shape[2:])
    extra = n.attribute("output_padding", [0] * rank)
    full = [stride * (size - 1) + span + more for stride, size, span, more in
            zip(windows.strides, y.shape[2:], windows.spans, extra, strict=True)]
    sizes, mode = n.attribute("output_shape"), n.attribute("auto_pad", "NOTSET")
    if mode.startswith("SAME") and not sizes:
        sizes = [size * stride for size, stride in zip(y.shape[2:], windows.strides, strict=True)]
    if sizes:
        totals = [max(0, whole - size) for whole, size in zip(full, sizes, strict=True)]
        windows.pads = [(t // 2, t - t // 2) if mode == "SAME_UPPER" else (t - t // 2, t // 2) for t in totals]
    sizes = sizes or [whole - sum(pads) for whole, pads in zip(full, windows.pads, strict=True)]
    kernel = kernel_last(p, w, windows)
    shape = [y.shape[0], *windows.placed(sizes, 1), w.shape[1] * n.attribute("group", 1)]
    x = p.emit("conv_input_grad", [kernel, channels_last(p, y, windows)], y.dtype, shape, **windows.of_convolution(n),
               input_shape=shape)
    if bias is not None:
        x = p.elementwise("add", x, p.broadcast(bias, shape))
    return channels_second(p, x, windows)


@node("MaxPool")
def max_pool(n, p, x):
    if len(n.proto.output) > 1:
        raise Untranslated("indices of maxima in windows")
    floating(x, "pooling")
    windows = Windows(n, x.shape[2:], n.attribute("kernel_shape"))
    if n.attribute("ceil_mode", 0):
        windows.round_up()
    image = channels_last(p, x, windows)
    shape = [x.shape[0], *windows.placed(windows.outputs(), 1), x.shape[1]]
    return channels_second(p, p.emit("max_pool", [image], x.dtype, shape, **windows.of_pooling()), windows)


@node("AveragePool")
def average_pool(n, p, x):
    windows = Windows(n, x.shape[2:], n.attribute("kernel_shape"))
    if n.attribute("count_include_pad", 0):
        # Only what the test asks for is counted, not what rounding up the size adds: so it is in the image.
        low, high = ([0, 0, *pads] for pads in zip(*windows.pads, strict=True))
        x = p.pad(x, low, high)
        windows.sizes, windows.pads = list(x.shape[2:]), [(0, 0)] * len(windows.pads)
    if n.attribute("ceil_mode", 0):
        windows.round_up()
    image = channels_last(p, x, windows)
    shape = [x.shape[0], *windows.placed(windows.outputs(), 1), x.shape[1]]
    attributes = windows.of_pooling() | {"count_include_pad": False}
    return channels_second(p, p.emit("avg_pool", [image], x.dtype, shape, **attributes), windows)


@node("NegativeLogLikelihoodLoss")
def negative_log_likelihood(n, p, x, target, weights=None):
    count, rank = x.shape[1], len(x.shape)
    labels = p.cast(target, "i64")
    if "ignore_index" in n.attributes:
        ignored = p.compare("eq", labels, p.constant(n.attribute("ignore_index"), "i64"))
        labels = p.select(ignored, p.constant(-1, "i64"), labels)  # of which nothing is hot
    hot = p.emit("one_hot", [labels], x.dtype, (*target.shape, count), depth=count, dtype=x.dtype)
    if weights is not None:
        hot = p.elementwise("mul", hot, weights)
    hot = p.transpose(hot, [0, rank - 1, *range(1, rank - 1)])
    losses = p.elementwise("neg", p.reduce("reduce_sum", p.elementwise("mul", x, hot), [1]))
    how = n.attribute("reduction", "mean")
    if how == "none":
        return losses
    total = p.reduce("reduce_sum", losses, range(rank - 1))
    return total if how == "sum" else p.elementwise("div", total, p.reduce("reduce_sum", hot, range(rank)))
