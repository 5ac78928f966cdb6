package workload

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// ChildMain is the whole life of a child; its result is the exit code. It is of
// use only to a process started by [Start].
func ChildMain() int {
	if err := live(); err != nil {
		fmt.Fprintf(os.Stderr, "child: %v (started by 'unthrottle demo', not by hand)\n", err)
		return 2
	}
	return 0
}

func live() error {
	var spec Spec
	inside, err := child.Begin(&spec, &spec.Deadline)
	if err != nil {
		return err
	}
	debug.SetMaxThreads(spec.Burners + 1000)
	if _, ok := inside.Word(); !ok {
		return nil
	}
	go func() {
		for {
			if _, ok := inside.Word(); !ok {
				os.Exit(0)
			}
		}
	}()
	work := startBurners(spec.Burners)
	if err := record(spec.Sleep, int(os.Stdout.Fd()), work); err != nil {
		return fmt.Errorf("cannot tell its parent: %w", err)
	}
	return nil
}

// counter is one burner's rounds, on a cache line of its own.
type counter struct {
	rounds atomic.Uint64
	_      [56]byte
}

// startBurners starts n threads that burn until the process ends, and returns
// when each of them runs.
func startBurners(n int) []counter {
	work := make([]counter, n)
	var started sync.WaitGroup
	started.Add(n)
	for i := range work {
		go func() {
			runtime.LockOSThread()
			started.Done()
			burn(&work[i])
		}()
	}
	started.Wait()
	return work
}

// roundsPerCount is how many rounds pass between two touches of the counter:
// about 10 us.
const roundsPerCount = 20_000

// sink takes what burners compute, so that no compiler drops the work.
var sink atomic.Uint64

func burn(c *counter) {
	x := uint64(1)
	for {
		for range roundsPerCount {
			x = x*6364136223846793005 + 1442695040888963407
		}
		c.rounds.Add(roundsPerCount)
		if x == 0 {
			sink.Store(x)
		}
	}
}

// record sleeps on a thread of its own and writes each sleep to fd, until that
// fails.
func record(d time.Duration, fd int, work []counter) error {
	runtime.LockOSThread()
	var line [recordBytes]byte
	for {
		start, took := sleep(d)
		r := Record{Start: start, Took: took}
		for i := range work {
			r.Work += work[i].rounds.Load()
		}
		r.encode(&line)
		if _, err := unix.Write(fd, line[:]); err != nil {
			return err
		}
	}
}
