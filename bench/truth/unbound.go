package main

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const unboundConfig = `server:
  interface: 127.0.0.1@%[2]s
  port: %[2]s
  directory: "%[1]s"
  pidfile: "%[1]s/unbound.pid"
  chroot: ""
  username: ""
  use-syslog: no
  num-threads: 2
  local-zone: "shop.test." static
  local-data: "cart.shop.test. A 10.0.0.7"
remote-control:
  control-enable: no
`

func unboundHealthy() testCase {
	return testCase{
		name:    "unbound-healthy",
		truth:   "The resolver Unbound answers 400 questions a second from its own data within a limit of which it uses a tenth. Nothing is wrong.",
		limit:   0.5,
		healthy: true,
		needs:   []need{{"unbound", "unbound"}},
		start:   startUnbound,
	}
}

func startUnbound(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	config, err := s.file("unbound.conf", fmt.Sprintf(unboundConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"unbound", "-d", "-c", config}}); err != nil {
		return service{}, err
	}
	question := request{Protocol: protocolDNS, Addr: addr, Text: "cart.shop.test"}
	return service{streams: []loadgen.Stream{{Name: "question", PerSecond: 400}}, requests: []request{question}}, s.ready(ctx, question)
}
