package main

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const tinyproxyConfig = `Port %[1]s
Listen 127.0.0.1
Allow 127.0.0.1
MaxClients 50
ReverseOnly Yes
ReversePath "/" "http://127.0.0.1:%[2]s/"
LogLevel Error
`

func tinyproxyHealthy() testCase {
	return testCase{
		name:    "tinyproxy-healthy",
		truth:   "tinyproxy passes 150 requests a second on to nginx in another cgroup, a thread for each, within a limit of which it uses a tenth. Nothing is wrong.",
		limit:   1,
		healthy: true,
		needs:   []need{{"tinyproxy", "tinyproxy-bin"}, {"nginx", "nginx-light"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			page, originPort, err := s.origin(ctx, 2000)
			if err != nil {
				return service{}, err
			}
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			config, err := s.file("tinyproxy.conf", fmt.Sprintf(tinyproxyConfig, port, originPort))
			if err != nil {
				return service{}, err
			}
			if err := s.start(program{args: []string{"tinyproxy", "-d", "-c", config}}); err != nil {
				return service{}, err
			}
			page.Text = "http://" + addr + "/page.html"
			return service{streams: []loadgen.Stream{{Name: "page", PerSecond: 150}}, requests: []request{page}, connections: 16}, s.ready(ctx, page)
		},
	}
}
