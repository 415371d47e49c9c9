#!/usr/bin/env bash
# Two hosts on one machine, as root: network namespaces n0 (10.77.0.10) and n1 (10.77.0.11) on a bridge (10.77.0.1), each with an
# sshd (key: $DIR/key, `ssh -F $DIR/ssh_config n0`) and a real slurmd. They share the file system, as a cluster's home does.
#   cluster.sh up | down | status        Debian's packages: slurm-wlm munge openssh-server iproute2
# Tried on Debian 12 with Slurm 22.05: `srun -N2 -n2 accel-tui train --strategy multi-worker` trains over both.
set -euo pipefail
DIR=${DIR:-/tmp/accel-cluster}
hosts=(n0 n1)

up() {
  mkdir -p "$DIR"/{state,log} /run/munge /run/sshd
  ip link add accel-br type bridge 2>/dev/null || true
  ip addr replace 10.77.0.1/24 dev accel-br; ip link set accel-br up
  grep -q '10.77.0.10 n0' /etc/hosts || printf '10.77.0.10 n0\n10.77.0.11 n1\n' >>/etc/hosts
  for i in 0 1; do
    [ -e /run/netns/n$i ] && continue
    ip netns add n$i
    ip link add accel-v$i type veth peer name eth0 netns n$i
    ip link set accel-v$i master accel-br up
    nsenter --net=/run/netns/n$i sh -c "ip addr add 10.77.0.1$i/24 dev eth0; ip link set eth0 up; ip link set lo up; ip route add default via 10.77.0.1"
  done
  # sshd
  [ -e "$DIR/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$DIR/key"
  for i in 0 1; do
    [ -e "$DIR/host$i" ] || ssh-keygen -q -t ed25519 -N '' -f "$DIR/host$i"
    printf 'Port 22\nListenAddress 10.77.0.1%s\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nPidFile %s\nPermitRootLogin yes\nUsePAM no\n' \
      $i "$DIR/host$i" "$DIR/key.pub" "$DIR/sshd$i.pid" >"$DIR/sshd$i.conf"
    [ -e "$DIR/sshd$i.pid" ] && kill -0 "$(cat "$DIR/sshd$i.pid")" 2>/dev/null || nsenter --net=/run/netns/n$i /usr/sbin/sshd -f "$DIR/sshd$i.conf"
    printf '%s %s\n' "n$i,10.77.0.1$i" "$(cut -d' ' -f1,2 "$DIR/host$i.pub")"
  done >"$DIR/known_hosts"
  printf 'Host n0 n1\n  User root\n  IdentityFile %s\n  UserKnownHostsFile %s\n  IdentitiesOnly yes\n' "$DIR/key" "$DIR/known_hosts" >"$DIR/ssh_config"
  # Slurm: `nsenter`, not `ip netns exec`, which would hide /sys/fs/cgroup from slurmd
  chown munge: /run/munge; pgrep -x munged >/dev/null || munged --force 2>/dev/null
  cat >/etc/slurm/slurm.conf <<CONF
ClusterName=accel
SlurmctldHost=$(hostname)(10.77.0.1)
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool-%n
SlurmctldPidFile=$DIR/slurmctld.pid
SlurmdPidFile=$DIR/slurmd-%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
SlurmdTimeout=20
NodeName=n0 NodeHostname=n0 NodeAddr=10.77.0.10 CPUs=1 State=UNKNOWN
NodeName=n1 NodeHostname=n1 NodeAddr=10.77.0.11 CPUs=1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=9 PreemptMode=OFF
CONF
  running() { [ -e "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
  running "$DIR/slurmctld.pid" || { slurmctld; sleep 1; }
  for i in 0 1; do running "$DIR/slurmd-n$i.pid" || nsenter --net=/run/netns/n$i slurmd -N n$i; done
  for _ in $(seq 30); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 1; done
  status
}

down() {
  for f in "$DIR"/slurmd-n?.pid "$DIR"/slurmctld.pid "$DIR"/sshd?.pid; do [ -e "$f" ] && kill "$(cat "$f")" 2>/dev/null || true; done
  sleep 1
  for h in "${hosts[@]}"; do ip netns del $h 2>/dev/null || true; done
  ip link del accel-br 2>/dev/null || true
  sed -i '/^10\.77\.0\.1[01] n[01]$/d' /etc/hosts 2>/dev/null || { t=$(mktemp); grep -v '^10\.77\.0\.1[01] n[01]$' /etc/hosts >"$t"; cat "$t" >/etc/hosts; rm "$t"; }
  rm -rf "$DIR"
}

status() { sinfo; for h in "${hosts[@]}"; do ssh -F "$DIR/ssh_config" -o ConnectTimeout=5 $h 'echo "ssh: $(ip -4 -o addr show eth0 | tr -s " " | cut -d" " -f4)"'; done; }

"${1:-up}"
