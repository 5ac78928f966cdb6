package main

import (
	"context"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// redisKeys are enough for a save of some seconds under the limit.
const redisKeys = 300_000

func redisSave() testCase {
	return testCase{
		name:    "redis-bgsave",
		truth:   "redis answers 2,500 GETs a second and saves its data all the time (BGSAVE). The forked saver spends the quota, the server waits.",
		limit:   0.5,
		causes:  []string{"pool", "shortage"},
		guilty:  []string{"bgsave", "(child)", "(long runs)"},
		suffers: []string{"redis-server"},
		needs:   []need{{"redis-server", "redis-server"}},
		start:   startRedis,
	}
}

func startRedis(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	err = s.start(program{args: []string{
		"redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", s.dir, "--enable-debug-command", "yes",
	}})
	if err != nil {
		return service{}, err
	}
	command := func(text string) request { return request{Protocol: protocolRedis, Addr: addr, Text: text} }
	if err := s.ready(ctx, command("DEBUG POPULATE 300000 key 200")); err != nil {
		return service{}, err
	}
	get := command("GET key:#")
	get.Keys = redisKeys
	return service{
		streams: []loadgen.Stream{{Name: "get", PerSecond: 2500}}, requests: []request{get},
		disturb: func(ctx context.Context) { again(ctx, command("BGSAVE"), 200*time.Millisecond) },
	}, nil
}

// again sends a request again and again, refused or not.
func again(ctx context.Context, r request, pause time.Duration) {
	send, err := exchangeOf(order{Plan: loadgen.Plan{Streams: make([]loadgen.Stream, 1), Connections: 1}, Requests: []request{r}})
	for err == nil {
		_ = send(ctx, 0) // redis refuses a save while one runs
		err = clock.Sleep(ctx, pause)
	}
}

func memcachedHealthy() testCase {
	return testCase{
		name:    "memcached-healthy",
		truth:   "memcached answers 2,000 gets a second within a limit that it hardly uses. Nothing is wrong.",
		limit:   1,
		healthy: true,
		needs:   []need{{"memcached", "memcached"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			return startMemcached(ctx, s, 2000)
		},
	}
}

func startMemcached(ctx context.Context, s *stage, perSecond float64) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"memcached", "-u", "root", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "4"}}); err != nil {
		return service{}, err
	}
	get := request{Protocol: protocolMemcached, Addr: addr, Text: "get key#", Keys: 1000}
	return service{streams: []loadgen.Stream{{Name: "get", PerSecond: perSecond}}, requests: []request{get}}, s.ready(ctx, get)
}
