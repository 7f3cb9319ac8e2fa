#!/bin/sh
# What the image holds: an environment in TARGET with the locked dependencies and sidejudge, and no installer.
#   .ci/image.sh TARGET [base|judge|full|embeddings]      from the root of the repository; needs Python 3.11 with pip and venv
# The Dockerfile runs this; tests/image runs the same and starts what comes out on a read-only file system.
set -eu
target=$1
variant=${2:-base}
lock=.ci/image/$variant.lock
if [ ! -f "$lock" ] || [ "$variant" = torch ]; then
  echo "error: there is no variant $variant" >&2
  echo "remedy: base, judge, full, or embeddings" >&2
  exit 2
fi
python3 -m venv --without-pip "$target"
# INSTALLER: what installs into TARGET instead of pip. Tests give uv, which takes a fifth of pip's time.
install() {
  if [ -n "${INSTALLER:-}" ]; then $INSTALLER --no-deps "$@"; return; fi
  python3 -m pip --disable-pip-version-check --quiet --python "$target/bin/python" install --no-deps "$@"
}

# Wheels only: nothing is compiled. Each is one that was locked.
install --require-hashes --only-binary :all: -r "$lock"
if [ "$variant" = embeddings ]; then
  # PyTorch for CPUs lies on no default index. TORCH_INDEX names one that has it; where pip's own settings find it, none is needed.
  install --require-hashes --only-binary :all: ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} -r .ci/image/torch.lock
fi
install .
