# SPDX-License-Identifier: Apache-2.0
"""Where a program is, as Determined says it: get_cluster_info()."""
import json
import os

from determined import _state


class TrialInfo:
    """trial_id        int: the number of the job (of a search: of the trial's)
    experiment_id      int: of the search; else the same
    trial_seed         int
    hparams            dict"""

    def __init__(self, trial_id, experiment_id, trial_seed, hparams, config):
        self.trial_id, self.experiment_id, self.trial_seed, self.hparams, self._config = trial_id, experiment_id, trial_seed, hparams, config


class RendezvousInfo:
    def __init__(self, container_addrs, container_rank, container_slot_counts):
        self.container_addrs, self.container_rank, self.container_slot_counts = container_addrs, container_rank, container_slot_counts


class ClusterInfo:
    """master_url, cluster_id, session_token   "": there is no such server to speak to
    agent_id                                 the host's name
    slot_ids                                 list of int: as many as this executor has slots
    container_addrs, container_rank, container_slot_counts   of all executors of the trial
    latest_checkpoint                        the id of this trial's latest one, or None
    trial                                    TrialInfo
    user_data                                dict: data of the experiment's configuration"""

    def __init__(self):
        e, hosts = os.environ, _state.hosts()
        slots = _state.slots()
        self.master_url = self.cluster_id = self.session_token = ""
        self.agent_id = e.get("PRIMUS_NODE", "")
        self.slot_ids = list(range(slots))
        self.task_id = self.allocation_id = f"{e['PRIMUS_JOB']}.{e.get('PRIMUS_ATTEMPT', 1)}"
        self.task_type = "TRIAL"
        self.container_addrs, self.container_rank = hosts, int(e.get("PRIMUS_RANK", 0))
        self.container_slot_counts = [slots] * len(hosts)
        self.gpu_uuids = [u for u in e.get("PRIMUS_GPUS", "").split(",") if u]
        config = _state.config()
        self.trial = TrialInfo(_state.trial_id(), _state.experiment_id(), _state.seed(), _state.hparams(), config)
        self.user_data = config.get("data", {})

    @property
    def latest_checkpoint(self):
        return _state.latest_checkpoint()


def get_cluster_info():
    """ClusterInfo; None outside of a job."""
    return ClusterInfo() if _state.inside() else None


def _as_json(info):
    return json.dumps(vars(info), default=vars)
