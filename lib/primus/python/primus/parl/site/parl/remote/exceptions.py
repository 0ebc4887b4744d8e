# SPDX-License-Identifier: Apache-2.0
from primus.parl.exceptions import (FutureFunctionError, FutureGetRepeatedlyError, FutureObjectEmpty, RemoteAttributeError, RemoteDeserializeError, RemoteError,
                                    RemoteSerializeError, ResourceError)

__all__ = ["FutureFunctionError", "FutureGetRepeatedlyError", "FutureObjectEmpty", "RemoteAttributeError", "RemoteDeserializeError", "RemoteError", "RemoteSerializeError",
           "ResourceError"]
