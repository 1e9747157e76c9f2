// A library libcuda.so.1 with the functions of CUDA's driver that cuDNN looks for when it plans attention. It takes
// code that is to be loaded, and has no device. So cuDNN plans attention for described GPUs where there is no driver.
#include <cstdint>

namespace {
constexpr int success = 0, no_device = 100;
std::intptr_t loaded = 0;  // what handles point to
}  // namespace

#define PMAPTRAIN_FAILS(name) \
  extern "C" int name() { return no_device; }
PMAPTRAIN_FAILS(cuInit)
PMAPTRAIN_FAILS(cuCtxGetCurrent)
PMAPTRAIN_FAILS(cuCtxGetDevice)
PMAPTRAIN_FAILS(cuCtxGetLimit)
PMAPTRAIN_FAILS(cuCtxPopCurrent)
PMAPTRAIN_FAILS(cuCtxPushCurrent)
PMAPTRAIN_FAILS(cuDeviceGet)
PMAPTRAIN_FAILS(cuDeviceGetCount)
PMAPTRAIN_FAILS(cuDriverGetVersion)
PMAPTRAIN_FAILS(cuGetErrorName)
PMAPTRAIN_FAILS(cuGetErrorString)
PMAPTRAIN_FAILS(cuKernelGetAttribute)
PMAPTRAIN_FAILS(cuLaunchCooperativeKernel)
PMAPTRAIN_FAILS(cuLaunchKernel)
PMAPTRAIN_FAILS(cuLaunchKernelEx)
PMAPTRAIN_FAILS(cuLibraryLoadFromFile)
PMAPTRAIN_FAILS(cuLinkAddData)
PMAPTRAIN_FAILS(cuLinkComplete)
PMAPTRAIN_FAILS(cuLinkCreate)
PMAPTRAIN_FAILS(cuLinkDestroy)
PMAPTRAIN_FAILS(cuOccupancyMaxPotentialClusterSize)
PMAPTRAIN_FAILS(cuStreamGetCtx)

extern "C" int cuLibraryLoadData(void** library) {
  *library = &loaded;
  return success;
}
extern "C" int cuLibraryGetKernel(void** kernel) {
  *kernel = &loaded;
  return success;
}
extern "C" int cuKernelSetAttribute() { return success; }
extern "C" int cuLibraryUnload() { return success; }
