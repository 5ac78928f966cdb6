package main

import (
	"context"
	"fmt"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

const lighttpdConfig = `server.document-root = "%[1]s"
server.bind = "127.0.0.1"
server.port = %[2]s
mimetype.assign = ( ".html" => "text/html" )
`

func lighttpdLogs() testCase {
	return testCase{
		name:    "lighttpd-zstd",
		truth:   "lighttpd answers 300 small requests a second. In the same container zstd compresses a log with two threads, pauses for 0.6 seconds and begins again. zstd spends the quota in bursts, lighttpd waits.",
		limit:   0.6,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"zstd"},
		suffers: []string{"lighttpd"},
		needs:   []need{{"lighttpd", "lighttpd"}, {"zstd", "zstd"}},
		setting: setting{name: "-T", asItWas: []string{"-T2"}, advised: []string{"-T1"}},
		start:   startLighttpd,
	}
}

func startLighttpd(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	log, err := s.file("access.log", pageOfText(8_000_000))
	if err != nil {
		return service{}, err
	}
	page, err := s.page(addr, "small.html", 500)
	if err != nil {
		return service{}, err
	}
	config, err := s.file("lighttpd.conf", fmt.Sprintf(lighttpdConfig, s.dir, port))
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"lighttpd", "-D", "-f", config}}); err != nil {
		return service{}, err
	}
	loop := "while :; do zstd -q " + s.value(lighttpdLogs().setting)[0] + " -B1MiB -12 -c " + log + " >/dev/null; sleep 0.6; done"
	if err := s.start(program{args: []string{"/bin/sh", "-c", loop}}); err != nil {
		return service{}, err
	}
	return service{
		streams: []loadgen.Stream{{Name: "page", PerSecond: 300}}, requests: []request{page}, connections: 32,
	}, s.ready(ctx, page)
}
