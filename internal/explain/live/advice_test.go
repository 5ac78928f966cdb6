package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/see/recording"
)

func TestAdvice(t *testing.T) {
	h := &recording.Header{CPUsAllowed: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), Processes: []recording.Process{
		{TGID: 10, Exe: "/usr/bin/java", Cmdline: []string{"java"}, Libraries: []string{"/usr/lib/jvm/lib/server/libjvm.so"}},
		{TGID: 20, Exe: "/usr/bin/app", Cmdline: []string{"app"}, Libraries: []string{}},
	}, Threads: []recording.Thread{{TID: 10, TGID: 10, Comm: "java"}, {TID: 20, TGID: 20, Comm: "app"}}}
	n := newNames(facts{})
	gc := n.pool(11, 10, "GC Thread#11")
	nio := n.pool(11, 10, "nioEventLoopGro")
	own := n.pool(21, 20, "my-own-3")
	quick, slow := &diagnose.Quantiles{Count: 5000}, &diagnose.Quantiles{Count: 100}
	e := diagnose.Explanation{LimitCPUs: new(2.0), Cause: diagnose.Burst, Pools: []diagnose.PoolUse{
		{Name: gc, Process: "java", Threads: 8, Working: 8, Widest: 8, CPUThrottled: new(5 * time.Second)},
		{Name: nio, Process: "java", Threads: 16, Working: 16, Widest: 9, CPU: time.Second, Delay: slow,
			CPUThrottled: new(5 * time.Second)},
		{Name: nio, Process: "java", Threads: 16, Working: 16, Widest: 9, CPU: time.Second, Delay: quick, CPUThrottled: new(time.Second)},
		{Name: own, Process: "app", Threads: 30, Widest: 8},
		{Name: "never seen", Threads: 1},
	}}
	advise(&e, threadpool.Known(), n, processesOf(h, nil, nil), h.CPUsAllowed.Size())
	for i, want := range []struct{ setting, advice string }{
		{"-XX:ParallelGCThreads", "set -XX:ParallelGCThreads to 2"},
		{"io.netty.eventLoopThreads", "eventLoopThreads to 2"}, {"io.netty.eventLoopThreads", ""}, {"", ""}, {"", ""},
	} {
		p := e.Pools[i]
		if !strings.Contains(p.Setting, want.setting) || (want.setting == "") != (p.Library == "") ||
			!strings.Contains(p.Advice, want.advice) {
			t.Errorf("%s: %q %q: %s", p.Name, p.Library, p.Setting, p.Advice)
		}
	}
	if e.Pools[2].Advice != "" {
		t.Errorf("a pool with a tenth of the quota is advised: %s", e.Pools[2].Advice)
	}
	if e.Pools[0].OnIOThread || !e.Pools[1].OnIOThread || e.Pools[2].OnIOThread {
		t.Error("10 ms of CPU time per run on an event loop is application work; 0.2 ms is not, nor is a collector's")
	}
}

// Threads have the names that their process gave them, and a pool has the class of its threads, if it is one.
func TestWhatProcessesSayOfTheirThreads(t *testing.T) {
	h := &recording.Header{Threads: []recording.Thread{
		{TID: 10, TGID: 10, Comm: "elasticsearch[n"}, {TID: 11, TGID: 10, Comm: "elasticsearch[n"},
		{TID: 12, TGID: 10, Comm: "elasticsearch[n"}, {TID: 13, TGID: 10, Comm: "mixed-1"}, {TID: 14, TGID: 10, Comm: "mixed-2"},
	}}
	budget := &threadpool.Budget{Paced: true, Permits: map[string]int{"app": 2, "root": 7}}
	a := newAnalysis(h, facts{said: said{
		names:   map[uint32]string{10: "elasticsearch[node-1][search][T#1]", 11: "elasticsearch[node-1][write][T#1]"},
		classes: map[uint32]string{10: "app", 11: "background", 13: "app", 14: "io"}},
		processes: map[uint32]threadpool.Process{10: {TGID: 10, Comm: "java", Budget: budget}}})
	for _, thread := range a.header.Threads {
		pool := a.names.pool(thread.TID, thread.TGID, thread.Comm)
		want := map[uint32]string{10: "app", 11: "background"}[thread.TID]
		if got := a.names.class[pool]; thread.TID < 13 && got != want {
			t.Errorf("%s: class %q, want %q", pool, got, want)
		}
	}
	if got := a.names.class["mixed-*"]; got != "" {
		t.Errorf("a pool of two classes: %q", got)
	}
	all := budgets(a.known.processes)
	if len(all) != 1 || all[0].TGID != 10 || all[0].Process != "java" || len(all[0].Permits) != 1 || !all[0].Paced {
		t.Errorf("%+v", all)
	}
}

