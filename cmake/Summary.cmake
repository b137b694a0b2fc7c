# Says at the end of the configure step what will be built and what was left out, on the screen and
# in summary.txt of the build folder (tools/build shows it from there).
set(summary "")

# summary_line(NAME TEXT): one aligned line.
function(summary_line name text)
  string(LENGTH "${name}" length)
  math(EXPR missing "13 - ${length}")
  string(REPEAT " " ${missing} padding)
  set(summary "${summary}  ${name}${padding}${text}\n" PARENT_SCOPE)
endfunction()

summary_line("build type" "${CMAKE_BUILD_TYPE}")
summary_line("compiler" "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
if(FILIGREE_CCACHE)
  summary_line("ccache" "${FILIGREE_CCACHE}")
endif()
if(FILIGREE_SANITIZE)
  summary_line("sanitizers" "${FILIGREE_SANITIZE}")
endif()
if(FILIGREE_CUDA)
  string(REPLACE ";" ", " architectures "${CMAKE_CUDA_ARCHITECTURES}")
  summary_line("CUDA" "${CMAKE_CUDA_COMPILER_VERSION}, for compute capability ${architectures}")
else()
  summary_line("CUDA" "left out (FILIGREE_CUDA=ON or the preset cuda puts it in)")
endif()
if(NOT FILIGREE_TESTS)
  summary_line("tests" "left out (FILIGREE_TESTS=ON puts them in)")
endif()

message(STATUS "Filigree ${PROJECT_VERSION}")
message("${summary}")
file(WRITE ${CMAKE_BINARY_DIR}/summary.txt "${summary}")
