# SPDX-License-Identifier: Apache-2.0
"""What calls of remote objects raise, by PARL's names."""


class _Said(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.error_info = text

    def __str__(self):
        return self.error_info


class ResourceError(_Said):
    """No slot has become free for as long as one waits for it."""


class RemoteError(_Said):
    """Something went wrong with an object: its constructor or a method raised, or its process has ended. The object is gone."""

    def __init__(self, func_name, error_info):
        super().__init__(f"{func_name}: {error_info}")
        self.func_name, self.reason = func_name, error_info

    def __reduce__(self):
        return type(self), (self.func_name, self.reason)


class RemoteSerializeError(RemoteError):
    """What a method has returned cannot be sent."""


class RemoteDeserializeError(RemoteError):
    """Arguments cannot be read there."""


class RemoteAttributeError(RemoteError):
    """The object has no such attribute."""


class FutureGetRepeatedlyError(_Said):
    """A future's result is there once."""

    def __init__(self):
        super().__init__("get() of this future has given its result before, and there is only one")


class FutureFunctionError(_Said):
    """A call of an object with wait=False has failed; the cause is how."""

    def __init__(self, func_name):
        super().__init__(f"{func_name} has failed; why stands above, and is the cause of this")
        self.func_name = func_name

    def __reduce__(self):
        return type(self), (self.func_name,)


class FutureObjectEmpty(_Said):
    """The result is not there yet."""

    def __init__(self):
        super().__init__("the result is not there yet")
