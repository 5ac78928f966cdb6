package main

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const caddyConfig = `{
  admin off
  auto_https off
}
http://127.0.0.1:%[2]s {
  root * %[1]s
  encode {
    gzip 6
  }
  file_server
}
`

func caddyGzip() testCase {
	return testCase{
		name:    "caddy-gzip",
		truth:   "Caddy, a Go program, compresses pages of 300 kB for 16 browsers at once, five times a second. Its threads run as wide as the host and spend the quota early; the mean use is about half of the limit.",
		limit:   0.5,
		causes:  []string{"burst"},
		guilty:  []string{"caddy"},
		suffers: []string{"caddy"},
		needs:   []need{{"caddy", "caddy"}},
		start:   startCaddy,
	}
}

func startCaddy(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	page, err := s.page(addr, "page.html", 300_000)
	if err != nil {
		return service{}, err
	}
	config, err := s.file("Caddyfile", fmt.Sprintf(caddyConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"caddy", "run", "--adapter", "caddyfile", "--config", config}}); err != nil {
		return service{}, err
	}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 80, Burst: 16}}, requests: []request{page}, connections: 16,
	}, s.ready(ctx, page)
}
