#!/bin/sh
# Two runs over two hosts: one trained here with its engines and its verifier spread over both, one of two trainers.
#
#     sudo benchmarks/two_hosts.sh [python]
#
# The hosts are network namespaces joined by a virtual cable. Each has addresses of its own and reaches the other by
# that cable alone; the second one also has a /dev/shm and a folder for Ray of its own, so nothing passes between them
# through memory or files but what is below this folder and the run's own. Printed are where engines and verifiers
# were found during the first run, the bytes that the cable carried, and losses and gradients' norms of both beside
# those of the same run in one process, which have to agree to 1e-4.
set -eu
export PATH="$PATH:/usr/sbin:/sbin"
PYTHON=$(command -v "${1:-python}")
[ "$(id -u)" = 0 ] || { echo "two_hosts.sh makes network namespaces and has to be run by root"; exit 77; }
command -v ip > /dev/null && command -v nsenter > /dev/null || { echo "two_hosts.sh needs ip (iproute2) and nsenter"; exit 77; }
A=assay-$$-a B=assay-$$-b NET=10.$((200 + $$ % 50)).$(($$ % 250))
WORK=$(mktemp -d)
HERE=$(cd "$(dirname "$0")/.." && pwd)
export PYTHONPATH="$HERE${PYTHONPATH:+:$PYTHONPATH}"
export RAY_USAGE_STATS_ENABLED=0 OMP_NUM_THREADS=1
# Newer versions of Ray let nobody join who does not know the cluster's token.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$(od -An -tx1 -N32 /dev/urandom | tr -d ' \n')

clean() {
    for HOST in $A $B; do
        for PID in $(ip netns pids $HOST 2> /dev/null); do kill -9 "$PID" 2> /dev/null || true; done
        ip netns del $HOST 2> /dev/null || true
    done
    rm -rf "$WORK"
}
trap clean EXIT
trap 'exit 130' INT TERM

ip netns add $A
ip netns add $B
ip -n $A link add cable type veth peer name cable netns $B
ip -n $A addr add $NET.1/24 dev cable
ip -n $B addr add $NET.2/24 dev cable
for HOST in $A $B; do
    ip -n $HOST link set lo up
    ip -n $HOST link set cable up
done

mkdir "$WORK/ray-a" "$WORK/ray-b"
RAY="$PYTHON -m ray.scripts.scripts start --disable-usage-stats --object-store-memory=100000000 --block"
ip netns exec $A sh -c "mkdir -p /tmp/ray && mount --bind $WORK/ray-a /tmp/ray && mount -t tmpfs none /dev/shm &&
    exec $RAY --head --node-ip-address=$NET.1 --port=6379 --num-cpus=1 --include-dashboard=false" > "$WORK/a.log" 2>&1 &
FIRST="nsenter --target $! --net --mount --wd=$HERE"  # what runs on the first host, and sees what its Ray sees
sleep 1
TRIES=0
until $FIRST "$PYTHON" -S -c "import socket; socket.create_connection(('$NET.1', 6379), 1)" 2> /dev/null; do
    TRIES=$((TRIES + 1))
    [ $TRIES -lt 120 ] || { cat "$WORK/a.log"; exit 1; }
    sleep 1
done
ip netns exec $B sh -c "mkdir -p /tmp/ray && mount --bind $WORK/ray-b /tmp/ray && mount -t tmpfs none /dev/shm &&
    exec $RAY --address=$NET.1:6379 --node-ip-address=$NET.2 --num-cpus=3" > "$WORK/b.log" 2>&1 &

cat > "$WORK/recipe.toml" << END
model = { source = "nano", nano = { hidden = 16, layers = 1, heads = 2, context = 24 }, device = "cpu" }
tasks = { source = { name = "arithmetic", operation = "addition", digits = 1 }, eval_size = 6 }
method = { reward = { name = "function", function = "$HERE/benchmarks/kills.py:varied" } }
rollout = { prompts = 4, group = 3, max_tokens = 4 }
train = { steps = 10, lr = 1e-3 }
run = { report = false, tensorboard = false }
END

echo "the same run in one process"
"$PYTHON" -m assay train "$WORK/recipe.toml" run.dir="$WORK/one" --quiet

TRIES=0
until $FIRST timeout 60 "$PYTHON" -c "
import logging, os, ray, sys
ray.init(address='$NET.1:6379', log_to_driver=False, logging_level=logging.CRITICAL)
sys.exit(sum(n['Alive'] for n in ray.nodes()) < 2)" 2> "$WORK/wait.log"; do
    TRIES=$((TRIES + 1))
    [ $TRIES -lt 10 ] || { cat "$WORK/wait.log" "$WORK/b.log"; exit 1; }
    sleep 1
done

echo "over two hosts, $NET.1 and $NET.2"
BEFORE=$($FIRST cat /sys/class/net/cable/statistics/tx_bytes)
$FIRST env RAY_ADDRESS=$NET.1:6379 "$PYTHON" -m assay train "$WORK/recipe.toml" run.dir="$WORK/two" \
    scale.nodes=2 scale.engines=2 scale.verifiers=1 &
RUN=$!
while kill -0 $RUN 2> /dev/null; do
    for HOST in $A $B; do
        for PID in $(ip netns pids $HOST 2> /dev/null); do
            tr '\0' ' ' < "/proc/$PID/cmdline" 2> /dev/null | grep -oE '^ray::(Engine|Verifier)Actor' \
                | sed "s/\$/ on $HOST as process $PID/" >> "$WORK/seen" || true
        done
    done
    sleep 1
done
wait $RUN
sort -u "$WORK/seen"
AFTER=$($FIRST cat /sys/class/net/cable/statistics/tx_bytes)
echo "sent from the first host to the second: $(((AFTER - BEFORE) / 1024)) KiB"

echo "two trainers, one on each host"
$FIRST env RAY_ADDRESS=$NET.1:6379 "$PYTHON" -m assay train "$WORK/recipe.toml" run.dir="$WORK/ranks" \
    scale.nodes=2 scale.trainers=2

"$PYTHON" - "$WORK" $B << 'END'
import json, pathlib, sys

work = pathlib.Path(sys.argv[1])
one, two, ranks = (
    [json.loads(line) for line in (work / name / "metrics.jsonl").read_text().splitlines()]
    for name in ("one", "two", "ranks")
)
print("loss and norm of its gradient")
print("step  one process                engines apart              two trainers")
for rows in zip(one, two, ranks, strict=True):
    print(f"{rows[0]['step']:4}  " + "   ".join(f"{row['loss']:+.8f} {row['grad_norm']:.8f}" for row in rows))
apart = [
    max(abs(a[key] - b[key]) for a, b in zip(one, other, strict=True) for key in ("loss", "grad_norm"))
    for other in (two, ranks)
]
places = {line.split()[2] for line in (work / "seen").read_text().splitlines()}
print(f"at most {apart[0]:.1e} and {apart[1]:.1e} apart")
sys.exit(not (max(apart) < 1e-4 and len(one) == 10 and sys.argv[2] in places))
END
