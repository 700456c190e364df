# CUDA, where nvcc is found: kernels for Hopper (sm_90a), NCCL and cuBLAS. Everything else builds without it.
# Sanitizer builds leave it out, since their compiler is not the one that nvcc drives.
find_program(GATHERFUZZ_NVCC nvcc HINTS /usr/local/cuda/bin)
find_path(NCCL_INCLUDE nccl.h HINTS /usr/local/cuda/include)
find_library(NCCL_LIBRARY nccl HINTS /usr/local/cuda/lib64)
set(GATHERFUZZ_CUDA OFF)
if(GATHERFUZZ_NVCC AND NCCL_INCLUDE AND NCCL_LIBRARY AND NOT GATHERFUZZ_SANITIZE)
  set(GATHERFUZZ_CUDA ON)
endif()
if(GATHERFUZZ_GPU_ONLY AND NOT GATHERFUZZ_CUDA)
  message(FATAL_ERROR "GATHERFUZZ_GPU_ONLY needs nvcc (in PATH or in /usr/local/cuda/bin: ${GATHERFUZZ_NVCC}) and "
    "NCCL (nccl.h: ${NCCL_INCLUDE}, libnccl: ${NCCL_LIBRARY})")
endif()
message(STATUS "CUDA runtime: ${GATHERFUZZ_CUDA}")
if(GATHERFUZZ_CUDA)
  set(CMAKE_CUDA_COMPILER ${GATHERFUZZ_NVCC})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  set(CMAKE_CUDA_ARCHITECTURES 90a-real)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  endif()
  find_package(CUDAToolkit REQUIRED)
endif()

# Sources that call CUDA. An object library: kernels register themselves, so every object must be linked.
function(gatherfuzz_cuda_layer name)
  cmake_parse_arguments(LAYER "" "" "FOLDERS;DEPENDS" ${ARGN})
  set(sources)
  foreach(folder ${LAYER_FOLDERS})
    file(GLOB all CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp ${CMAKE_SOURCE_DIR}/${folder}/*.cu)
    list(APPEND sources ${all})
  endforeach()
  add_library(gatherfuzz_${name} OBJECT ${sources})
  target_include_directories(gatherfuzz_${name} SYSTEM PRIVATE ${NCCL_INCLUDE})
  # No contraction, as on the host, so that results compare bit for bit.
  target_compile_options(gatherfuzz_${name} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:--fmad=false;-Werror=all-warnings;-Xcompiler=-Wall,-Wextra,-ffp-contract=off>")
  target_link_libraries(gatherfuzz_${name} PUBLIC ${LAYER_DEPENDS} CUDA::cudart_static CUDA::cublas ${NCCL_LIBRARY})
endfunction()
