package main

import (
	"context"
	_ "embed"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

//go:embed files/hash.py
var hashPy string

// hashIterations of pbkdf2 take about 9 ms.
const hashIterations = "HASH_ITERATIONS=24000"

func gunicornHash() testCase {
	return testCase{
		name:    "gunicorn-pbkdf2",
		truth:   "gunicorn's four worker processes hash passwords, 45 a second of some 9 ms each, by chance in time. It needs nearly its whole limit, and more at times.",
		limit:   0.5,
		causes:  []string{"shortage", "burst"},
		guilty:  []string{"gunicorn"},
		suffers: []string{"gunicorn"},
		needs:   []need{{"gunicorn", "gunicorn"}},
		start:   startGunicorn,
	}
}

func startGunicorn(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	if _, err := s.file("hash.py", hashPy); err != nil {
		return service{}, err
	}
	args := []string{"gunicorn", "--workers", "4", "--bind", addr, "--worker-tmp-dir", s.dir, "--chdir", s.dir, "hash:application"}
	if err := s.start(program{args: args, env: []string{hashIterations}}); err != nil {
		return service{}, err
	}
	login := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	return service{
		streams: []loadgen.Stream{{Name: "login", PerSecond: 45}}, requests: []request{login}, connections: 32,
	}, s.ready(ctx, login)
}

func uwsgiHealthy() testCase {
	return testCase{
		name:    "uwsgi-healthy",
		truth:   "uWSGI's two processes answer 100 small requests a second within a limit of which they use a tenth. Nothing is wrong.",
		limit:   0.8,
		healthy: true,
		needs:   uwsgiNeeds(),
		start: func(ctx context.Context, s *stage) (service, error) {
			return startUwsgi(ctx, s, 100, "HASH_ITERATIONS=1000")
		},
	}
}

func uwsgiNeighbour() testCase {
	return testCase{
		name:    "uwsgi-neighbour",
		truth:   "uWSGI's two processes hash passwords, 60 a second of some 3 ms each, far below their limit, with 256 CPU shares. In another cgroup xz keeps both CPUs busy, with 1,024 shares. No quota stops uWSGI: it waits for its neighbour.",
		limit:   1,
		causes:  []string{"neighbours"},
		guilty:  []string{"beside", "xz"},
		suffers: []string{"uwsgi"},
		needs:   append(uwsgiNeeds(), need{"xz", "xz-utils"}),
		start: func(ctx context.Context, s *stage) (service, error) {
			of, err := startUwsgi(ctx, s, 60, "HASH_ITERATIONS=8000")
			if err != nil {
				return of, err
			}
			return of, s.neighbour(256, "xz -T 2 --block-size=1MiB -c /dev/zero >/dev/null")
		},
	}
}

func uwsgiNeeds() []need {
	return []need{{"uwsgi", "uwsgi-core"}, {"/usr/lib/uwsgi/plugins/python3_plugin.so", "uwsgi-plugin-python3"}}
}

func startUwsgi(ctx context.Context, s *stage, perSecond float64, setting string) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("hash.py", hashPy)
	if err != nil {
		return service{}, err
	}
	args := []string{"uwsgi", "--plugin", "python3", "--http-socket", addr, "--processes", "2", "--master", "--disable-logging", "--wsgi-file", script}
	if err := s.start(program{args: args, env: []string{setting}}); err != nil {
		return service{}, err
	}
	login := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	return service{
		streams: []loadgen.Stream{{Name: "request", PerSecond: perSecond}}, requests: []request{login}, connections: 16,
	}, s.ready(ctx, login)
}

//go:embed files/threads.py
var threadsPy string

func pythonReport() testCase {
	return testCase{
		name:    "python-report",
		truth:   "Python's http.server answers 80 small requests a second in threads, beside a child process that compresses an export twice a second. The child spends the quota in bursts.",
		limit:   0.6,
		causes:  []string{"pool", "burst"},
		guilty:  []string{"gzip"},
		suffers: []string{"python"},
		needs:   []need{{"/usr/bin/python3", "python3"}},
		start:   startPythonReport,
	}
}

func startPythonReport(ctx context.Context, s *stage) (service, error) {
	addr, port, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	script, err := s.file("threads.py", threadsPy)
	if err != nil {
		return service{}, err
	}
	if err := s.start(program{args: []string{"/usr/bin/python3", script, port}}); err != nil {
		return service{}, err
	}
	small := request{Protocol: protocolHTTP, Text: "http://" + addr + "/"}
	export := request{Protocol: protocolHTTP, Text: "http://" + addr + "/export"}
	return service{
		streams:  []loadgen.Stream{{Name: "small", PerSecond: 80}},
		requests: []request{small}, connections: 16,
		disturb: func(ctx context.Context) { again(ctx, export, 500*time.Millisecond) },
	}, s.ready(ctx, small)
}
