#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An HTTP server with faults, an S3 that checks signatures, and a WebHDFS; for the tests of sources.

    httpd.py [--bind ADDRESS] [--tls CERTIFICATE KEY]      prints its port, and serves until its standard input ends

/MODE/lines-N is N lines "line 00000000\\n" ...; MODE says what is wrong with it:
    plain        nothing: ranges, ETag, Last-Modified
    nohead       no HEAD
    noranges     ranges are ignored          nolength     neither, and chunked
    hang         half of what is asked for, and then nothing more
    mute         no answer at all
    reset        every other answer breaks off in the middle
    cut          every answer ends in the middle
    busy         503 with Retry-After: 1 for every other request
    down         503 always
    changes      another ETag with every request
    wrong        another range than the one asked for
    redirect     to plain
    forbidden    403
    later        404 until the fourth request for it
/count/MODE/lines-N: how many requests there were for it
/bucket/... is S3, path style: keys data/2026112005/part-{0..4} (100 lines each), data/2026112005/_SUCCESS,
data/other/x y+z&, single (3 lines), many/00000 ... many/02499 (1 line each); a page has 1000 keys. PUT and DeleteObjects change
them. Requests
signed with key AKIDTEST, secret "s3/secret+key", region eu-test-1, and the session token, if there is one, "token/1=".
/webhdfs/v1/... is WebHDFS, as Hadoop's documents have it, with the same files: a page has 1000 names, bytes come from a "datanode",
of which every other answer for a file called cut breaks off; /private is the user mlops's; /changes has another time with every request.
/standby/webhdfs/v1/... is a namenode that is not the active one.
"""
import argparse
import collections
import hashlib
import hmac
import html
import http.server
import json
import re
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse
import zlib

COUNTS = collections.Counter()
LOCK = threading.Lock()
SECRET, KEY, REGION = "s3/secret+key", "AKIDTEST", "eu-test-1"
MODIFIED = "Fri, 20 Nov 2026 05:00:00 GMT"


def lines(n):
    return b"".join(b"line %08d\n" % i for i in range(n))


OBJECTS = {f"data/2026112005/part-{i}": lines(100) for i in range(5)}
OBJECTS |= {"data/2026112005/_SUCCESS": b"", "data/2026112005/deep/x": b"x\n", "data/other/x y+z&ä": lines(7), "single": lines(3)}
OBJECTS |= {f"many/{i:05d}": lines(1) for i in range(2500)}
FILES = {f"/{key}": data for key, data in OBJECTS.items()}  # of HDFS
FILES |= {"/private/one": lines(1), "/changes": lines(10), "/cut": lines(20000), "/data/hidden/_x": lines(1), "/data/hidden/.y": lines(1), "/empty/none": b""}


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is more than one write

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = urllib.parse.unquote(self.path.partition("?")[0].removeprefix("/bucket/"))
        wrong = self.signed() or (None if self.headers["x-amz-content-sha256"] == hashlib.sha256(body).hexdigest() else "XAmzContentSHA256Mismatch")
        if wrong:
            return self.error(403, wrong, True)
        OBJECTS[key] = body
        return self.plain(200, "", ETag=f'"{hashlib.md5(body).hexdigest()}"')

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        wrong = self.signed()
        if wrong or not self.path.startswith("/bucket?delete"):
            return self.error(403, wrong or "NotImplemented", True)
        for key in re.findall("<Key>(.*?)</Key>", body.decode()):
            OBJECTS.pop(html.unescape(key), None)
        return self.plain(200, '<?xml version="1.0"?><DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"/>')

    def plain(self, status, text, body=True, **headers):
        text = text.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if body:
            self.wfile.write(text)

    def break_off(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def answer(self, body):
        path = urllib.parse.urlsplit(self.path).path
        with LOCK:
            COUNTS[path] += 1
            count = COUNTS[path]
        if path.startswith("/count/"):
            return self.plain(200, str(COUNTS[path[6:]]), body)
        if "/webhdfs/v1/" in path or path.startswith("/datanode/"):
            return self.hdfs(path, body, count)
        if path.startswith("/bucket"):
            return self.s3(body)
        match = re.fullmatch(r"/([a-z0-9]+)/lines-([0-9]+)(\.gz)?", path)
        if not match:
            return self.plain(404, "no such thing\n", body)
        mode, data = match[1], lines(int(match[2]))
        if mode == "later" and count < 4 or mode == "nohead" and not body:
            return self.plain(404 if mode == "later" else 405, "", body)
        if mode == "down" or mode == "busy" and count % 2 == 1:
            return self.plain(503, "come again\n", body, **({"Retry_After": "1"} if mode == "busy" else {}))
        if mode == "forbidden":
            return self.plain(403, "no\n", body)
        if mode == "redirect":
            return self.plain(302, "", body, Location="/plain/" + path.split("/")[2])
        if mode == "mute":
            time.sleep(20)
            return self.break_off()
        return self.data(mode, data, body, count)

    def data(self, mode, data, body, count):
        asked = re.fullmatch(r"bytes=([0-9]+)-([0-9]*)", self.headers.get("Range", ""))
        first, last = 0, len(data)
        tag = f'"{mode}-{len(data)}' + (f"-{count}" if mode == "changes" else "") + '"'
        if asked and mode not in ("noranges", "nolength"):
            first = int(asked[1])
            last = min(int(asked[2]) + 1 if asked[2] else len(data), len(data))
            if first >= len(data):
                return self.plain(416, "", body, Content_Range=f"bytes */{len(data)}")
            if mode == "wrong":
                first -= min(first, 1)
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{last - 1}/{len(data)}")
        else:
            self.send_response(200)
        if mode not in ("noranges", "nolength"):
            self.send_header("Accept-Ranges", "bytes")
        if mode != "nolength":
            self.send_header("ETag", tag)
            self.send_header("Last-Modified", MODIFIED)
            self.send_header("Content-Length", str(last - first))
        else:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if not body:
            return
        part = data[first:last]
        if mode == "nolength":
            for i in range(0, len(part), 5000):
                piece = part[i:i + 5000]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")
            return
        if mode == "hang" or mode == "cut" or mode == "reset" and count % 2 == 1:
            self.wfile.write(part[:len(part) // 2])
            self.wfile.flush()
            if mode == "hang":
                time.sleep(20)
            if mode == "cut":
                self.close_connection = True
                return
            time.sleep(0.05)
            return self.break_off()
        self.wfile.write(part)

    # ---- S3

    def error(self, status, code, body):
        return self.plain(status, f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>", body)

    def signed(self):
        """Signature version 4, computed anew from what has come."""
        match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", self.headers.get("Authorization", ""))
        if not match:
            return "AccessDenied"
        key, day, region, names, signature = match.groups()
        if key != KEY or region != REGION:
            return "InvalidAccessKeyId"
        if "x-amz-security-token" in self.headers and self.headers["x-amz-security-token"] != "token/1=":
            return "InvalidToken"
        for name in ("host", "x-amz-date", *(h.lower() for h in self.headers if h.lower().startswith("x-amz-"))):
            if name not in names.split(";"):
                return "SignatureDoesNotMatch"
        path, _, query = self.path.partition("?")
        pairs = sorted(p if "=" in p else p + "=" for p in query.split("&") if p)
        canonical = "\n".join([self.command, path, "&".join(pairs), *(f"{n}:{self.headers[n].strip()}" for n in names.split(";")),
                               "", names, self.headers["x-amz-content-sha256"]])
        stamp = self.headers["x-amz-date"]
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, f"{day}/{region}/s3/aws4_request", hashlib.sha256(canonical.encode()).hexdigest()])
        secret = digest(digest(digest(digest(("AWS4" + SECRET).encode(), day), region), "s3"), "aws4_request")
        return None if digest(secret, text).hex() == signature else "SignatureDoesNotMatch"

    def s3(self, body):
        wrong = self.signed()
        if wrong:
            return self.error(403, wrong, body)
        path, _, query = self.path.partition("?")
        key = urllib.parse.unquote(path.removeprefix("/bucket").removeprefix("/"))
        if key:
            if key not in OBJECTS:
                return self.error(404, "NoSuchKey", body)
            return self.data("s3", OBJECTS[key], body, 0)
        q = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if q.get("list-type") != "2" or q.get("encoding-type") != "url":
            return self.error(400, "InvalidArgument", body)
        prefix, delimiter = q.get("prefix", ""), q.get("delimiter")
        start = q.get("continuation-token", "").removeprefix("behind ") or q.get("start-after", "")
        keys, common = [], set()
        for k in sorted(OBJECTS, key=str.encode):
            if not k.startswith(prefix) or k.encode() <= start.encode():
                continue
            if delimiter and delimiter in k[len(prefix):]:
                common.add(prefix + k[len(prefix):].split(delimiter)[0] + delimiter)
                continue
            keys.append(k)
        page, more = keys[:1000], len(keys) > 1000
        quote = lambda k: urllib.parse.quote_plus(k)
        xml = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name>',
               f"<Prefix>{quote(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount><IsTruncated>{str(more).lower()}</IsTruncated><EncodingType>url</EncodingType><Delimiter/>"]
        for k in page:
            tag = html.escape(f'"s3-{len(OBJECTS[k])}"')
            xml.append(f"<Contents><Key>{quote(k)}</Key><LastModified>2026-11-20T05:00:00.000Z</LastModified><ETag>{tag}</ETag>"
                       f"<Size>{len(OBJECTS[k])}</Size><Owner><ID>x</ID></Owner><StorageClass>STANDARD</StorageClass></Contents>")
        xml += [f"<CommonPrefixes><Prefix>{quote(c)}</Prefix></CommonPrefixes>" for c in sorted(common)]
        if more:
            xml.append(f"<NextContinuationToken>behind {page[-1]}</NextContinuationToken>")
        return self.plain(200, "".join(xml) + "</ListBucketResult>", body)


    # ---- WebHDFS

    def remote_exception(self, status, exception, message, body):
        return self.plain(status, json.dumps({"RemoteException": {"exception": exception, "javaClassName": f"org.apache.hadoop.x.{exception}",
                                                                  "message": message + "\n\tat org.apache.hadoop.x"}}), body)

    def hdfs_status(self, path, suffix, count):
        """None: there is no such thing."""
        data = FILES.get(path)
        if data is None and not any(name.startswith(path.rstrip("/") + "/") for name in FILES):
            return None
        msec = 1795669200000 + (count if path == "/changes" else 0)
        return {"accessTime": msec, "blockSize": 134217728 if data is not None else 0, "childrenNum": 0, "fileId": 16386 + zlib.crc32(path.encode()),
                "group": "ml", "length": len(data or b""), "modificationTime": msec, "owner": "ml", "pathSuffix": suffix, "permission": "644",
                "replication": 3 if data is not None else 0, "storagePolicy": 0, "type": "FILE" if data is not None else "DIRECTORY"}

    def hdfs(self, path, body, count):
        q = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        name = urllib.parse.unquote(path.split("/webhdfs/v1")[-1].removeprefix("/datanode"))
        if path.startswith("/standby/"):
            return self.remote_exception(403, "StandbyException", "Operation category READ is not supported in state standby", body)
        if name.startswith("/private") and q.get("user.name") != "mlops":
            return self.remote_exception(403, "AccessControlException", f"Permission denied: user={q.get('user.name')}, access=READ", body)
        status = self.hdfs_status(name, "", count)
        if status is None:
            return self.remote_exception(404, "FileNotFoundException", f"File does not exist: {name}", body)
        if path.startswith("/datanode/"):
            part = FILES[name][int(q["offset"]):][:int(q.get("length", "999999999"))]
            self.send_response(200)
            self.send_header("Content-Length", str(len(part)))
            self.end_headers()
            if name.endswith("/cut") and count % 2 == 1:
                self.wfile.write(part[:len(part) // 2])
                return self.break_off()
            return self.wfile.write(part)
        if q.get("op") == "GETFILESTATUS":
            return self.plain(200, json.dumps({"FileStatus": status}), body)
        if q.get("op") == "LISTSTATUS_BATCH":
            below = name.rstrip("/") + "/"
            names = sorted({n[len(below):].split("/")[0] for n in FILES if n.startswith(below)}, key=str.encode)
            names = [n for n in names if n.encode() > q.get("startAfter", "").encode()]
            page = [self.hdfs_status(below + n, n, count) for n in names[:1000]]
            return self.plain(200, json.dumps({"DirectoryListing": {"partialListing": {"FileStatuses": {"FileStatus": page}},
                                                                    "remainingEntries": max(0, len(names) - 1000)}}), body)
        if q.get("op") != "OPEN" or status["type"] != "FILE":
            return self.remote_exception(400, "IllegalArgumentException", "Invalid value for webhdfs parameter", body)
        if int(q.get("offset", 0)) > len(FILES[name]):
            return self.remote_exception(403, "IOException", f"Offset={q['offset']} out of the range", body)
        host = self.headers["Host"]
        query = urllib.parse.urlencode({"op": "OPEN", "user.name": q["user.name"], "offset": q.get("offset", "0"),
                                        **({"length": q["length"]} if "length" in q else {})})
        return self.plain(307, "", body, Location=f"http://{host}/datanode{urllib.parse.quote(name)}?{query}")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass  # clients go when they like


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bind", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--tls", nargs=2)
    args = parser.parse_args()
    server = Server((args.bind, args.port), Handler)
    if args.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*args.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_address[1]}\n")  # in one piece
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