// A setting that sizes those who wait too is not advised: the pool of a database's connections of both kinds.
func TestNoAdviceForASharedSetting(t *testing.T) {
	h := &recording.Header{CPUsAllowed: cpuset.New(0, 1, 2, 3), Processes: []recording.Process{
		{TGID: 10, Exe: "/usr/bin/java", Cmdline: []string{"java"}, Libraries: []string{"/usr/lib/jvm/lib/server/libjvm.so"}},
		{TGID: 20, Exe: "/usr/bin/java", Cmdline: []string{"java"}, Libraries: []string{"/usr/lib/jvm/lib/server/libjvm.so"}},
	}}
	const long, short = "GC Thread#* (long runs)", "GC Thread#*"
	for name, test := range map[string]struct {
		process string // of the short runs
		advised bool
	}{"of one process": {"java", false}, "of another": {"other", true}} {
		n := newNames(facts{})
		n.first[long] = []thread{{10, "GC Thread#11"}}
		n.first[short] = []thread{{20, "GC Thread#1"}}
		e := diagnose.Explanation{LimitCPUs: new(2.0), Cause: diagnose.Pool, Pools: []diagnose.PoolUse{
			{Name: long, Process: "java", Threads: 8, Working: 8, Widest: 8, CPUThrottled: new(5 * time.Second)},
			{Name: short, Process: test.process, Threads: 8, Working: 8, Widest: 8, CPUThrottled: new(time.Second)},
		}}
		advise(&e, threadpool.Known(), n, processesOf(h, nil, nil), h.CPUsAllowed.Size())
		if got := e.Pools[0].Advice != ""; got != test.advised {
			t.Errorf("%s: %q", name, e.Pools[0].Advice)
		}
	}
}

// Two processes with pools of one name: each gets the thread of its own.
func TestNamesKeepProcessesApart(t *testing.T) {
	n := newNames(facts{})
	a, b := n.pool(1, 1, "worker-1"), n.pool(2, 2, "worker-7")
	if a != b {
		t.Fatalf("%q, %q", a, b)
	}
	processes := map[uint32]threadpool.Process{1: {Comm: "one"}, 2: {Exe: "/bin/two"}}
	for process, want := range map[string]string{"one": "worker-1", "two": "worker-7", "three": "worker-1", "": "worker-1"} {
		if got, ok := n.of(diagnose.PoolUse{Name: a, Process: process}, processes); !ok || got.comm != want {
			t.Errorf("%q: %q", process, got.comm)
		}
	}
}

// A process that renames its threads without end does not grow what is remembered.
func TestNamesAreBounded(t *testing.T) {
	n := newNames(facts{})
	for i := range 200_000 {
		n.pool(1, uint32(i%2000), fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26))
	}
	kept := 0
	for _, threads := range n.first {
		kept += len(threads)
	}
	if len(n.first) > maxNamed || kept > maxNamed*maxNamedOf {
		t.Errorf("%d pools, %d threads", len(n.first), kept)
	}
}
