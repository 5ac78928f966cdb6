package main

import (
	"context"
	_ "embed"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/accounts.psgi
var accountsPsgi string

func starmanLogins() testCase {
	return testCase{
		name:    "starman-logins",
		truth:   "Starman, a Perl server, answers 150 small pages a second, beside six logins at once, twice a second, some 15 ms each, that hash a password. All run in the same eight worker processes. The logins run on all CPUs and spend the quota early, and the pages wait; the mean use is below the limit.",
		limit:   0.6,
		causes:  []string{"burst"},
		guilty:  []string{"starman"},
		suffers: []string{"starman"},
		needs:   []need{{"starman", "starman"}, {"/usr/share/perl5/Crypt/PBKDF2.pm", "libcrypt-pbkdf2-perl"}},
		start:   startStarman,
	}
}

func startStarman(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("accounts.psgi", accountsPsgi)
	if err != nil {
		return service{}, err
	}
	// A client that keeps a connection keeps a worker.
	args := []string{"starman", "--listen", addr, "--workers", "8", "--disable-keepalive", "--env", "deployment", script}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	login := request{Protocol: protocolHTTP, Text: "http://" + addr + "/login"}
	return service{
		streams:  []loadgen.Stream{{Name: "page", PerSecond: 150}, {Name: "login", PerSecond: 12, Burst: 6, Background: true}},
		requests: []request{page, login}, connections: 32,
	}, s.ready(ctx, login)
}
