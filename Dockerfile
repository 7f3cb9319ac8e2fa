# The monitor as an image.
#   docker build -t sidejudge .                                   base: everything but judges and embeddings in meaning
#   docker build -t sidejudge:judge --build-arg VARIANT=judge .   with litellm
#   docker build -t sidejudge:full --build-arg VARIANT=full .     with that, and what checks and CEL of rubrics of your own need
#   docker build -t sidejudge:embeddings --build-arg VARIANT=embeddings --build-arg TORCH_INDEX=… .   with those and PyTorch for CPUs,
#     from an index that has it (its makers' own, or your mirror); what comes from there is held to the hashes of .ci/image/torch.lock
#   docker run --read-only --tmpfs /tmp -v state:/var/lib/sidejudge -p 4318:4318 -p 8790:8790 sidejudge
# The base by its digest: --build-arg PYTHON=3.11-slim-bookworm@sha256:… (.ci/release looks it up once for all variants)
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
ARG VARIANT=base
ARG TORCH_INDEX=""
WORKDIR /src
COPY pyproject.toml README.md LICENSE CHANGELOG.md SECURITY.md SUPPORT.md ./
COPY .ci/image.sh .ci/image.sh
COPY .ci/image .ci/image
COPY scoring scoring
COPY integrations integrations
COPY dashboards dashboards
COPY sidejudge sidejudge
COPY monitor monitor
COPY docs docs
COPY helm/README.md helm/README.md
COPY helm/sidejudge/README.md helm/sidejudge/README.md
COPY helm/sidejudge-sidecar/README.md helm/sidejudge-sidecar/README.md
RUN PIP_NO_CACHE_DIR=1 TORCH_INDEX="${TORCH_INDEX}" .ci/image.sh /opt/sidejudge "${VARIANT}"

FROM python:${PYTHON}
# No installer is left in the image, nor one that another could be made of: what runs is what was locked.
RUN cd /usr/local && rm -rf lib/python3*/site-packages/pip lib/python3*/site-packages/pip-* lib/python3*/site-packages/setuptools* \
    lib/python3*/site-packages/wheel* lib/python3*/site-packages/_distutils_hack lib/python3*/site-packages/distutils-precedence.pth lib/python3*/ensurepip bin/pip* bin/wheel \
 && ! python3 -c 'import pip' 2>/dev/null \
 && mkdir -p /var/lib/sidejudge \
 && chown 65532:65532 /var/lib/sidejudge
COPY --from=build /opt/sidejudge /opt/sidejudge
# Nothing is downloaded by what runs: a model of embeddings is a folder that is mounted. /tmp would be full of it.
# HOME: the one folder besides the state that can be written where the root is read-only, whoever the user is.
ENV PATH=/opt/sidejudge/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    LITELLM_LOCAL_MODEL_COST_MAP=True \
    HF_HUB_OFFLINE=1
# The commit that the image is made from: docker build --build-arg REVISION="$(git rev-parse HEAD)"
ARG REVISION=""
ENV SIDEJUDGE_REVISION=$REVISION
ARG VERSION=""
ARG BASE_DIGEST=""
LABEL org.opencontainers.image.title="sidejudge" \
      org.opencontainers.image.description="Online monitoring of LLM applications: OTLP traces in, verdicts, scores and alerts out" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python" \
      org.opencontainers.image.base.digest="${BASE_DIGEST}"
# A number, so that Kubernetes can see that it is not root. Any other user will do.
USER 65532:65532
# The store's default path is relative to it.
WORKDIR /var/lib/sidejudge
EXPOSE 4318 8790
HEALTHCHECK --interval=20s --timeout=5s --start-period=10s --retries=3 \
  CMD ["python", "-P", "-c", "import ssl, urllib.request as r\ntry: r.urlopen('http://127.0.0.1:8790/livez', timeout=2)\nexcept Exception: r.urlopen('https://127.0.0.1:8790/livez', timeout=2, context=ssl._create_unverified_context())"]
# -P: the four packages have names that anybody may use; nothing in the working directory can take their place.
ENTRYPOINT ["python", "-P", "-m", "sidejudge"]
CMD ["serve"]
