# filigree_embed(TARGET FILE NAME)
#
# Compiles a file into TARGET as the function `std::string_view filigree::NAME()`.
# Run as a script (cmake -P), writes the source file of that function.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${INPUT} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)"
    "\\1\n" bytes "${bytes}")
  file(WRITE ${OUTPUT} "// Written by cmake/Embed.cmake.
#include <string_view>
namespace {
constexpr unsigned char ${NAME}_bytes[] = {${bytes}};
}
namespace filigree {
std::string_view ${NAME}();
std::string_view ${NAME}() { return {reinterpret_cast<const char*>(${NAME}_bytes),
                                        sizeof ${NAME}_bytes}; }
}
")
  return()
endif()

set(filigree_embed_script ${CMAKE_CURRENT_LIST_FILE})
function(filigree_embed target file name)
  set(source ${PROJECT_BINARY_DIR}/generated/embedded_${name}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${PROJECT_SOURCE_DIR}/${file} -DOUTPUT=${source} -DNAME=${name}
      -P ${filigree_embed_script}
    DEPENDS ${PROJECT_SOURCE_DIR}/${file} ${filigree_embed_script} VERBATIM)
  target_sources(${target} PRIVATE ${source})
endfunction()
