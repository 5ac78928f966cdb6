package live

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
)

const ms = time.Millisecond

// services have the shape of real ones as they were recorded: who forks whom, who wakes whom, how long the runs are.
var services = map[string]struct {
	cause  diagnose.Cause
	guilty string // as the verdict names it
	victim string // a pool that the verdict names; "": none
	advice string // the setting in the only advice; "": there is none
	build  func() *rt.Schedule
}{
	"redis saves in a child": {diagnose.Pool, "`redis-server (child)`", "`redis-server`", "", func() *rt.Schedule {
		s := rt.New(2).Limit(50*ms, 100*ms).Process("redis-server")
		server, client := s.Main(), s.Outsider("redis-benchmark")
		s.Client(client, server)
		s.Repeat(400, 5*ms, func(at time.Duration) { s.Work(at, 300*time.Microsecond, server) })
		for i := range 4 {
			s.Work(time.Duration(i)*500*ms, 400*ms, s.Child("redis-server"))
		}
		return s
	}},
	"a report of PostgreSQL beside look-ups": {diagnose.Pool, "`postgres: parallel worker`", "`postgres`",
		"max_parallel_workers_per_gather", func() *rt.Schedule {
			s := rt.New(2).Limit(100*ms, 100*ms)
			client := s.Outsider("pgbench")
			var sessions []uint32
			for range 4 {
				s.Process("postgres").Title("postgres: main: shop shop 127.0.0.1(5000) idle")
				sessions = append(sessions, s.Main())
			}
			s.Process("postgres").Title("postgres: main: shop shop 127.0.0.1(5009) SELECT")
			leader := s.Main()
			s.Process("postgres").Title("postgres: main: parallel worker for PID 1500")
			first := s.Main()
			s.Process("postgres").Title("postgres: main: checkpointer")
			s.Client(client, append(sessions, leader)...)
			s.Repeat(400, 5*ms, func(at time.Duration) { s.Work(at, 300*time.Microsecond, sessions[int(at/(5*ms))%4]) })
			s.Repeat(10, 200*ms, func(at time.Duration) { s.Work(at, 60*ms, leader) })
			s.Work(0, 30*ms, first)
			s.Add(recording.Event{AtNS: (190 * ms).Nanoseconds(), Kind: recording.Exit, Thread: first})
			for i := range 10 {
				s.Work(time.Duration(i)*200*ms, 70*ms, s.Child("postgres"))
				s.Work(time.Duration(i)*200*ms, 70*ms, s.Child("postgres"))
			}
			return s
		}},
	"Node's event loop beside libuv's workers": {diagnose.Pool, "`node (workers)`", "`node`", "UV_THREADPOOL_SIZE", func() *rt.Schedule {
		s := rt.New(2).Limit(80*ms, 100*ms)
		tids := sameName(s.Process("node"), "node", 4)
		s.Header().Processes = []recording.Process{
			{TGID: s.Main(), Exe: "/usr/bin/node", Cmdline: []string{"node", "app.js"}, Libraries: []string{}}}
		s.Client(s.Outsider("wrk"), s.Main())
		s.WokenBy(s.Main(), tids...)
		s.Repeat(400, 5*ms, func(at time.Duration) { s.Work(at, 300*time.Microsecond, s.Main()) })
		s.Repeat(10, 200*ms, func(at time.Duration) { s.Work(at, 28*ms, tids...) })
		return s
	}},
	"a child that is another program": {diagnose.Pool, "`gzip`", "`python3`", "", func() *rt.Schedule {
		s := rt.New(2).Limit(60*ms, 100*ms).Process("python3")
		s.Client(s.Outsider("curl"), s.Main())
		s.Repeat(200, 10*ms, func(at time.Duration) { s.Work(at, 500*time.Microsecond, s.Main()) })
		for i := range 4 {
			s.Work(time.Duration(i)*500*ms, 140*ms, s.Child("gzip"))
		}
		return s
	}},
	"nginx hands pages to PHP": {diagnose.Burst, "`php-fpm*`", "", "pm.max_children", func() *rt.Schedule {
		s := rt.New(2).Limit(80*ms, 100*ms)
		s.Process("nginx").Title("nginx: worker process")
		nginx := s.Main()
		s.Process("php-fpm8.2").Title("php-fpm: master process (/etc/php.conf)")
		var php []uint32
		for range 8 {
			s.Process("php-fpm8.2").Title("php-fpm: pool www")
			s.Header().Processes[len(s.Header().Processes)-1].Exe = "/usr/sbin/php-fpm8.2"
			php = append(php, s.Main())
		}
		s.WokenBy(nginx, php...)
		s.WokenBy(php[0], nginx)
		s.Repeat(10, 200*ms, func(at time.Duration) {
			s.Work(at, ms, nginx)
			s.Work(at+ms, 12*ms, php...)
			// Each answer wakes nginx.
			for i := range 8 {
				s.Work(at+time.Duration(20+10*i)*ms, 500*time.Microsecond, nginx)
			}
		})
		return s
	}},
	"gunicorn's workers need the whole limit": {diagnose.Shortage, "`gunicorn`", "", "--workers", func() *rt.Schedule {
		s := rt.New(2).Limit(50*ms, 100*ms)
		client := s.Outsider("wrk")
		for i := range 4 {
			s.Process("gunicorn")
			s.Header().Processes = append(s.Header().Processes, recording.Process{TGID: s.Main(), Exe: "/usr/bin/python3.11",
				Cmdline: []string{"/usr/bin/python3", "/usr/bin/gunicorn", "--workers", "4", "hash:application"}, Libraries: []string{}})
			s.Client(client, s.Main())
			s.Repeat(100, 20*ms, func(at time.Duration) { s.Work(at+time.Duration(5*i)*ms, 3*ms, s.Main()) })
		}
		return s
	}},
	"a build": {diagnose.Shortage, "`cc*`", "", "", func() *rt.Schedule {
		s := rt.New(2).Limit(100*ms, 100*ms).Process("make")
		build := s.Main()
		for i := range 60 {
			cc := s.Child("cc1")
			s.Work(time.Duration(i)*30*ms, 60*ms, cc)
			s.WokenBy(cc, build)
			s.Work(time.Duration(i)*30*ms, ms, build)
		}
		return s
	}},
	"memcached, healthy, and its client on the same CPU": {diagnose.None, "", "", "", func() *rt.Schedule {
		s := rt.New(1).Limit(100*ms, 100*ms).Process("memcached")
		w := s.Threads("mc-worker", 4)
		s.Header().Processes = []recording.Process{
			{TGID: s.Main(), Exe: "/usr/bin/memcached", Cmdline: []string{"memcached", "-t", "4"}, Libraries: []string{}}}
		client := s.Outsider("memtier")
		s.Client(client, w...)
		s.Repeat(200, 10*ms, func(at time.Duration) {
			s.Occupy(at, at+3*ms, 0, client)
			s.Work(at+ms, 100*time.Microsecond, w...)
		})
		return s
	}},
	"a pod whose sidecar spends its quota": {diagnose.Ancestor, "/parent/sidecar", "", "", func() *rt.Schedule {
		s := rt.New(2).ParentLimit(80*ms, 100*ms).Process("memcached")
		w := s.Threads("mc-worker", 4)
		s.Header().Processes = []recording.Process{
			{TGID: s.Main(), Exe: "/usr/bin/memcached", Cmdline: []string{"memcached", "-t", "4"}, Libraries: []string{}}}
		s.Client(s.Outsider("memtier"), w...)
		sidecar := s.Neighbour("/parent/sidecar", "/parent/sidecar", nil, nil)
		s.Repeat(20, 100*ms, func(at time.Duration) {
			s.Occupy(at, at+40*ms, 0, sidecar)
			s.Occupy(at, at+40*ms, 1, sidecar)
		})
		s.Repeat(400, 5*ms, func(at time.Duration) { s.Work(at, 2*ms, w...) })
		return s
	}},
}

