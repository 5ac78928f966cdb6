package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func etcdRanges() testCase {
	return testCase{
		name:    "etcd-ranges",
		truth:   "etcd answers 150 reads of one key a second over HTTP, beside ranges of 1,000 keys that four other clients ask for at once, twice a second, some 25 ms each. Go's threads run the ranges on all CPUs and spend the quota early; the mean use is low.",
		limit:   0.4,
		causes:  []string{"burst"},
		guilty:  []string{"etcd"},
		suffers: []string{"etcd"},
		needs:   []need{{"etcd", "etcd-server"}},
		start:   startEtcd,
	}
}

// etcdPut is a part of a transaction. Keys and values are base64 in JSON; these are base64 as they are.
const etcdPut = `{"requestPut":{"key":"orde%04d","value":"%s"}}`

func startEtcd(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	peers, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	client, peer := "http://"+addr, "http://"+peers
	args := []string{"etcd", "--data-dir=" + s.dir + "/data", "--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=default=" + peer}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	const keys, atOnce = 4000, 100 // etcd takes at most 128 operations in a transaction
	for from := 0; from < keys; from += atOnce {
		var puts []string
		for key := from; key < from+atOnce; key++ {
			puts = append(puts, fmt.Sprintf(etcdPut, key, strings.Repeat("item", 30)))
		}
		fill := request{Protocol: protocolHTTP, Text: client + "/v3/kv/txn\n" + `{"success":[` + strings.Join(puts, ",") + "]}"}
		if err := s.ready(ctx, fill); err != nil {
			return service{}, err
		}
	}
	read := request{Protocol: protocolHTTP, Text: client + "/v3/kv/range\n" + `{"key":"orde0##0"}`, Keys: 10}
	list := request{Protocol: protocolHTTP, Text: client + "/v3/kv/range\n" + `{"key":"orde0000","range_end":"ordf0000","limit":1000}`}
	return service{
		streams:  []loadgen.Stream{{Name: "read", PerSecond: 150}, {Name: "range", PerSecond: 8, Burst: 4, Background: true}},
		requests: []request{read, list}, connections: 16,
	}, s.ready(ctx, list)
}
