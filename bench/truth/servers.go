package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

// Servers of one kind of requests.

const prometheusConfig = `global: {scrape_interval: 1s}
scrape_configs: [{job_name: self, static_configs: [{targets: ["%s"]}]}]
`

func prometheusQueries() testCase {
	return testCase{
		name:    "prometheus-queries",
		truth:   "Prometheus answers six heavy queries at once, twice a second, some 20 ms each, beside 60 small requests a second. Goroutines run on all CPUs and spend the quota early; the mean use is low.",
		limit:   0.5,
		causes:  []string{"burst"},
		guilty:  []string{"prometheus"},
		suffers: []string{"prometheus"},
		needs:   []need{{"prometheus", "prometheus"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, _, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			config, err := s.file("prometheus.yml", fmt.Sprintf(prometheusConfig, addr))
			if err != nil {
				return service{}, err
			}
			args := []string{"prometheus", "--config.file=" + config, "--storage.tsdb.path=" + s.dir + "/data", "--web.listen-address=" + addr}
			if err := s.start(program{args: args}); err != nil {
				return service{}, err
			}
			small := request{Protocol: protocolHTTP, Text: "http://" + addr + "/-/ready"}
			heavy := request{Protocol: protocolHTTP, Text: "http://" + addr + "/api/v1/query?query=sum_over_time((vector(1)*vector(2))%5B12h:1s%5D)"}
			return service{
				streams:  []loadgen.Stream{{Name: "small", PerSecond: 60}, {Name: "query", PerSecond: 12, Burst: 6, Background: true}},
				requests: []request{small, heavy}, connections: 16,
			}, s.ready(ctx, small)
		},
	}
}

const dovecotConfig = `base_dir = %[1]s/run
state_dir = %[1]s/run
log_path = %[1]s/dovecot.log
ssl = no
disable_plaintext_auth = no
protocols = imap
listen = 127.0.0.1
mail_location = maildir:%[1]s/mail
default_internal_user = dovecot
default_login_user = dovenull
first_valid_uid = 0
passdb {
  driver = passwd-file
  args = %[1]s/passwd
}
userdb {
  driver = static
  args = uid=0 gid=0 home=%[1]s
}
service imap-login {
  inet_listener imap {
    port = %[2]s
  }
  service_count = 0
  process_min_avail = 2
}
service anvil {
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
`

// dovecotPasswd has the password "secret" by bcrypt with 2^8 rounds.
const dovecotPasswd = "user:{BLF-CRYPT}$2y$08$Kp5jLR9ShcGR5fid5UrKQ.B3fZERZF3Ys9V1j.ip1uqOl86HNq9V2\n"

func dovecotLogins() testCase {
	return testCase{
		name:    "dovecot-logins",
		truth:   "Dovecot takes six logins over IMAP at once, once a second. Its one auth process checks their bcrypt hashes, some 30 ms each, one after the other: one thread, several periods' quotas long. The mean use is below the limit.",
		limit:   0.5,
		causes:  []string{"tiny-limit", "burst"},
		guilty:  []string{"auth"},
		suffers: []string{"auth", "imap"},
		needs:   []need{{"dovecot", "dovecot-imapd"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			config, err := s.file("dovecot.conf", fmt.Sprintf(dovecotConfig, s.dir, port))
			if err != nil {
				return service{}, err
			}
			if _, err := s.file("passwd", dovecotPasswd); err != nil {
				return service{}, err
			}
			if err := s.start(program{args: []string{"dovecot", "-F", "-c", config}}); err != nil {
				return service{}, err
			}
			login := request{Protocol: protocolIMAP, Addr: addr, Text: "a LOGIN user secret"}
			return service{streams: []loadgen.Stream{{Name: "login", PerSecond: 6, Burst: 6}}, requests: []request{login}}, s.ready(ctx, login)
		},
	}
}

//go:embed files/basket.yaws
var basketYaws string

const yawsConfig = `logdir = %[1]s
auth_log = false
trace = false
<server localhost>
  port = %[2]s
  listen = 127.0.0.1
  docroot = %[1]s
  access_log = false
</server>
`

func yawsBaskets() testCase {
	return testCase{
		name:    "yaws-baskets",
		truth:   "Yaws, a server in Erlang, answers eight pages at once, twice a second, some 15 ms each. The schedulers of Erlang's machine run on all CPUs and spend the quota early; the mean use is low.",
		limit:   0.5,
		causes:  []string{"burst"},
		guilty:  []string{"scheduler", "sched", "beam"},
		suffers: []string{"scheduler", "sched", "beam"},
		needs:   []need{{"yaws", "yaws"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			if _, err := s.file("basket.yaws", basketYaws); err != nil {
				return service{}, err
			}
			config, err := s.file("yaws.conf", fmt.Sprintf(yawsConfig, s.dir, port))
			if err != nil {
				return service{}, err
			}
			if err := s.start(program{args: []string{"yaws", "--conf", config, "--id", "truth", "--erlarg", "-noinput"}}); err != nil {
				return service{}, err
			}
			page := request{Protocol: protocolHTTP, Text: "http://" + addr + "/basket.yaws"}
			return service{streams: []loadgen.Stream{{Name: "page", PerSecond: 16, Burst: 8}}, requests: []request{page}, connections: 16}, s.ready(ctx, page)
		},
	}
}

const squidConfig = `http_port %[2]s accel defaultsite=localhost no-vhost
cache_peer 127.0.0.1 parent %[3]s 0 no-query originserver
acl all_hosts src all
http_access allow all_hosts
cache deny all
access_log none
cache_log %[1]s/cache.log
cache_store_log none
pid_filename %[1]s/squid.pid
coredump_dir %[1]s
cache_effective_user proxy
netdb_filename none
pinger_enable off
`

func squidHealthy() testCase {
	return testCase{
		name:    "squid-healthy",
		truth:   "squid passes 150 requests a second on to nginx in another cgroup, within a limit of which it uses a fifth. Nothing is wrong.",
		limit:   1,
		healthy: true,
		needs:   []need{{"squid", "squid"}, {"nginx", "nginx-light"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			page, originPort, err := s.origin(ctx, 2000)
			if err != nil {
				return service{}, err
			}
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			config, err := s.file("squid.conf", fmt.Sprintf(squidConfig, s.dir, "127.0.0.1:"+port, originPort))
			if err != nil {
				return service{}, err
			}
			if err := os.Chmod(s.dir, 0o777); err != nil { // its process runs as another user
				return service{}, err
			}
			if err := s.start(program{args: []string{"squid", "-N", "-f", config}}); err != nil {
				return service{}, err
			}
			page.Text = "http://" + addr + "/page.html"
			return service{streams: []loadgen.Stream{{Name: "page", PerSecond: 150}}, requests: []request{page}, connections: 16}, s.ready(ctx, page)
		},
	}
}

func natsHealthy() testCase {
	return testCase{
		name:    "nats-healthy",
		truth:   "NATS takes 1,000 messages a second within a limit of which it uses a tenth. Nothing is wrong.",
		limit:   0.8,
		healthy: true,
		needs:   []need{{"nats-server", "nats-server"}},
		start: func(ctx context.Context, s *stage) (service, error) {
			addr, port, err := freeAddr()
			if err != nil {
				return service{}, err
			}
			if err := s.start(program{args: []string{"nats-server", "-a", "127.0.0.1", "-p", port}}); err != nil {
				return service{}, err
			}
			message := request{Protocol: protocolNATS, Addr: addr, Text: "20.5 degrees"}
			return service{streams: []loadgen.Stream{{Name: "message", PerSecond: 1000}}, requests: []request{message}}, s.ready(ctx, message)
		},
	}
}
