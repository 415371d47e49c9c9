#!/bin/bash
# Trains @{what} under Slurm. Submitted with: sbatch @{script}
#SBATCH --job-name=@{name}
#SBATCH --nodes=@{nodes}
#SBATCH --ntasks-per-node=1
@{resources}
#SBATCH --chdir=@{folder}
#SBATCH --output=@{log}
#SBATCH --open-mode=append
# After preemption, and when its time is over, the job waits again, and the run goes on from its checkpoint.
# The engine gets SIGTERM two minutes before its time is over, writes a checkpoint and stops.
#SBATCH --requeue
#SBATCH --signal=TERM@120
@{options}

unset TF_CONFIG
export ACCEL_TUI_HOME=@{home} ACCEL_TUI_PLACE=@{place}

# One process on each node. They find each other by Slurm's variables, and one that is lost by themselves.
srun --nodes=@{nodes} --ntasks=@{nodes} --ntasks-per-node=1 --kill-on-bad-exit=0 \
  @{python} -m accel_engine.places start @{process}

# 75: the run has ended before its time. A job that was cancelled, or that Slurm requeues itself, is not running now.
@{python} -m accel_engine.places end @{process}
if [ $? -eq 75 ] && [ "$(squeue --noheader --format=%T --jobs=@{job})" = RUNNING ]; then
  scontrol requeue @{job}
fi
