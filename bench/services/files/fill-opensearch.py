# Makes an index of 20,000 orders in OpenSearch, each with some words of 2,000, and exits.
import json
import random
import sys
import urllib.request

url = sys.argv[1]
draw = random.Random(1)
words = ["word%d" % i for i in range(2000)]


def send(method, path, body):
    request = urllib.request.Request(url + path, body.encode(), {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


send("PUT", "/orders", json.dumps({"settings": {"number_of_shards": 2, "number_of_replicas": 0, "refresh_interval": "-1"}}))
for first in range(0, 20000, 1000):
    lines = []
    for i in range(first, first + 1000):
        # Few words are common, most are rare, as in a language.
        text = " ".join(words[min(1999, int(draw.paretovariate(0.8)))] for _ in range(30))
        lines += [json.dumps({"index": {"_id": str(i)}}), json.dumps({"text": text, "price": draw.random()})]
    answer = send("POST", "/orders/_bulk", "\n".join(lines) + "\n")
    assert not answer["errors"], answer
send("POST", "/orders/_refresh", "")
send("POST", "/orders/_forcemerge?max_num_segments=1", "")
