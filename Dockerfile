# Two stages: Bun compiles one executable; the final image has only that and a C library, no shell and no package manager.
# deploy/replay.ts runs these lines without a container engine.

# Tags can move. To build from exactly these images again, give their digests:
# docker build --build-arg BUN_IMAGE=oven/bun:1.4.5@sha256:… --build-arg BASE_IMAGE=gcr.io/distroless/base-debian12@sha256:… .
ARG BUN_IMAGE=oven/bun:1.4.5
ARG BASE_IMAGE=gcr.io/distroless/base-debian12:nonroot

FROM ${BUN_IMAGE} AS build
WORKDIR /src
COPY package.json bun.lock bunfig.toml ./
COPY scripts/already-bundled scripts/already-bundled
RUN bun install --frozen-lockfile
COPY . .
# The commit that `sluice --version` shows: docker build --build-arg COMMIT=$(git rev-parse --short=12 HEAD) .
ARG COMMIT=
RUN SLUICE_BUILD_COMMIT="$COMMIT" sh scripts/run scripts/build.ts
RUN mkdir -p dist/empty

FROM ${BASE_IMAGE}
ARG COMMIT=
LABEL org.opencontainers.image.title="sluice" \
  org.opencontainers.image.description="A model inference gateway that a team runs itself" \
  org.opencontainers.image.version="0.2.0" \
  org.opencontainers.image.revision="$COMMIT"
COPY --from=build /src/dist/sluice /usr/local/bin/sluice
COPY --from=build /src/dist/THIRD_PARTY_NOTICES /usr/share/doc/sluice/THIRD_PARTY_NOTICES
COPY --from=build /src/dist/sluice.cdx.json /usr/share/doc/sluice/sluice.cdx.json
# The embedded database is here, unless DATABASE_URL is set.
COPY --from=build --chown=65532:65532 /src/dist/empty /data
ENV HOST=0.0.0.0 PORT=8080 SLUICE_DATA_DIR=/data
# Mount your configuration as /etc/sluice/sluice.yaml.
WORKDIR /etc/sluice
VOLUME /data
# The API; the console's and the operator's port if SLUICE_CONSOLE_PORT and SLUICE_OPERATOR_PORT say so.
EXPOSE 8080 8081 9090
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s --start-interval=1s --retries=3 CMD ["/usr/local/bin/sluice", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/sluice"]
CMD ["serve"]
