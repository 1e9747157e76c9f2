// The exponential and the hyperbolic tangent of a vector of f32, for code that is compiled once for each instruction
// set. Include this after hwy/highway.h.
#if defined(PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H
#undef PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H
#else
#define PMAPTRAIN_CORE_KERNEL_VECTOR_EXP_INL_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

// Highway's function, also for values beyond its range and for NaN.
struct SafeExp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V y = hn::Exp(d, hn::Max(hn::Min(x, hn::Set(d, 104.0F)), hn::Set(d, -104.0F)));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

struct SafeTanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    namespace hn = hwy::HWY_NAMESPACE;
    const V limit = hn::Set(d, 20.0F);
    const V y = hn::Tanh(d, hn::Max(hn::Min(x, limit), hn::Neg(limit)));
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#endif
