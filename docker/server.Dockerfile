# The server: docker build -f docker/server.Dockerfile -t revolute-server .   (README.md has the whole story)
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

# first stage: compiles the engine and installs everything into /opt/revolute, a virtual environment that moves as it is
FROM ${BASE_IMAGE} AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ make python3-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
# pip reads these; another index, or a certificate bundle for it, comes in from outside
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_CERT
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python3 -m venv /opt/build && /opt/build/bin/pip install --upgrade pip
WORKDIR /src
COPY . .
# auto builds every instruction set that the architecture has, and the best one is chosen when the server starts
ARG REVOLUTE_ISAS=auto
ARG BUILD_TYPE=Release
RUN export PATH="/opt/build/bin:$PATH" \
 && pip wheel --no-deps --wheel-dir /wheels ./client \
 && pip wheel --no-deps --wheel-dir /wheels -C cmake.build-type="${BUILD_TYPE}" \
      -C cmake.define.REVOLUTE_ISAS="${REVOLUTE_ISAS}" .
# further: dm-env-rpc, telemetry
ARG EXTRAS=redis
RUN python3 -m venv --without-pip /opt/revolute \
 && /opt/build/bin/pip --python /opt/revolute/bin/python install --only-binary :all: -c docker/constraints.txt \
      /wheels/revolute-*.whl "$(echo /wheels/revolute_server-*.whl)[${EXTRAS}]"

FROM ${BASE_IMAGE}
LABEL org.opencontainers.image.title="revolute-server" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf/*-old \
 && useradd --system --uid 10001 --user-group --create-home --home-dir /var/lib/revolute revolute
COPY --from=build /opt/revolute /opt/revolute
COPY docker/healthcheck.py /opt/revolute/bin/healthcheck.py
ENV PATH="/opt/revolute/bin:$PATH" PYTHONUNBUFFERED=1 REVOLUTE_STORE=sqlite:////var/lib/revolute/store.db
USER revolute
WORKDIR /var/lib/revolute
VOLUME /var/lib/revolute
EXPOSE 50051 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=2 CMD ["python", "/opt/revolute/bin/healthcheck.py"]
ENTRYPOINT ["revolute", "serve"]
