# SPDX-License-Identifier: Apache-2.0
from parl.remote.client import *
from parl.remote.exceptions import *
from parl.remote.future_mode import *
from parl.remote.master import *
from parl.remote.remote_decorator import *
from parl.remote.worker import *
