# Language, warnings, optimisation and sanitizers: the same for every target of ours.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug, Sanitize or Coverage" FORCE)
endif()

# The same config gives the same bits, so nothing here may let the compiler reorder or contract arithmetic: no
# -ffast-math, no fused multiply-add that the source does not ask for. Not setting errno changes no result.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-Og -g -D_GLIBCXX_ASSERTIONS")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1 -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
# Hardly optimised: a line that is folded away is not counted. Counts of lines that several workers run are not exact.
set(CMAKE_CXX_FLAGS_COVERAGE "-O1")
set(PMAPTRAIN_COVERAGE_OPTIONS $<$<CONFIG:Coverage>:--coverage>)
add_link_options($<$<CONFIG:Coverage>:--coverage>)
add_compile_options(-fno-math-errno -ffp-contract=off)
# An assertion names its source by a path below the root, so that clones share the objects that contain one. ccache does
# not hash this option.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=>)
# Of folders in which nothing runs long: compiled in half the time.
set(PMAPTRAIN_COLD_OPTIONS $<$<CONFIG:Release>:-O1> $<$<CONFIG:Sanitize>:-O0>)
# Of what schedules kernels and contains few: with sanitizers it takes half the time to compile.
set(PMAPTRAIN_SCHEDULING_OPTIONS $<$<CONFIG:Sanitize>:-O0>)
# Of loops that are written with vector instructions: what -O3 adds is for other loops, but for one thing: inner loops of
# a few rounds are unrolled, without which arrays of vectors are not in registers and a product takes twice as long.
set(PMAPTRAIN_SIMD_OPTIONS $<$<CONFIG:Release>:-O2> $<$<CONFIG:Release>:-fpeel-loops>)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Werror)
  # GCC collects garbage as soon as its heap has grown by 128 MB: a sixth of the time that a source takes.
  add_compile_options(--param=ggc-min-heapsize=1000000)
else()
  # Clang, for the sanitizers and fuzzers: GCC's warnings are those that count.
  add_compile_options(-w)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-subobject-linkage)  # takes a source that is compiled with others for a header
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: false alarms on `"text" + std::string`
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()

if(PMAPTRAIN_SANITIZERS)
  add_compile_options(-fsanitize=${PMAPTRAIN_SANITIZERS} -fno-sanitize-recover=all)
  if(PMAPTRAIN_SANITIZERS MATCHES "address")
    # AddressSanitizer reports a use of a null pointer, too; a check before each use is a tenth of the compiler's time.
    add_compile_options(-fno-sanitize=null)
  endif()
  add_link_options(-fsanitize=${PMAPTRAIN_SANITIZERS})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumented code confuses GCC's flow analysis; the other presets keep the warning.
    add_compile_options(-Wno-maybe-uninitialized)
  else()
    # GCC tells the code by these which sanitizer there is.
    foreach(sanitizer IN ITEMS address thread)
      if(PMAPTRAIN_SANITIZERS MATCHES "${sanitizer}")
        string(TOUPPER "__SANITIZE_${sanitizer}__" known)
        add_compile_definitions(${known})
      endif()
    endforeach()
  endif()
endif()

# Our vector loops are compiled for each of SSE4, AVX2 and AVX-512, and without vectors for older processors.
# With sanitizers for two of these: each takes long to instrument.
if(PMAPTRAIN_SANITIZERS)
  add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL)")
else()
  add_compile_definitions("HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_AVX3_DL)")
endif()

if(PMAPTRAIN_REFERENCE_KERNELS)
  add_compile_definitions(PMAPTRAIN_REFERENCE_KERNELS=1)
endif()

include_directories("${CMAKE_SOURCE_DIR}")

# The old tag, by which the libraries of the program find what they need themselves in its folders, too: in those of
# this machine where it was built, and in lib/pmaptrain where it is installed (package.cmake).
add_link_options(-Wl,--disable-new-dtags)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Paths below the sources are hashed as relative ones, so clones share their objects wherever they are. The sloppiness
  # is what ccache asks for where headers are precompiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}" CCACHE_NOHASHDIR=true
                                  CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE_PROGRAM}")
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
