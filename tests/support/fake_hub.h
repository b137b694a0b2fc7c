// The part of the Hugging Face hub that downloads speak to, for tests: one repository, its listing,
// and its files, small ones from itself and large ones from a store on another port, as the hub
// redirects to one. Tests change what it answers through `amend`.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "hub/content_hash.h"
#include "support/http_server.h"

namespace filigree {

inline std::string content_hash_of(hub::ContentHash::Kind kind, const std::string& content) {
  hub::ContentHash hash(kind, content.size());
  hash.add(content);
  return hash.finish();
}

class FakeHub {
 public:
  struct File {
    std::string content;
    bool large = false;  // named by SHA-256 and kept in the store
  };
  // May change the reply to a request of the hub or of the store; `file` is the name, or "" of the
  // listing.
  using Amend = std::function<void(const SeenRequest&, const std::string& file, ServerReply&)>;

  static constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

  explicit FakeHub(std::string repository)
      : repository_(std::move(repository)),
        store_([this](const SeenRequest& request) { return from_store(request); }),
        hub_([this](const SeenRequest& request) { return from_hub(request); }) {}

  void set_file(const std::string& name, std::string content, bool large = false) {
    const std::lock_guard lock(mutex_);
    files_[name] = {std::move(content), large};
  }
  void set_amend(Amend amend) {
    const std::lock_guard lock(mutex_);
    amend_ = std::move(amend);
  }

  std::string endpoint() const { return hub_.address(); }
  HttpServer& hub() { return hub_; }
  HttpServer& store() { return store_; }

  std::string etag_of(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return etag(files_.at(name));
  }
  std::string content_of(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return files_.at(name).content;
  }

 private:
  static std::string etag(const File& file) {
    return content_hash_of(
        file.large ? hub::ContentHash::Kind::kSha256 : hub::ContentHash::Kind::kGit, file.content);
  }

  std::string listing() const {
    std::string files;
    for (const auto& [name, file] : files_) {
      files += (files.empty() ? "" : ",") + std::string(R"({"rfilename":")") + name +
               R"(","size":)" + std::to_string(file.content.size());
      if (file.large) files += R"(,"lfs":{"sha256":")" + etag(file) + "\"}";
      files += "}";
    }
    return std::string(R"({"id":")") + repository_ + R"(","sha":")" + kCommit +
           R"(","siblings":[)" + files + "]}";
  }

  static ServerReply content(const SeenRequest& request, const File& file) {
    ServerReply reply;
    reply.headers.push_back("ETag: \"" + etag(file) + "\"");
    const std::string range = request.header("range");
    if (range.empty()) {
      reply.body = file.content;
      return reply;
    }
    const std::size_t from = std::stoul(range.substr(std::string("bytes=").size()));
    const std::string total = std::to_string(file.content.size());
    if (from >= file.content.size()) {
      reply.status = 416;
      reply.headers.push_back("Content-Range: bytes */" + total);
      return reply;
    }
    reply.status = 206;
    reply.body = file.content.substr(from);
    reply.headers.push_back("Content-Range: bytes " + std::to_string(from) + "-" +
                            std::to_string(file.content.size() - 1) + "/" + total);
    return reply;
  }

  ServerReply from_hub(const SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    ServerReply reply;
    reply.status = 404;
    std::string name;
    const std::string listing_path = "/api/models/" + repository_ + "/revision/";
    const std::string file_path = "/" + repository_ + "/resolve/" + kCommit + "/";
    if (request.path.starts_with(listing_path)) {
      reply.status = 200;
      reply.body = listing();
    } else if (request.path.starts_with(file_path)) {
      name = request.path.substr(file_path.size());
      if (const auto found = files_.find(name); found != files_.end()) {
        const File& file = found->second;
        if (file.large) {
          reply.status = 302;
          reply.headers = {"Location: " + store_.address() + "/blob/" + name + "?signed=yes",
                           "X-Linked-Etag: \"" + etag(file) + "\"",
                           "X-Linked-Size: " + std::to_string(file.content.size())};
        } else {
          reply = content(request, file);
        }
        reply.headers.push_back(std::string("X-Repo-Commit: ") + kCommit);
      }
    }
    if (amend_) amend_(request, name, reply);
    return reply;
  }

  ServerReply from_store(const SeenRequest& request) {
    const std::lock_guard lock(mutex_);
    ServerReply reply;
    reply.status = 404;
    const std::string name = request.path.substr(
        std::string("/blob/").size(), request.path.find('?') - std::string("/blob/").size());
    if (const auto found = files_.find(name); found != files_.end())
      reply = content(request, found->second);
    if (amend_) amend_(request, name, reply);
    return reply;
  }

  std::string repository_;
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  Amend amend_;
  HttpServer store_, hub_;
};

}  // namespace filigree
