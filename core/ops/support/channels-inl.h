// Vectorized loops over contiguous channels, for code that is compiled once for each instruction set. Include this
// after hwy/highway.h.
#if defined(PMAPTRAIN_CORE_OPS_SUPPORT_CHANNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PMAPTRAIN_CORE_OPS_SUPPORT_CHANNELS_INL_H
#undef PMAPTRAIN_CORE_OPS_SUPPORT_CHANNELS_INL_H
#else
#define PMAPTRAIN_CORE_OPS_SUPPORT_CHANNELS_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace pmaptrain::ops {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls f(tag of a vector, first channel) until all channels are processed.
template <class F>
HWY_INLINE void for_each_vector(std::int64_t channels, const F& f) {
  const hn::ScalableTag<float> wide;
  const hn::CappedTag<float, 8> narrow;
  const hn::CappedTag<float, 4> narrower;
  const hn::CappedTag<float, 1> one;
  std::int64_t c = 0;
  const auto take = [&](auto d) HWY_ATTR {
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (; c + lanes <= channels; c += lanes) f(d, c);
  };
  take(wide);
  take(narrow);
  take(narrower);
  take(one);
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#endif
