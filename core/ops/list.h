// The one list of ops: parser, kernels and tests are made from it. A new op adds its include and its name here.
#pragma once

#include "core/ops/collective/collective.h"
#include "core/ops/conv/conv.h"
#include "core/ops/loop/loop.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/max_pool/max_pool.h"

namespace pmaptrain::ops {

template <class... Ops>
struct OpList {};

using AllOps = OpList<                                                                        //
    Matmul, Conv, ConvInputGrad, ConvKernelGrad, MaxPool, MaxPoolGrad,                        //
    Pvary, Psum, Pmax, Pmin, AllGather, PsumScatter, Ppermute, AxisIndex, Loop>;

}  // namespace pmaptrain::ops
