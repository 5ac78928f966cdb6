package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/internal/clock"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func namedUDP() testCase {
	return testCase{
		name:    "named-udp",
		truth:   "BIND's named answers 200 questions a second over UDP from a zone of 40,000 names, which another program writes anew and has named load every second. One of the threads that answer loads it, some 140 ms of one CPU, several periods' quotas long, and the questions wait. The mean use is below the limit.",
		limit:   0.4,
		causes:  []string{"tiny-limit", "burst"},
		guilty:  []string{"isc-net", "named"},
		suffers: []string{"isc-net", "named"},
		needs:   []need{{"named", "bind9"}, {"rndc", "bind9-utils"}},
		start:   startNamed,
	}
}

const namedKey = `key "truth" { algorithm hmac-sha256; secret "dHJ1dGh0cnV0aHRydXRo"; };
`

const namedConfig = namedKey + `options {
  directory "%[1]s"; pid-file "%[1]s/named.pid"; session-keyfile none;
  listen-on port %[2]s { 127.0.0.1; }; listen-on-v6 { none; };
  recursion no; dnssec-validation no;
};
controls { inet 127.0.0.1 port %[3]s allow { 127.0.0.1; } keys { "truth"; }; };
zone "shop.test" { type primary; file "shop.zone"; };
`

const rndcConfig = namedKey + `options { default-key "truth"; default-server 127.0.0.1; default-port %s; };
`

const namedNames = 40_000

// zone writes a zone with that serial number. named may still read the one before, which stays as it is.
func (s *stage) zone(serial int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "$TTL 300\n@ IN SOA ns hostmaster %d 3600 600 86400 300\n@ IN NS ns\nns IN A 127.0.0.1\n", serial)
	for i := range namedNames {
		fmt.Fprintf(&b, "cart%d IN A 10.0.%d.%d\n", i, i>>8&255, i&255)
	}
	written, err := s.file("shop.new", b.String())
	if err != nil {
		return err
	}
	return os.Rename(written, filepath.Join(s.dir, "shop.zone"))
}

func startNamed(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	_, control, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	config, err := s.file("named.conf", fmt.Sprintf(namedConfig, s.dir, port, control))
	if err != nil {
		return service{}, err
	}
	rndc, err := s.file("rndc.conf", fmt.Sprintf(rndcConfig, control))
	if err != nil {
		return service{}, err
	}
	if err := s.zone(1); err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"named", "-g", "-c", config}}); err != nil {
		return service{}, err
	}
	reload := func(ctx context.Context) {
		for serial := 2; clock.Sleep(ctx, time.Second) == nil; serial++ {
			err := s.zone(serial)
			if err == nil {
				err = s.prepare(ctx, program{args: []string{"rndc", "-c", rndc, "reload", "shop.test"}})
			}
			if err != nil && ctx.Err() == nil {
				say("named-udp: reload: %v", err)
			}
		}
	}
	question := request{Protocol: protocolDNSUDP, Addr: addr, Text: "cart#.shop.test", Keys: namedNames}
	return service{
		streams: []loadgen.Stream{{Name: "question", PerSecond: 200}}, requests: []request{question}, connections: 16, disturb: reload,
	}, s.ready(ctx, question)
}
