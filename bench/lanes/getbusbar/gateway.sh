#!/usr/bin/env bash
# Makes Sluice a target of GetBusbar/benchmarking: copy this folder there as gateways/sluice. The runner there sources
# this file, sets MOCK_PORT (its engine), CORES and GW_DIR, and calls the functions (see its gateways/README.md).
#
# The measured node has keys, plans, metering in three windows, and limits of requests and tokens a minute, none of
# which is reached: this is the benchmark's "governed" column. The node uses the embedded database, because the runner
# starts one container. With SLUICE_DATABASE_URL and SLUICE_REDIS_URL, it uses your Postgres and Redis, as a team would.
GW_KIND=docker
GW_DISPLAY="Sluice"
GW_LANG=TypeScript
GW_CLASS="Model inference service"
GW_REPO="${SLUICE_REPO:-}"
GW_PORT="${GW_PORT:-8080}"
GW_PATH=/v1/chat/completions
GW_MODEL=bench/chat
# The authorization is set by gw_launch, because a key cannot be chosen.
GW_AUTH=
# The image is built from the repository's Dockerfile: docker build -t sluice .
SLUICE_IMAGE="${SLUICE_IMAGE:-sluice}"
SLUICE_CONTAINER=sluice-bench

gw_version() { docker run --rm "$SLUICE_IMAGE" --version; }

gw_build() {
  docker image inspect "$SLUICE_IMAGE" >/dev/null 2>&1 || {
    echo "There is no image $SLUICE_IMAGE. Build it in Sluice's repository: docker build -t $SLUICE_IMAGE ." >&2
    return 1
  }
  cat >"$GW_DIR/sluice.gen.yaml" <<YAML
upstreams:
  openai: { url: "http://127.0.0.1:$MOCK_PORT/v1", protocol: openai-chat }
  anthropic: { url: "http://127.0.0.1:$MOCK_PORT/v1", protocol: anthropic-messages }
  responses: { url: "http://127.0.0.1:$MOCK_PORT/v1", protocol: openai-responses }
metering: { currency: USD }
models:
  - { id: bench/chat, $(_sluice_model openai) }
  - { id: bench/messages, $(_sluice_model anthropic) }
  - { id: bench/responses, $(_sluice_model responses) }
plans:
  pro:
    session: 1000000
    week: 1000000
    month: 1000000
    requests_per_minute: 1e9
    tokens_per_minute: 1e12
    concurrent_requests: 1e6
YAML
}

_sluice_model() {
  echo "created: 1, context_window: 128000, prices: { input: 0.001, output: 0.001 }, routes: [{ upstream: $1, model: gpt-4o-mini }]"
}

# Selects the model by the protocol that the engine speaks. Each of the three client protocols is translated to each of
# these.
gw_matrix_egress() {
  case "$1" in
    openai) GW_MODEL=bench/chat ;;
    openai-responses) GW_MODEL=bench/responses ;;
    anthropic) GW_MODEL=bench/messages ;;
    *) return 1 ;;
  esac
}
# Which translations work: a row for each client protocol, and a column for each engine protocol, in the order openai,
# openai-responses, anthropic, gemini, cohere, bedrock.
GW_MATRIX_CAP="
111000
111000
111000
000000
000000
000000
"
GW_MATRIX_CAP_NOTE="Sluice speaks OpenAI chat completions, OpenAI Responses and Anthropic Messages"
GW_MATRIX_EGRESS="openai openai-responses anthropic"

gw_launch() {
  gw_stop
  docker run -d --name "$SLUICE_CONTAINER" --network host --cpuset-cpus="$CORES" \
    -e PORT="$GW_PORT" \
    ${SLUICE_DATABASE_URL:+-e DATABASE_URL="$SLUICE_DATABASE_URL"} ${SLUICE_REDIS_URL:+-e REDIS_URL="$SLUICE_REDIS_URL"} \
    -v "$GW_DIR/sluice.gen.yaml:/etc/sluice/sluice.yaml:ro" \
    "$SLUICE_IMAGE" >"$GW_DIR/launch.log" 2>&1 || return 1
  local attempt
  for attempt in $(seq 1 150); do
    docker exec "$SLUICE_CONTAINER" /usr/local/bin/sluice healthcheck >/dev/null 2>&1 && break
    sleep 0.2
  done
  _sluice key create --org "$(_sluice_organization)" --name bench >"$GW_DIR/key.gen.json" || return 1
  GW_AUTH=$(sed -n 's/.*"key": *"\([^"]*\)".*/\1/p' "$GW_DIR/key.gen.json")
  [ -n "$GW_AUTH" ]
}

_sluice() { docker exec "$SLUICE_CONTAINER" /usr/local/bin/sluice "$@" --json; }

_sluice_organization() {
  _sluice org create bench --plan pro >/dev/null 2>&1
  echo bench
}

# The memory of the container's whole process tree, measured by a function of the runner, as for all gateways.
gw_rss() { container_rss_mib "$SLUICE_CONTAINER"; }
gw_hwm() { container_hwm_mib "$SLUICE_CONTAINER"; }

gw_diag() { docker logs --tail 25 "$SLUICE_CONTAINER" 2>&1; }

gw_stop() { docker rm -f "$SLUICE_CONTAINER" >/dev/null 2>&1 || true; }
