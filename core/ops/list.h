// The one list of ops: parser, kernels and tests are made from it. A new op adds its include and its name here.
#pragma once

#include "core/ops/collective/collective.h"
#include "core/ops/loop/loop.h"

namespace pmaptrain::ops {

template <class... Ops>
struct OpList {};

using AllOps = OpList<                                                                        //
    Pvary, Psum, Pmax, Pmin, AllGather, PsumScatter, Ppermute, AxisIndex, Loop>;

}  // namespace pmaptrain::ops
