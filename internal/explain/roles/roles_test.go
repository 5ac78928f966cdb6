package roles

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	rt "github.com/unthrottle/unthrottle/internal/see/recording/recordingtest"
	"github.com/unthrottle/unthrottle/internal/see/schedule"
)

const (
	ms = time.Millisecond
	us = time.Microsecond
)

// pools are the pools of a recording's threads with work, sorted.
func pools(r recording.Recording) []string {
	names := threadpool.NewNames(64)
	s := NewScan(&r.Header, names.Of)
	read := schedule.New(&r.Header, s)
	for i := range r.Events {
		read.Add(&r.Events[i])
	}
	found := s.Finish(r.Footer)
	all := map[string]bool{}
	for _, p := range s.order {
		if p.total > 0 {
			all[found.Pool(p.tid, p.pool)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// same lets the threads of a process have its name.
func same(s *rt.Schedule, tids []uint32, name string) {
	for i := range s.Header().Threads {
		if t := &s.Header().Threads[i]; slices.Contains(tids, t.TID) {
			t.Comm = name
		}
	}
}

func TestRoles(t *testing.T) {
	for name, c := range map[string]struct {
		want  string
		build func(s *rt.Schedule)
	}{
		"a child with longer runs": {"redis-server, redis-server (child)", func(s *rt.Schedule) {
			s.Process("redis-server")
			s.Repeat(200, 10*ms, func(at time.Duration) { s.Work(at, 200*us, s.Main()) })
			s.Work(0, 300*ms, s.Child("redis-server"))
		}},
		"the same, which tells its title": {"redis-rdb-bgsave, redis-server", func(s *rt.Schedule) {
			s.Process("redis-server")
			s.Repeat(200, 10*ms, func(at time.Duration) { s.Work(at, 200*us, s.Main()) })
			s.Process("redis-server").Title("redis-rdb-bgsave 0.0.0.0:6379")
			s.Work(0, 300*ms, s.Main())
		}},
		"new workers that do what the old ones do, after a long start": {"php-fpm", func(s *rt.Schedule) {
			s.Process("php-fpm")
			old, young := s.Main(), s.Child("php-fpm")
			s.Work(0, 60*ms, young)
			s.Repeat(20, 100*ms, func(at time.Duration) { s.Work(at, 3*ms, old, young) })
		}},
		"a program whose processes are all short": {"cc*", func(s *rt.Schedule) {
			s.Process("cc1")
			s.Work(0, 2*ms, s.Main())
			for i := range 20 {
				s.Work(time.Duration(i)*50*ms, time.Duration(1+20*(i%2))*ms, s.Child("cc1"))
			}
		}},
		"an event loop and its workers": {"node, node (workers)", func(s *rt.Schedule) {
			s.Process("node")
			w := s.Threads("node", 4)
			same(s, w, "node")
			s.WokenBy(s.Main(), w...)
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 500*us, s.Main()) })
			s.Repeat(10, 100*ms, func(at time.Duration) { s.Work(at, 3*ms, w...) })
		}},
		"a Go program, whose threads all run anything": {"app", func(s *rt.Schedule) {
			s.Process("app")
			w := s.Threads("app", 4)
			same(s, w, "app")
			s.Header().Processes = []recording.Process{{TGID: s.Main(), Go: "go1.26"}}
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 100*us, s.Main(), w[0]) })
			s.Repeat(10, 100*ms, func(at time.Duration) { s.Work(at, 20*ms, w[1:]...) })
		}},
		"threads of one queue": {"http-worker-*", func(s *rt.Schedule) {
			s.Process("java")
			w := s.Threads("http-worker", 6)
			s.Repeat(200, 10*ms, func(at time.Duration) {
				i := int(at / (10 * ms))
				s.Work(at, time.Duration(1+i%7)*ms, w[i%len(w)])
			})
		}},
		"a session that reports and one that looks up": {"connection-*, connection-* (long runs)", func(s *rt.Schedule) {
			s.Process("mysqld")
			w := s.Threads("connection", 2)
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 200*us, w[0]) })
			s.Repeat(4, 250*ms, func(at time.Duration) { s.Work(at, 100*ms, w[1]) })
		}},
		"clients reach the longer runs": {"worker-*, worker-* (short runs)", func(s *rt.Schedule) {
			s.Process("app")
			w := s.Threads("worker", 2)
			s.Client(recording.Kernel, w[0])
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 300*us, w[0]) })
			s.Repeat(40, 25*ms, func(at time.Duration) { s.Work(at, 5*ms, w[1]) })
		}},
		"PostgreSQL's processes": {"postgres, postgres: autovacuum worker, postgres: parallel worker", func(s *rt.Schedule) {
			s.Process("postgres").Title("postgres: 15/main: shop shop 127.0.0.1(5000) idle")
			session := s.Main()
			s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 300*us, session) })
			s.Process("postgres").Title("postgres: 15/main: autovacuum worker shop")
			s.Work(0, 200*ms, s.Main())
			s.Process("postgres").Title("postgres: parallel worker for PID 7")
			first := s.Main()
			s.Work(0, 50*ms, first)
			s.Add(recording.Event{AtNS: int64(400 * ms), Kind: recording.Exit, Thread: first})
			for i := range 4 {
				s.Work(time.Duration(i)*200*ms, 100*ms, s.Child("postgres"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := rt.New(4)
			c.build(s)
			if got := strings.Join(pools(s.Run(2*time.Second)), ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A title that a footer tells of a process that began during the recording counts as one of the header does.
func TestTitlesOfBirths(t *testing.T) {
	s := rt.New(2).Process("postgres").Title("postgres: shop shop 127.0.0.1(5000) idle")
	s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 300*us, s.Main()) })
	main := s.Main()
	worker := s.Child("postgres")
	s.Work(0, 100*ms, worker)
	s.Repeat(100, 10*ms, func(at time.Duration) { s.Work(at, 300*us, main) })
	r := s.Run(time.Second)
	r.Footer.Processes = []recording.Process{{TGID: worker, Comm: "postgres", Cmdline: []string{"postgres: parallel worker for PID 1100 "}}}
	if got := pools(r); !slices.Equal(got, []string{"postgres", "postgres: parallel worker"}) {
		t.Errorf("%q", got)
	}
}

func TestTitle(t *testing.T) {
	for said, want := range map[string]string{
		"postgres: checkpointer ":                                 "postgres: checkpointer",
		"postgres: 17/main: io worker 0":                          "postgres: io worker",
		"postgres: shop shop 10.0.0.7(40152) SELECT":              "",
		"postgres: logical replication launcher ":                 "postgres: logical replication launcher",
		"nginx: master process /usr/sbin/nginx -g daemon on":      "nginx: master",
		"nginx: worker process":                                   "",
		"php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)": "php-fpm: master",
		"gunicorn: master [shop]":                                 "gunicorn: master",
		"valkey-aof-rewrite 0.0.0.0:6379":                         "valkey-aof-rewrite",
		"puma 5.6.5 (tcp://0.0.0.0:9292) [shop]":                  "",
		"unicorn master -c config/unicorn.rb":                     "unicorn: master",
	} {
		if got, known := title([]string{said}); got != want || !known {
			t.Errorf("%q: %q, %v", said, got, known)
		}
	}
	for _, said := range [][]string{nil, {"redis-server *:6379"}, {"/usr/bin/app"}} {
		if got, known := title(said); known {
			t.Errorf("%q: %q", said, got)
		}
	}
}

// Events that contradict each other and threads without end take bounded memory.
func TestScanIsBounded(t *testing.T) {
	s := NewScan(&recording.Header{}, func(uint32, string) string { return "x" })
	read := schedule.New(&recording.Header{}, s)
	for i := range uint32(maxParts + 1000) {
		read.Add(&recording.Event{Kind: recording.Name, Thread: i, TGID: i, Text: "x"})
		read.Add(&recording.Event{Kind: recording.Wakeup, Thread: i, Waker: i + 1, Flags: recording.Flags(i % 8)})
		read.Add(&recording.Event{Kind: recording.Switch, Thread: i + 1, NextThread: i, CPU: int32(i % 3)})
		if i%2 == 0 {
			read.Add(&recording.Event{Kind: recording.Exit, Thread: i})
		}
	}
	if len(s.order) > maxParts || len(s.threads) > schedule.MaxThreads || len(s.processes) > maxProcesses {
		t.Errorf("%d parts, %d threads, %d processes", len(s.order), len(s.threads), len(s.processes))
	}
	if s.Finish(recording.Footer{}) == nil {
		t.Error("no roles")
	}
}
