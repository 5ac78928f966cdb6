package main

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
)

// pageOfText is a page that compresses as pages do.
func pageOfText(bytes int) string {
	chance := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "<li id=\"n%d\">item %x of the list</li>\n", b.Len(), chance.Uint32())
	}
	return b.String()
}

func nginxGzip() testCase {
	return testCase{
		name:    "nginx-gzip",
		truth:   "nginx compresses pages of 220 kB for 30 browsers at once, 2.5 times a second. Bursts spend the quota early; the mean use is low.",
		limit:   0.6,
		causes:  []string{"burst"},
		guilty:  []string{"nginx"},
		suffers: []string{"nginx"},
		needs:   []need{{"nginx", "nginx-light"}},
		start:   startNginxGzip,
	}
}

const nginxConfig = `worker_processes 4;
daemon off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
user root;
events { worker_connections 512; }
http {
  access_log off; default_type text/html;
  client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
  gzip on; gzip_comp_level 6; gzip_proxied any;
  server { listen 127.0.0.1:%[2]s reuseport; root %[1]s; %[3]s }
}
`

func startNginxGzip(ctx context.Context, s *stage) (service, error) {
	return startNginx(ctx, s, 220_000, loadgen.Stream{Name: "page", PerSecond: 75, Burst: 30})
}

func startNginx(ctx context.Context, s *stage, bytes int, load loadgen.Stream) (service, error) {
	page, _, err := s.nginx(ctx, s.target, bytes)
	return service{streams: []loadgen.Stream{load}, requests: []request{page}, connections: 30}, err
}

// nginx starts nginx, which has a page of so many bytes, in a cgroup.
func (s *stage) nginx(ctx context.Context, in *sandbox.Group, bytes int) (page request, port string, err error) {
	addr, port, err := freeAddr()
	if err != nil {
		return page, port, err
	}
	if page, err = s.page(addr, "page.html", bytes); err != nil {
		return page, port, err
	}
	config, err := s.file("nginx.conf", fmt.Sprintf(nginxConfig, s.dir, port, ""))
	if err != nil {
		return page, port, err
	}
	if err := s.start(program{in: in, args: []string{"nginx", "-c", config, "-e", s.dir + "/error.log"}}); err != nil {
		return page, port, err
	}
	return page, port, s.ready(ctx, page)
}

// origin starts nginx in a cgroup beside the target's, for a proxy to ask.
func (s *stage) origin(ctx context.Context, bytes int) (page request, port string, err error) {
	beside, err := s.group(s.box.Top(), "beside")
	if err != nil {
		return page, port, err
	}
	return s.nginx(ctx, beside, bytes)
}

func nginxHealthy() testCase {
	return testCase{
		name:    "nginx-healthy",
		truth:   "nginx answers 500 requests a second for a page of 500 bytes within a limit of which it uses a tenth. Nothing is wrong.",
		limit:   1,
		healthy: true,
		needs:   []need{{"nginx", "nginx-light"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			return startNginx(ctx, s, 500, loadgen.Stream{Name: "page", PerSecond: 500})
		},
	}
}

//go:embed files/logins.js
var loginsJS string

func nodeLogins() testCase {
	return testCase{
		name:    "node-logins",
		truth:   "Node answers 200 small requests a second on its event loop, beside 10 logins a second whose pbkdf2 runs on libuv's four workers. The workers spend the quota, the event loop waits.",
		limit:   0.8,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"workers", "libuv"},
		suffers: []string{"node"},
		needs:   []need{{"node", "nodejs"}},
		setting: setting{name: "UV_THREADPOOL_SIZE", advised: []string{"UV_THREADPOOL_SIZE=1"}},
		start:   startNode,
	}
}

//go:embed files/cluster.js
var clusterJS string

func nodeClusterHealthy() testCase {
	return testCase{
		name:    "node-cluster-healthy",
		truth:   "Two Node processes of a cluster answer 200 small requests a second within a limit of which they use a tenth. Nothing is wrong.",
		limit:   1,
		healthy: true,
		needs:   []need{{"node", "nodejs"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			script, err := s.file("cluster.js", clusterJS)
			if err != nil {
				return service{}, err
			}
			if err := s.start(program{args: []string{"node", script, port}}); err != nil {
				return service{}, err
			}
			hello := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
			return service{streams: []loadgen.Stream{{Name: "hello", PerSecond: 200}}, requests: []request{hello}}, s.ready(ctx, hello)
		},
	}
}

func startNode(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("logins.js", loginsJS)
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"node", script, port}, env: s.value(nodeLogins().setting)}); err != nil {
		return service{}, err
	}
	hello := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	login := request{Protocol: protocolHTTP, Text: "http://" + addr + "/login"}
	return service{
		streams:  []loadgen.Stream{{Name: "hello", PerSecond: 200}, {Name: "login", PerSecond: 10, Background: true}},
		requests: []request{hello, login}, connections: 32,
	}, s.ready(ctx, login)
}
