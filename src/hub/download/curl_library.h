// libcurl, loaded when the first download begins: linked, it and the two dozen libraries behind it
// would cost every start of the program 4 ms. This is the only file that knows where it is.
#pragma once

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

namespace filigree::hub {

struct CurlLibrary {
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
};

// Throws Error where the library is not installed, and says which package has it.
const CurlLibrary& curl_library();

}  // namespace filigree::hub
