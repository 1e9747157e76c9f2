// The list of all ops, from which parser, kernels and tests are generated. To add an op, add its include and its name.
#pragma once

#include "core/ops/argmax/argmax.h"
#include "core/ops/attention/attention.h"
#include "core/ops/avg_pool/avg_pool.h"
#include "core/ops/broadcast/broadcast.h"
#include "core/ops/bucket/bucket.h"
#include "core/ops/cast/cast.h"
#include "core/ops/collective/collective.h"
#include "core/ops/concatenate/concatenate.h"
#include "core/ops/constant/constant.h"
#include "core/ops/conv/conv.h"
#include "core/ops/cumsum/cumsum.h"
#include "core/ops/elementwise/binary.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/elementwise/unary.h"
#include "core/ops/first_occurrence/first_occurrence.h"
#include "core/ops/fused/fused.h"
#include "core/ops/fused_columns/fused_columns.h"
#include "core/ops/fused_rows/fused_rows.h"
#include "core/ops/gather/gather.h"
#include "core/ops/iota/iota.h"
#include "core/ops/loop/loop.h"
#include "core/ops/matmul/batch.h"
#include "core/ops/matmul/kernel_grad.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/max_pool/max_pool.h"
#include "core/ops/norms/norms.h"
#include "core/ops/one_hot/one_hot.h"
#include "core/ops/pad/pad.h"
#include "core/ops/random/random.h"
#include "core/ops/recurrent/recurrent.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/reshape/reshape.h"
#include "core/ops/reverse/reverse.h"
#include "core/ops/scatter/scatter.h"
#include "core/ops/scatter_add/scatter_add.h"
#include "core/ops/segment_sum/segment_sum.h"
#include "core/ops/slice/slice.h"
#include "core/ops/top_k/top_k.h"
#include "core/ops/transpose/transpose.h"

namespace pmaptrain::ops {

template <class... Ops>
struct OpList {};

using AllOps = OpList<                                                 //
    Constant, Iota, Cast,                                              //
    Add, Sub, Mul, Div, Rem, Pow, Max, Min, Clamp,                     //
    Neg, Abs, Sign, Floor, Exp, Expm1, Log, Log1p, Sqrt, Rsqrt,        //
    Sin, Cos, Tanh, Erf, Relu, StopGradient, OptimizationBarrier,      //
    Eq, Ne, Lt, Le, Gt, Ge, IsFinite, Select,                          //
    Reshape, Transpose, Broadcast, Slice, Pad, Concatenate, Reverse,   //
    Pack, Unpack,                                                      //
    ReduceSum, ReduceMax, SegmentSum, Norms, Argmax, Cumsum, TopK,     //
    Gather, Scatter, ScatterAdd, OneHot, FirstOccurrence,              //
    RandomUniform, RandomNormal, RandomBernoulli, RandomPermutation,   //
    Matmul, MatmulKernelGrad, BatchMatmul,                             //
    Conv, ConvInputGrad, ConvKernelGrad,                               //
    MaxPool, MaxPoolGrad, AvgPool, AvgPoolGrad,                        //
    Attention, AttentionGrad, Lstm, LstmGrad, Gru, GruGrad,            //
    Pvary, Psum, Pmax, Pmin, AllGather, AllGatherInvariant, AllSlice,  //
    AllToAll, PsumScatter, Ppermute, AxisIndex, Loop, Fused, FusedRows, FusedColumns>;

}  // namespace pmaptrain::ops
