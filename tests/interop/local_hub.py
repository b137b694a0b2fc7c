"""A hub on this machine for comparisons: what huggingface_hub and `filigree fetch` ask of the real one,
for folders of files. Large files are named by SHA-256 and come from a second port, as from a store;
small ones by git's checksum."""

import hashlib
import http.server
import json
import pathlib
import threading
import urllib.parse

COMMIT = hashlib.sha1(b"the only commit").hexdigest()
LARGE = (".safetensors", ".gguf", ".bin")


def git_checksum(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class File:
    def __init__(self, path):
        self.content = path.read_bytes()
        self.large = path.suffix in LARGE
        self.git = git_checksum(self.content)
        self.sha256 = hashlib.sha256(self.content).hexdigest()
        self.etag = self.sha256 if self.large else self.git

    def entry(self, name, key):
        entry = {key: name, "size": len(self.content)}
        if self.large:
            entry["lfs"] = {"sha256": self.sha256, "oid": self.sha256, "size": len(self.content),
                            "pointerSize": 134}
        return entry


class LocalHub:
    """Repositories by name, {"org/name": folder}; `requests` are those of both ports."""

    def __init__(self, repositories):
        self.files = {
            name: {path.relative_to(folder).as_posix(): File(path)
                   for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}
            for name, folder in repositories.items()}
        self.requests = []
        self.store = self._start(self._from_store)
        self.hub = self._start(self._from_hub)
        self.endpoint = "http://127.0.0.1:%d" % self.hub.server_address[1]

    def close(self):
        for server in (self.hub, self.store):
            server.shutdown()
            server.server_close()

    def _start(self, answer):
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                hub.requests.append((self.command, self.path, dict(self.headers)))
                status, headers, body = answer(self.path, self.headers)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    @staticmethod
    def _content(file, headers):
        answer = {"ETag": '"%s"' % file.etag}
        wanted = headers.get("Range")
        if not wanted:
            return 200, answer, file.content
        first = int(wanted.removeprefix("bytes=").split("-")[0])
        size = len(file.content)
        if first >= size:
            return 416, {**answer, "Content-Range": "bytes */%d" % size}, b""
        return (206, {**answer, "Content-Range": "bytes %d-%d/%d" % (first, size - 1, size)},
                file.content[first:])

    def _from_store(self, path, headers):
        sha256 = path.split("?")[0].rsplit("/", 1)[1]
        for files in self.files.values():
            for file in files.values():
                if file.sha256 == sha256:
                    return self._content(file, headers)
        return 404, {}, b""

    def _from_hub(self, path, headers):
        parts = urllib.parse.urlsplit(path).path.split("/")
        for repository, files in self.files.items():
            name = repository.split("/")
            api = ["", "api", "models", *name]
            if parts[:len(api)] == api:
                return self._from_api(repository, files, parts[len(api):])
            resolve = ["", *name, "resolve"]
            if parts[:len(resolve)] == resolve:
                wanted = urllib.parse.unquote("/".join(parts[len(resolve) + 1:]))
                if wanted not in files:
                    return 404, {"X-Error-Code": "EntryNotFound"}, b""
                return self._resolve(files[wanted], headers)
        return 404, {"X-Error-Code": "RepoNotFound"}, b""

    def _from_api(self, repository, files, rest):
        what, revision = (rest + ["", ""])[:2] if rest else ("revision", "main")
        if urllib.parse.unquote(revision) not in ("main", "v1", COMMIT):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if what == "tree":
            body = [{"type": "file", "path": name, "oid": file.git, **file.entry(name, "path")}
                    for name, file in files.items()]
        else:
            body = {"id": repository, "modelId": repository, "sha": COMMIT, "private": False,
                    "siblings": [{"blobId": file.git, **file.entry(name, "rfilename")}
                                 for name, file in files.items()]}
        return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()

    def _resolve(self, file, headers):
        commit = {"X-Repo-Commit": COMMIT}
        if not file.large:
            status, answer, body = self._content(file, headers)
            return status, {**answer, **commit}, body
        return 302, {**commit, "ETag": '"x"', "X-Linked-Etag": '"%s"' % file.sha256,
                     "X-Linked-Size": str(len(file.content)),
                     "Location": "http://127.0.0.1:%d/store/%s?signed=1"
                                 % (self.store.server_address[1], file.sha256)}, b""
