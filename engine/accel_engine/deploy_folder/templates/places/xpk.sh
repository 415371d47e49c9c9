#!/bin/bash
# Trains @{what} on a GKE cluster of xpk, whose storage is mounted at the path of --volume. Started with: bash xpk.sh
set -e
cd "$(dirname "$0")"

# xpk adds this folder, with plan.json, to the image. 75: the run has ended before its time, and is started again.
xpk workload create \
  --workload=@{name} \
  --cluster=@{cluster} \
  --device-type=@{device} \
  @{machines}
  --base-docker-image=@{image} \
  --script-dir=. \
  --storage=@{storage} \
  --max-restarts=@{restarts} \
  --restart-on-exit-codes=@{again} \
  --termination-grace-period-seconds=120 \
  --command=@{command}
