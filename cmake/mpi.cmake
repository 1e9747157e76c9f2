# Finds MPI: MPI_CXX_FOUND and MPI::MPI_CXX. Without it the program is built for one process.
#
# The wrapper of the compiler may be there without the header (Debian: openmpi-bin without libopenmpi-dev). It names
# folders that do not exist then, with which find_package(MPI) ends in an error, so the wrapper is tried first.
find_program(PMAPTRAIN_MPI_WRAPPER NAMES mpicxx mpic++ mpiCC HINTS "${MPI_HOME}" ENV MPI_HOME PATH_SUFFIXES bin)
mark_as_advanced(PMAPTRAIN_MPI_WRAPPER)
set(mpi_wrapper "${PMAPTRAIN_MPI_WRAPPER}")
if(MPI_CXX_COMPILER)
  set(mpi_wrapper "${MPI_CXX_COMPILER}")
endif()
set(mpi_status 0)
if(mpi_wrapper)
  file(WRITE "${CMAKE_BINARY_DIR}/CMakeFiles/has_mpi.cpp" "#include <mpi.h>\n")
  execute_process(COMMAND "${mpi_wrapper}" -E "${CMAKE_BINARY_DIR}/CMakeFiles/has_mpi.cpp"
                  RESULT_VARIABLE mpi_status OUTPUT_QUIET ERROR_QUIET)
endif()

if(mpi_status EQUAL 0)
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface alone
  find_package(MPI QUIET COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  message(STATUS "MPI: ${MPI_CXX_LIBRARIES}")
elseif(NOT mpi_status EQUAL 0)
  message(STATUS "MPI: none, because ${mpi_wrapper} finds no mpi.h (Debian: libopenmpi-dev)")
else()
  message(STATUS "MPI: none")
endif()
