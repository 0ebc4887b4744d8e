# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in a bucket of S3's kind: what primus.checkpoints.Store does in a directory.

A bucket renames nothing and locks nothing. So files come first, then each rank's manifest, and a checkpoint is there with a mark, an empty
object, which whoever finds all manifests there puts (more than one may); without it all else is nothing. Removing takes the mark away
first.

    s3://BUCKET/PREFIX/step-000000001000/rank-0/...       what was written
                                         manifest-0.json
                       whole-000000001000                 the mark

boto3 (Debian: python3-boto3) speaks to it, with the keys that it finds: AWS_ACCESS_KEY_ID and the like, ~/.aws, an instance's role.
AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or endpoint_url of the profile in ~/.aws/config says where it is, when it is not Amazon's."""
import atexit
import contextlib
import functools
import hashlib
import os
import pathlib
import re
import shutil
import tempfile

_scratch = None


def scratch():
    """A directory of this process for what is on its way; gone with it."""
    global _scratch
    if _scratch is None or _scratch[0] != os.getpid():
        _scratch = os.getpid(), pathlib.Path(tempfile.mkdtemp(prefix="primus-checkpoints-"))
        atexit.register(shutil.rmtree, _scratch[1], True)
    return _scratch[1]


@functools.lru_cache(4)
def _client(pid, *environment):
    """One for each process, since its connections are not for two of them, and for what the environment says of keys."""
    import boto3.session
    import botocore.config
    import botocore.exceptions
    said, session, profile = dict(environment), boto3.session.Session(), {}
    with contextlib.suppress(botocore.exceptions.ProfileNotFound):
        profile = session._session.get_scoped_config()  # boto3 before 1.28 does not look for an endpoint there itself
    endpoint = said.get("AWS_ENDPOINT_URL_S3") or said.get("AWS_ENDPOINT_URL") or profile.get("endpoint_url")
    return session.client("s3", endpoint_url=endpoint, config=botocore.config.Config(retries={"mode": "standard"}))


class Bucket:
    """Objects below s3://BUCKET/PREFIX, by their names behind that. OSError: it does not answer, or refuses; FileNotFoundError."""

    def __init__(self, url):
        match = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/([^/\s][^\s]*?)/*", url)
        if not match or any(part in ("", ".", "..") for part in match[2].split("/")):
            raise ValueError(f"{url!r} is no place in a bucket: s3://BUCKET/PREFIX")
        try:
            import botocore.exceptions
            self._client = _client(os.getpid(), *((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))
        except ImportError as e:
            raise ImportError(f"checkpoints in a bucket need boto3 (Debian: python3-boto3): {e}") from None
        self.name, self.prefix = match[1], match[2] + "/"
        self.url = f"s3://{match[1]}/{match[2]}"
        self._errors = botocore.exceptions

    @contextlib.contextmanager
    def _asking(self, name):
        import boto3.exceptions
        try:
            yield
        except self._errors.ClientError as e:
            if e.response["Error"].get("Code") in ("404", "NoSuchKey"):
                raise FileNotFoundError(f"{self.url}/{name} is not there") from None
            raise OSError(f"{self.url}/{name}: {e}") from None
        except (self._errors.BotoCoreError, boto3.exceptions.Boto3Error) as e:
            raise OSError(f"{self.url}/{name}: {e}") from None

    def put_file(self, name, path):
        with self._asking(name):
            self._client.upload_file(str(path), self.name, self.prefix + name)

    def put(self, name, text):
        with self._asking(name):
            self._client.put_object(Bucket=self.name, Key=self.prefix + name, Body=text.encode())

    def get(self, name, most):
        """At most so many bytes; more are a ValueError."""
        with self._asking(name):
            answer = self._client.get_object(Bucket=self.name, Key=self.prefix + name)
            with contextlib.closing(answer["Body"]) as body:
                data = body.read(most + 1)
        if len(data) > most:
            raise ValueError("is larger than any")
        return data.decode()

    def get_file(self, name, path):
        """Into a file; its SHA-256."""
        digest = hashlib.sha256()
        with self._asking(name), contextlib.closing(self._client.get_object(Bucket=self.name, Key=self.prefix + name)["Body"]) as body, open(path, "wb") as f:
            while block := body.read(1 << 20):
                digest.update(block)
                f.write(block)
        return digest.hexdigest()

    def sizes(self, below=""):
        """{name: bytes} of what begins with that."""
        with self._asking(below):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.prefix + below)
            return {o["Key"][len(self.prefix):]: o["Size"] for page in pages for o in page.get("Contents", ())}

    def steps(self):
        """Names below which there is something of a checkpoint."""
        with self._asking(""):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=self.prefix + "step-", Delimiter="/")
            return [p["Prefix"][len(self.prefix):-1] for page in pages for p in page.get("CommonPrefixes", ())]

    def remove(self, names):
        names = list(names)
        with self._asking(""):
            for i in range(0, len(names), 1000):
                answer = self._client.delete_objects(Bucket=self.name, Delete={"Quiet": True, "Objects": [{"Key": self.prefix + n} for n in names[i:i + 1000]]})
                for e in answer.get("Errors", ())[:1]:
                    raise OSError(f"{self.url}/{e['Key'][len(self.prefix):]} is not removed: {e.get('Message') or e.get('Code')}")

    def remove_step(self, step):
        """It is none from the first moment on, and is known until the last."""
        last = f"step-{step:012}/manifest-0.json"
        self.remove([mark_of(step)])
        self.remove(name for name in self.sizes(f"step-{step:012}/") if name != last)
        self.remove([last])


def mark_of(step):
    return f"whole-{step:012}"


def steps_of(names, what):
    """Numbers of those names that are WHAT-000000001000."""
    return sorted((int(n[len(what) + 1:]) for n in names if re.fullmatch(what + r"-[0-9]{12}", n)), reverse=True)
