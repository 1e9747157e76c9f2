# core/base/version.h, generated into the build tree.

set(PMAPTRAIN_COMPILER "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
string(TOLOWER "${CMAKE_BUILD_TYPE}" PMAPTRAIN_BUILD_TYPE)
set(PMAPTRAIN_KERNEL_LIBRARY "reference kernels")
if(NOT PMAPTRAIN_REFERENCE_KERNELS)
  set(PMAPTRAIN_KERNEL_LIBRARY "oneDNN ${dnnl_VERSION}")
endif()
configure_file("${CMAKE_SOURCE_DIR}/cmake/version.h.in" "${CMAKE_BINARY_DIR}/generated/core/base/version.h" @ONLY)

add_library(pmaptrain_version INTERFACE)
target_include_directories(pmaptrain_version INTERFACE "${CMAKE_BINARY_DIR}/generated")
