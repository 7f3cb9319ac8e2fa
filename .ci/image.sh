#!/bin/sh
# What the image holds: an environment in TARGET with the locked dependencies and sidejudge, and no installer.
#   .ci/image.sh TARGET [judge|embeddings]      from the root of the repository; needs Python 3.11+ with pip and venv
# The Dockerfile runs this; tests/image runs the same and starts what comes out on a read-only file system.
set -eu
target=$1
variant=${2:-}
python3 -m venv --without-pip "$target"
install() { python3 -m pip --disable-pip-version-check --quiet --python "$target/bin/python" install "$@"; }

# Wheels only: nothing is compiled. gRPC is an extra, and in every image: a Collector that balances by trace id speaks it.
awk '/^[^ ]/ { wanted = /^grpcio==/ } wanted' requirements-dev.lock >"$target/grpc.lock"
install --require-hashes --no-deps --only-binary :all: -r requirements.lock -r "$target/grpc.lock"
case $variant in
  '') install --no-deps . ;;
  judge | embeddings)
    # Versions as locked for development; what is not locked there (embeddings) is the newest that fits.
    sed -E 's/ *\\$//; /^ *(--hash|#)/d' requirements-dev.lock >"$target/constraints.txt"
    extras=judge,grpc
    if [ "$variant" = embeddings ]; then
      : "${TORCH_INDEX:?TORCH_INDEX must name an index with CPU wheels of PyTorch, or gigabytes of CUDA come along}"
      install --index-url "$TORCH_INDEX" torch
      extras=judge,grpc,embeddings
    fi
    install -c "$target/constraints.txt" ".[$extras]"
    rm "$target/constraints.txt"
    ;;
  *)
    echo "error: there is no variant $variant" >&2
    echo "remedy: judge, embeddings, or none" >&2
    exit 2
    ;;
esac
rm "$target/grpc.lock"
