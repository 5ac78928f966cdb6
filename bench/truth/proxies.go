package main

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const haproxyConfig = `global
  nbthread 4
  maxconn 500
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
frontend web
  bind 127.0.0.1:%[2]s
  bind 127.0.0.1:%[3]s ssl crt %[1]s/pair.pem
  http-request return status 200 content-type text/plain string hello
`

func haproxyTLS() testCase {
	return testCase{
		name:    "haproxy-tls",
		truth:   "HAProxy answers 200 requests a second on open connections. Twice a second 20 clients connect with TLS at once, and it signs for each with an RSA key of 4096 bits. These bursts spend the quota early; the mean use is about half of the limit.",
		limit:   0.6,
		causes:  []string{"burst"},
		guilty:  []string{"haproxy"},
		suffers: []string{"haproxy"},
		needs:   []need{{"haproxy", "haproxy"}, {"openssl", "openssl"}},
		start:   startHAProxy,
	}
}

func haproxyOneCPU() testCase {
	return testCase{
		name:    "haproxy-one-cpu",
		truth:   "HAProxy's four threads have the same work as in haproxy-tls. The limit is 2 CPUs and their cpuset has one: no quota stops them, they wait for each other's CPU.",
		limit:   2,
		causes:  []string{"cpuset"},
		suffers: []string{"haproxy"},
		needs:   []need{{"haproxy", "haproxy"}, {"openssl", "openssl"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			if err := s.oneCPU(); err != nil {
				return service{}, err
			}
			return startHAProxy(ctx, s)
		},
	}
}

func startHAProxy(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	tlsAddr, tlsPort, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	pair := s.dir + "/pair.pem"
	sign := []string{"openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", pair, "-out", s.dir + "/cert.pem"}
	if err := s.prepare(ctx, program{args: sign}); err != nil {
		return service{}, err
	}
	if err := s.prepare(ctx, program{args: []string{"/bin/sh", "-c", "cat " + s.dir + "/cert.pem >> " + pair}}); err != nil {
		return service{}, err
	}
	config, err := s.file("haproxy.cfg", fmt.Sprintf(haproxyConfig, s.dir, port, tlsPort))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"haproxy", "-db", "-f", config}}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	connect := request{Protocol: protocolTLS, Addr: tlsAddr, Text: "/"}
	return service{
		streams:  []loadgen.Stream{{Name: "page", PerSecond: 200}, {Name: "handshake", PerSecond: 40, Burst: 20, Background: true}},
		requests: []request{page, connect}, connections: 32,
	}, s.ready(ctx, connect)
}

// varnishConfig answers without a backend.
const varnishConfig = `vcl 4.1;
backend default none;
sub vcl_recv { return (synth(200, "OK")); }
`

func varnishNeighbour() testCase {
	return testCase{
		name:    "varnish-neighbour",
		truth:   "Varnish answers 200 requests a second far below its limit, with 48 CPU shares. In another cgroup openssl keeps both CPUs busy, with 1,024 shares. No quota stops Varnish: it waits for its neighbour.",
		limit:   1,
		causes:  []string{"neighbours"},
		guilty:  []string{"beside", "openssl"},
		suffers: []string{"cache-worker", "cache-epoll", "varnish"},
		needs:   []need{{"varnishd", "varnish"}, {"openssl", "openssl"}},
		start:   startVarnish,
	}
}

func startVarnish(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	config, err := s.file("hello.vcl", varnishConfig)
	if err != nil {
		return service{}, err
	}
	args := []string{"varnishd", "-F", "-j", "none", "-a", addr, "-n", s.dir + "/varnish", "-f", config, "-s", "malloc,16m"}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	if err := s.ready(ctx, page); err != nil {
		return service{}, err
	}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 200}}, requests: []request{page}, connections: 32,
	}, s.neighbour(48, "while :; do openssl speed -multi 2 -seconds 60 sha256; done")
}
