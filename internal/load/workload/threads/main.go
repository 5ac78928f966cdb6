package threads

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/internal/load/workload/futex"
	"github.com/unthrottle/unthrottle/internal/scenario"
)

// Command is the hidden first argument that makes this program a workload.
const Command = "__threads"

// The parent's words.
const (
	wordGo   = 'g'
	wordTell = 't'
)

// spareThreads is what the Go runtime may run beside the workload's own.
const spareThreads = 8

// environment is a workload's whole environment. A thread in a raw system call keeps
// its P, so that each thread needs one. No collection, no preemption signals (which
// would also cut sleeps short).
func environment(s Spec) []string {
	return []string{"GOMAXPROCS=" + strconv.Itoa(s.Threads+spareThreads), "GOGC=off", "GODEBUG=asyncpreemptoff=1"}
}

// sink takes what threads compute, so that no compiler drops the work.
var sink atomic.Uint64

// Main is the whole life of a workload; its result is the exit code. It is of
// use only to a process started by [Start].
func Main() int {
	if err := work(); err != nil {
		fmt.Fprintf(os.Stderr, "threads: %v (started by 'unthrottle simulate --real', not by hand)\n", err)
		return 2
	}
	return 0
}

func work() error {
	var spec Spec
	inside, err := child.Begin(&spec, &spec.Deadline)
	if err != nil {
		return err
	}
	debug.SetMaxThreads(spec.Threads + 1000)
	threads, begin, err := prepare(&spec)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(Result{}); err != nil {
		return fmt.Errorf("cannot tell its parent: %w", err)
	}
	for {
		switch word, ok := inside.Word(); {
		case !ok:
			return nil
		case word == wordGo:
			now := workload.Now()
			for i := range threads {
				threads[i].begin, threads[i].end = now, now+spec.Duration
			}
			begin.Store(1)
			futex.Wake(begin, futex.All)
		case word == wordTell:
			if err := out.Encode(collect(threads)); err != nil {
				return fmt.Errorf("cannot tell its parent: %w", err)
			}
		}
	}
}

// prepare makes all threads. They wait by a futex until begin is 1: the thread of the
// runtime that would wake waiting goroutines is held.
func prepare(spec *Spec) (threads []thread, begin *atomic.Uint32, err error) {
	threads, begin = make([]thread, spec.Threads), new(atomic.Uint32)
	var ready sync.WaitGroup
	for i := range threads {
		t := &threads[i]
		t.spec, t.index, t.chance = spec, i, rand.New(rand.NewPCG(spec.Seed, uint64(i)))
		if spec.Kind == scenario.Kernel {
			if t.call, err = newCaller(); err != nil {
				return nil, nil, err
			}
		}
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			name := spec.Name + "-" + strconv.Itoa(i+1)
			workload.SetName(name[max(0, len(name)-15):])
			ready.Done()
			for begin.Load() == 0 {
				futex.Wait(begin, 0)
			}
			t.run()
			sink.Add(t.x)
		}()
	}
	ready.Wait()
	return threads, begin, nil
}

// collect sums up what all threads have measured until the end.
func collect(threads []thread) Result {
	var r Result
	sum := newHistogram()
	longest := time.Duration(0)
	for i := range threads {
		t := &threads[i]
		longest = max(longest, t.latency.addTo(&r, sum, t.end))
		r.Rounds += t.rounds.Load()
		if r.Failed == "" {
			r.Failed = t.failure()
		}
	}
	r.quantiles(sum, longest)
	return r
}
