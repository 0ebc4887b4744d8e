# SPDX-License-Identifier: Apache-2.0
"""WebDataset's shards, as lib/record/tar.c reads them: members whose names are the same up to the first dot of their last part
are one sample. ustar, old tar, and the long names of pax and GNU; a header counts only with the right checksum."""

BLOCK = 512
NAME_MAX = 4096
MEMBER_MAX = 1 << 30
ATTRIBUTES_MAX = 1 << 20


class Broken(ValueError):
    """These bytes are no tar."""


def _number(field):
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    digits = field.lstrip(b" ").split(b"\0", 1)[0].split(b" ", 1)[0]
    if digits.strip(b"01234567"):
        raise Broken("corrupt tar: a number of a header is none")
    return int(digits or b"0", 8)


def _attributes(data):
    """path and size of pax's "LENGTH KEY=VALUE\\n"."""
    found = {}
    while data:
        digits, space, _ = data[:11].partition(b" ")
        if not space or not digits.isdigit():
            raise Broken("corrupt tar: the attributes of a member cannot be read")
        length = int(digits)
        key, equals, value = data[len(digits) + 1:length].partition(b"=")
        if length > len(data) or not equals or value[-1:] != b"\n":
            raise Broken("corrupt tar: the attributes of a member cannot be read")
        found[key] = value[:-1]
        data = data[length:]
    return found


def _name(header):
    name = header[:100].split(b"\0", 1)[0]
    prefix = header[345:500].split(b"\0", 1)[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def key(name):
    """What of a member's name names its sample."""
    slash = name.rfind(b"/") + 1
    dot = name.find(b".", slash)
    return name if dot < 0 else name[:dot]


def members(read, at, end):
    """read(position, size) gives bytes. Yields of each member that is a file (name, where it begins with what belongs to it,
    where its contents begin, their size, end with padding), and (None, ...) of a block of zeros, up to end."""
    while at < end:
        begin, name, size = at, None, None
        while True:
            header = read(at, BLOCK)
            if len(header) < BLOCK:
                raise Broken("truncated: the data ends within a member of the tar")
            if not any(header):
                if at != begin:
                    raise Broken("corrupt tar: attributes belong to no member")
                at += BLOCK
                yield None, begin, at, 0, at
                break
            if sum(header) - sum(header[148:156]) + 8 * 32 != _number(header[148:156]):
                raise Broken("corrupt tar: the checksum of a header is wrong")
            kind, length = header[156:157], _number(header[124:136])
            regular = kind in (b"0", b"\0", b"7")
            if regular and size is not None:
                length = size
            if kind in (b"S", b"M"):
                raise Broken("the tar has sparse members or goes over several volumes, which cannot be read")
            if length > MEMBER_MAX:
                raise Broken("a member of the tar is longer than 1 GiB")
            contents = at + BLOCK
            padded = 0 if kind in (b"1", b"2", b"3", b"4", b"5", b"6") else -(-length // BLOCK) * BLOCK
            if contents + padded > end:
                raise Broken("truncated: the data ends within a member of the tar")
            at = contents + padded
            if kind in (b"x", b"L"):
                if length > ATTRIBUTES_MAX:
                    raise Broken("corrupt tar: the attributes of a member are longer than 1 MiB")
                data = read(contents, length)
                if kind == b"x":
                    found = _attributes(data)
                    name = found.get(b"path", name)
                    if b"size" in found:
                        if not found[b"size"].isdigit():
                            raise Broken("corrupt tar: the attributes of a member cannot be read")
                        size = int(found[b"size"])
                else:
                    name = data.split(b"\0", 1)[0]
                if name is not None and len(name) > NAME_MAX:
                    raise Broken("corrupt tar: the name of a member is longer than 4096 bytes")
                continue
            if kind in (b"g", b"K"):
                continue
            if regular:
                yield (_name(header) if name is None else name), begin, contents, length, at
            break


def samples(read, at, end, whole=True):
    """Yields (begin, end) of each sample. whole: of a file to its end, which has to be a block of zeros."""
    begin = stop = current = None
    ended = not whole
    for name, start, _, _, behind in members(read, at, end):
        ended = name is None or not whole
        mine = None if name is None else key(name)
        if mine != current and current is not None:
            yield begin, stop
            begin = None
        current = mine
        if mine is not None:
            begin, stop = start if begin is None else begin, behind
    if not ended:
        raise Broken("truncated: the tar has no end")
    if current is not None:
        yield begin, stop


def unpack(data):
    """The members of a sample: {name: bytes}."""
    return {name.decode(errors="surrogateescape"): data[contents:contents + size]
            for name, _, contents, size, _ in members(lambda at, n: data[at:at + n], 0, len(data)) if name is not None}
