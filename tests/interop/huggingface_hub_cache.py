# needs: huggingface_hub
"""Usage: huggingface_hub_cache.py PROGRAM FOLDER

The cache of the Hugging Face hub, filled by `filigree fetch` and by huggingface_hub from the same hub
on this machine: each reads what the other left, and what they leave is alike."""

import json
import os
import pathlib
import subprocess
import sys

program, work = sys.argv[1], pathlib.Path(sys.argv[2])
HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
for variable in ("HF_TOKEN", "HF_HOME", "HF_HUB_OFFLINE", "HUGGINGFACE_HUB_CACHE"):
    os.environ.pop(variable, None)
os.environ["HF_HOME"] = str(work / "home")
os.environ["HF_HUB_DISABLE_XET"] = "1"
os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

sys.path.insert(0, str(HERE))
from local_hub import COMMIT, LocalHub  # noqa: E402

hub = LocalHub({"org/tiny": GOLDEN / "gpt2-tiny", "org/sharded": GOLDEN / "gpt2-tiny-sharded",
                "gpt2": GOLDEN / "gpt2-tiny-f16"})
os.environ["HF_ENDPOINT"] = hub.endpoint

import huggingface_hub  # noqa: E402  (reads the environment when it is imported)
from huggingface_hub import HfApi, scan_cache_dir, snapshot_download, try_to_load_from_cache  # noqa: E402

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("  not so:", what)


def filigree(cache, *arguments, code=0):
    run = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "HF_HUB_CACHE": str(cache)})
    expect(run.returncode == code, "%s ends with %d, not %d: %s"
           % (" ".join(arguments), run.returncode, code, run.stderr))
    return run


def snapshot(cache, name):
    return cache / ("models--" + name.replace("/", "--")) / "snapshots" / COMMIT


def layout(cache, name):
    """What lies in a repository of the cache but for what is huggingface_hub's own."""
    folder = cache / ("models--" + name.replace("/", "--"))
    found = {}
    for path in sorted(folder.rglob("*")):
        key = path.relative_to(folder).as_posix()
        if path.is_dir() or key.startswith("trees/"):
            continue
        found[key] = "-> " + os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found


NAMES = ["org/tiny", "org/sharded", "gpt2"]
ours, theirs = work / "ours", work / "theirs"

# Ours, read by huggingface_hub.
for name in NAMES:
    fetched = json.loads(filigree(ours, "fetch", name, "--json", "--quiet").stdout)
    expect(fetched["commit"] == COMMIT, "the commit is that of the listing")
    folder = pathlib.Path(snapshot_download(name, cache_dir=ours, local_files_only=True))
    expect(folder == snapshot(ours, name), "snapshot_download finds the snapshot of " + name)
    for file in fetched["files"]:
        cached = try_to_load_from_cache(name, file["file"], cache_dir=ours)
        expect(isinstance(cached, str) and os.path.getsize(cached) == file["bytes"],
               "try_to_load_from_cache finds %s of %s" % (file["file"], name))
    verified = HfApi().verify_repo_checksums(name, cache_dir=ours)
    expect(not verified.mismatches, "the checksums of %s are the hub's" % name)
    expect(not verified.extra_paths, "%s has nothing that the hub has not" % name)
    expect(verified.checked_count == len(fetched["files"]), "all files of %s are checked" % name)

scan = scan_cache_dir(ours)
expect(not scan.warnings, "scan_cache_dir has no warning: %s" % scan.warnings)
expect({repo.repo_id for repo in scan.repos} == set(NAMES), "scan_cache_dir finds all models")
expect(all({"main"} == set(repo.refs) for repo in scan.repos), "scan_cache_dir knows the revision")

# Nothing is to be downloaded again of what is there.
NEEDED = ["config.json", "model.safetensors", "generation_config.json"]
before = len(hub.requests)
snapshot_download("org/tiny", cache_dir=ours, allow_patterns=NEEDED)
expect(not any(method == "GET" and "/resolve/" in path or "/store/" in path
               for method, path, _ in hub.requests[before:]),
       "huggingface_hub keeps what filigree fetched")

# Theirs, read by us, and the same as ours.
for name in NAMES:
    wanted = [path.name for path in snapshot(ours, name).iterdir()]
    snapshot_download(name, cache_dir=theirs, allow_patterns=wanted)
    expect(layout(ours, name) == layout(theirs, name), "both caches of %s are alike" % name)
    same = [filigree(cache, "info", name, "--json", "--quiet").stdout for cache in (ours, theirs)]
    expect(same[0].replace(str(ours), str(theirs)) == same[1], "info of %s is the same" % name)
    run = [json.loads(filigree(cache, "run", name, "--ids", "1,2,3", "--json", "--quiet").stdout)
           for cache in (ours, theirs)]
    expect(run[0] == run[1], "predictions of %s are the same" % name)
    again = json.loads(filigree(theirs, "fetch", name, "--json", "--quiet").stdout)
    expect(again["downloaded_bytes"] == 0, "filigree keeps what huggingface_hub fetched")
expect(not scan_cache_dir(theirs).warnings, "the cache of huggingface_hub stays whole")

# Other revisions, by both.
filigree(ours, "fetch", "org/tiny@v1", "--quiet")
snapshot_download("org/tiny", revision="v1", cache_dir=theirs, allow_patterns=NEEDED)
for cache in (ours, theirs):
    filigree(cache, "info", "org/tiny@v1")
    filigree(cache, "info", "org/tiny@" + COMMIT)
    filigree(cache, "info", "org/tiny@v2", code=1)
found = snapshot_download("org/tiny", revision="v1", cache_dir=ours, local_files_only=True,
                          allow_patterns=NEEDED)
expect(pathlib.Path(found) == snapshot(ours, "org/tiny"), "huggingface_hub finds the tag, too")

# Both at once, into one cache.
both = work / "both"
process = subprocess.Popen([program, "fetch", "org/sharded", "--quiet"], stdout=subprocess.DEVNULL,
                           env={**os.environ, "HF_HUB_CACHE": str(both)})
snapshot_download("org/sharded", cache_dir=both)
expect(process.wait(timeout=300) == 0, "fetch beside snapshot_download ends well")
filigree(both, "info", "org/sharded")
expect(not scan_cache_dir(both).warnings, "a cache that both wrote at once is whole")
expect(not list(both.rglob("*.incomplete")), "nothing incomplete stays")

hub.close()
print("huggingface_hub %s: %d models, %d requests, %d failures"
      % (huggingface_hub.__version__, len(NAMES), len(hub.requests), len(failures)))
sys.exit(1 if failures else 0)
