# The CUDA side, with FILIGREE_CUDA=ON: the language, the toolkit and the definition that
# filigree/device.h reads. nvcc is taken from CUDACXX, the PATH or its usual place.
if(NOT FILIGREE_CUDA)
  return()
endif()

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc PATHS /usr/local/cuda/bin DOC "CUDA compiler")
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "FILIGREE_CUDA=ON needs nvcc, which is neither on the PATH nor in "
                        "/usr/local/cuda/bin. Install the CUDA toolkit or set CUDACXX to nvcc.")
  endif()
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU generations to compile for" FORCE)
endif()
enable_language(CUDA)

# CMake 3.25 does not know nvcc's flag for C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

filigree_find(CUDAToolkit "")
target_compile_definitions(filigree_headers INTERFACE FILIGREE_HAS_CUDA)
target_include_directories(filigree_options SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
# std::array in the arguments of kernels.
target_compile_options(filigree_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
# What src/runtime needs for the device, and src/ops for matrix products on it.
set(FILIGREE_GPU_RUNTIME CUDA::cudart_static)
set(FILIGREE_GPU_PRODUCTS CUDA::cublasLt)
list(APPEND FILIGREE_LINK_FLAGS -L${CUDAToolkit_LIBRARY_DIR} -lcublasLt -lcudart_static -lrt -ldl)
