# Builds with BuildKit and with Docker's legacy builder, so there are no `RUN --mount` and no
# `# syntax` line. Every image is an argument: a machine without a registry brings its own.
ARG BUILD_IMAGE=rust:1.95-slim-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim
# CI passes an image that holds nothing but the binary it has just tested and the certificates;
# BuildKit then skips the `build` stage, and the runtime stage that is tested is this one.
ARG BINARY=build

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
# Statements are checked against `.sqlx/`: a build needs no database.
ENV SQLX_OFFLINE=true CARGO_TERM_COLOR=never
# Dependencies first, with sources that are empty: this layer lasts until Cargo.lock changes.
# `rust-toolchain.toml` stays outside, it would make rustup fetch clippy and rustfmt.
COPY Cargo.toml Cargo.lock build.rs ./
RUN mkdir -p src tests/integration tests/model \
    && echo "fn main() {}" | tee src/main.rs tests/integration/main.rs > tests/model/main.rs \
    && touch src/lib.rs \
    && cargo build --release --locked --bin oncepay
COPY .sqlx ./.sqlx
COPY migrations ./migrations
COPY src ./src
# A checkout may be older than the empty sources, and cargo compares times: without the touch it
# would ship the empty program.
RUN touch src/main.rs src/lib.rs \
    && cargo build --release --locked --bin oncepay \
    && cp target/release/oncepay /oncepay

FROM ${BINARY} AS binary

FROM ${RUNTIME_IMAGE}
# The gateway and webhooks are reached by TLS. The certificates come with the binary, so that this
# stage installs nothing and needs no network.
COPY --from=binary /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=binary /oncepay /usr/local/bin/oncepay
# A number and not a name: Kubernetes' `runAsNonRoot` cannot check a name. A named volume takes over
# the owner of the folder it covers, hence the folder for SANDBOX_DIR.
RUN install -d -o 10001 -g 10001 /var/lib/oncepay
USER 10001:10001
WORKDIR /var/lib/oncepay

# Inside a container loopback is unreachable from outside; who may connect is decided by the ports
# that are published.
ENV HTTP_ADDR=0.0.0.0:8080 METRICS_ADDR=0.0.0.0:9090
EXPOSE 8080 9090

# Liveness, which does no I/O: Swarm kills what is unhealthy, and a database outage must not kill
# every instance. Compose asks for /readyz instead. Bash is the one HTTP client that is in the image.
ENV HEALTHCHECK_PATH=/livez
HEALTHCHECK --interval=5s --timeout=3s --start-period=10s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${HTTP_ADDR##*:} && printf 'GET %s HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' \"$HEALTHCHECK_PATH\" >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]

# The program is process 1 and drains on SIGTERM for SHUTDOWN_TIMEOUT (25 s). `docker stop` kills
# after 10 s, so stop with `-t 30`; what is cut off is finished by another instance after one lease.
ENTRYPOINT ["oncepay"]
CMD ["serve"]
