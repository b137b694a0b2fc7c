# Every library comes from a Debian package (tools/packages.txt names them); nothing is vendored and
# nothing is downloaded.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(COMPRESSION REQUIRED IMPORTED_TARGET liblzma libzstd)
# Figures are left out where their libraries are missing.
pkg_check_modules(CAIRO IMPORTED_TARGET cairo cairo-pdf cairo-svg cairo-png pangocairo>=1.50 pangoft2
  fontconfig zlib)
if(FILIGREE_TESTS)
  find_package(GTest REQUIRED)
  pkg_check_modules(HTTPLIB IMPORTED_TARGET cpp-httplib)
endif()

# A compiler cache is used where there is one; nobody needs it.
find_program(FILIGREE_CCACHE ccache DOC "Compiler cache, used when found")
mark_as_advanced(FILIGREE_CCACHE)
if(FILIGREE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${FILIGREE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${FILIGREE_CCACHE})
endif()

# Warnings are errors, except under sanitizers: their instrumentation makes GCC report variables as
# uninitialised that are not.
if(FILIGREE_WERROR AND NOT FILIGREE_SANITIZE)
  set(warnings_are_errors -Werror)
endif()
# GCC 12 takes std::string's insert and replace for overlapping copies (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(false_warnings -Wno-restrict)
endif()

# What every target is compiled with.
add_library(filigree_options INTERFACE)
target_include_directories(filigree_options INTERFACE ${CMAKE_SOURCE_DIR}/include)
target_compile_options(filigree_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow>"
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings_are_errors};${false_warnings}>"
  # Fused multiply-add where the target has it, "omp simd" loops without the OpenMP run time, and
  # no errno or floating-point traps, which nothing here reads: loops vectorise better without.
  # None of these changes what NaN and infinities do.
  "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=fast;-fopenmp-simd;-fno-math-errno;-fno-trapping-math>")
if(FILIGREE_SANITIZE)
  target_compile_options(filigree_options INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FILIGREE_SANITIZE}>"
    "$<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all;-fno-omit-frame-pointer>")
  target_link_options(filigree_options INTERFACE -fsanitize=${FILIGREE_SANITIZE})
endif()
if(FILIGREE_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  target_compile_definitions(filigree_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()

include(Cuda)
include(Processes)
include(Version)