// sameName adds n threads of one name to the process that Process began last.
func sameName(s *rt.Schedule, name string, n int) []uint32 {
	tids := s.Threads(name, n)
	h := s.Header()
	for i := range h.Threads[len(h.Threads)-n:] {
		h.Threads[len(h.Threads)-n+i].Comm = name
	}
	return tids
}

// Cause, guilty part and advice of services as they were recorded for real.
func TestServices(t *testing.T) {
	for name, c := range services {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			r := c.build().Run(2 * time.Second)
			if err := r.Write(&file); err != nil {
				t.Fatal(err)
			}
			e, err := Recording(bytes.NewReader(file.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(e.Verdict)
			if e.Cause != c.cause || !strings.Contains(e.Verdict, c.guilty) || !strings.Contains(e.Verdict, c.victim) {
				t.Errorf("%s, want %s by %s (and %s): %+v", e.Cause, c.cause, c.guilty, c.victim, e.Causes)
			}
			advised := ""
			for _, p := range e.Pools {
				t.Logf("%s (%s): %v of CPU time, %d threads: %s", p.Name, p.Process, p.CPU, p.Threads, p.Advice)
				advised += p.Advice
			}
			if !strings.Contains(advised, c.advice) || c.advice == "" && advised != "" {
				t.Errorf("advice %q, want one of %q", advised, c.advice)
			}
		})
	}
}
