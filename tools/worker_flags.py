"""The flags of `lstm-dssm-train` for a training by several processes."""

from absl import flags

from keras_lstm_dssm.command_line import definers


def define_worker_flags(values: flags.FlagValues) -> None:
    """Defines the flags for workers."""
    define = definers(values)
    define.integer(
        "workers", None,
        "Two towers: train by this many processes, which Ray Train starts and "
        "restarts (docs/scaling.md). Without it, a process that finds "
        "TF_CONFIG is one of the workers that it names.", 1,
    )  # fmt: skip
    define.string(
        "ray_address", None,
        "With --workers: the Ray cluster, `auto` for the one of this machine; "
        "by default Ray is started here and ends with the training.",
    )  # fmt: skip
    define.integer(
        "worker_cpus", None,
        "With workers: cores and threads of each; by default the cluster's "
        "cores by --workers, and all cores with TF_CONFIG.", 1,
    )  # fmt: skip
    define.float(
        "start_minutes", 5.0,
        "With workers: minutes to wait for all of them to start.", 0.0,
    )  # fmt: skip
