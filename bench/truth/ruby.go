package main

import (
	"context"
	_ "embed"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/quote.ru
var quoteRu string

func pumaTiny() testCase {
	return testCase{
		name:    "puma-tiny",
		truth:   "Puma has one thread, and answers four requests a second at equal gaps. Each needs about 35 ms of one CPU, more than the 20 ms that a period's quota is. It never runs wider than one CPU, and its mean use is below the limit.",
		limit:   0.2,
		causes:  []string{"tiny-limit"},
		guilty:  []string{"puma", "ruby"},
		suffers: []string{"puma", "ruby"},
		needs:   []need{{"puma", "puma"}},
		start:   startPuma,
	}
}

func startPuma(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("quote.ru", quoteRu)
	if err != nil {
		return service{}, err
	}
	args := []string{"puma", "--threads", "1:1", "--environment", "production", "--bind", "tcp://" + addr, script}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	quote := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	return service{
		streams: []loadgen.Stream{{Name: "quote", PerSecond: 4, Regular: true}}, requests: []request{quote},
	}, s.ready(ctx, quote)
}
