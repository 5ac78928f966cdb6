package main

import (
	"context"
	_ "embed"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/queens.pl
var queensPl string

func swiplThreads() testCase {
	return testCase{
		name:    "swipl-threads",
		truth:   "SWI-Prolog's HTTP server answers 120 hellos a second on 16 worker threads, beside twice a second four searches at once, some 28 ms each, on the same workers. Bursts spend the quota early; the mean use is below the limit.",
		limit:   0.6,
		causes:  []string{"burst", "pool"},
		guilty:  []string{"httpd"},
		suffers: []string{"httpd", "swipl"},
		needs:   []need{{"swipl", "swi-prolog-nox"}},
		start:   startSWIProlog,
	}
}

func startSWIProlog(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("queens.pl", queensPl)
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"swipl", script, port}}); err != nil {
		return service{}, err
	}
	hello := request{Protocol: protocolHTTP, Text: "http://" + addr + "/hello"}
	search := request{Protocol: protocolHTTP, Text: "http://" + addr + "/queens"}
	return service{
		streams:  []loadgen.Stream{{Name: "hello", PerSecond: 120}, {Name: "search", PerSecond: 8, Burst: 4, Background: true}},
		requests: []request{hello, search}, connections: 8,
	}, s.ready(ctx, search)
}
