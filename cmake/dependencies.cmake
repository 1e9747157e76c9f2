# Third-party libraries, all as (system) imported targets. scripts/bootstrap installs what is missing.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PNG REQUIRED)
find_package(JPEG REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Catch2 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
add_library(xxhash ALIAS PkgConfig::xxhash)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
add_library(hwloc ALIAS PkgConfig::hwloc)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8)
add_library(pcre2 ALIAS PkgConfig::pcre2)
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
add_library(utf8proc ALIAS PkgConfig::utf8proc)

# Inflates whole files in less than half of zlib's time; without it zlib does it all.
pkg_check_modules(libdeflate IMPORTED_TARGET libdeflate)
add_library(inflate_library INTERFACE)
if(libdeflate_FOUND)
  target_link_libraries(inflate_library INTERFACE PkgConfig::libdeflate)
  target_compile_definitions(inflate_library INTERFACE PMAPTRAIN_LIBDEFLATE)
endif()

find_path(RANDOM123_INCLUDE_DIR Random123/philox.h REQUIRED)
include_directories(SYSTEM "${RANDOM123_INCLUDE_DIR}")

find_package(yaml-cpp REQUIRED)
add_library(yaml_library INTERFACE)
if(TARGET yaml-cpp::yaml-cpp)
  target_link_libraries(yaml_library INTERFACE yaml-cpp::yaml-cpp)
else()
  target_link_libraries(yaml_library INTERFACE yaml-cpp)  # its name before version 0.8
endif()

# oneDNN from the system where it is new enough, else the one that scripts/bootstrap unpacked.
add_library(kernel_library INTERFACE)
if(NOT PMAPTRAIN_REFERENCE_KERNELS)
  find_package(dnnl 3 CONFIG QUIET)
  if(NOT dnnl_FOUND)
    find_package(dnnl 3 CONFIG QUIET PATHS "${CMAKE_SOURCE_DIR}/third_party/onednn" NO_DEFAULT_PATH)
  endif()
  if(NOT dnnl_FOUND)
    message(FATAL_ERROR "oneDNN 3 was found neither in the system nor in third_party/onednn; run scripts/bootstrap, "
                        "or configure with -DPMAPTRAIN_REFERENCE_KERNELS=ON to do without it (slow).")
  endif()
  message(STATUS "oneDNN ${dnnl_VERSION}: ${dnnl_DIR}")
  # Only the OpenMP library, to set its number of threads; we compile no OpenMP of our own.
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  # Vectors of whatever width the machine has.
  pkg_check_modules(highway REQUIRED IMPORTED_TARGET libhwy)
  target_link_libraries(kernel_library INTERFACE DNNL::dnnl ${OpenMP_CXX_LIBRARIES} PkgConfig::highway)
endif()
