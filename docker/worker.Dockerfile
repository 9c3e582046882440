# A worker: the light client and a script that asks a server for gradients.  No compiler, no engine, no MuJoCo.
#   docker build -f docker/worker.Dockerfile -t revolute-worker .
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BASE_IMAGE} AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/*
# pip reads these; another index, or a certificate bundle for it, comes in from outside
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_CERT
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python3 -m venv /opt/build && /opt/build/bin/pip install --upgrade pip
COPY client /src/client
COPY docker/constraints.txt /src/
RUN /opt/build/bin/pip wheel --no-deps --wheel-dir /wheels /src/client \
 && python3 -m venv --without-pip /opt/revolute \
 && /opt/build/bin/pip --python /opt/revolute/bin/python install --only-binary :all: -c /src/constraints.txt \
      /wheels/*.whl

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="revolute-worker" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf/*-old \
 && useradd --system --uid 10001 --user-group --create-home --home-dir /var/lib/revolute revolute
COPY --from=build /opt/revolute /opt/revolute
COPY docker/worker.py /opt/revolute/bin/worker.py
ENV PATH="/opt/revolute/bin:$PATH" PYTHONUNBUFFERED=1
USER revolute
WORKDIR /var/lib/revolute
CMD ["python", "/opt/revolute/bin/worker.py"]
