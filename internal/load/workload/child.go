package workload

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// grace is how long after its deadline the kernel kills a child that has not
// ended by itself.
const grace = time.Second

// spareProcs is what the Go runtime may run beside the burners and sleeper.
const spareProcs = 4

// childEnv is a child's whole environment. Nothing of the Go runtime may
// disturb the measurement: as many threads as burners, no collection, no
// preemption signals (which would also cut sleeps short).
func childEnv(s Spec) []string {
	return []string{
		"GOMAXPROCS=" + strconv.Itoa(s.Burners+1+spareProcs),
		"GOGC=off",
		"GODEBUG=asyncpreemptoff=1",
	}
}

// ChildMain is the whole life of a child, with the arguments behind
// [ChildCommand]; its result is the exit code. It is of use only to a process
// started by [Start].
func ChildMain(args []string) int {
	spec, err := parseSpec(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "child: %v (started by 'unthrottle demo', not by hand)\n", err)
		return 2
	}
	if err := killAfter(spec.Deadline + grace); err != nil {
		fmt.Fprintf(os.Stderr, "child: cannot set a timer for its own end: %v\n", err)
		return 2
	}
	time.AfterFunc(spec.Deadline, func() { os.Exit(0) })
	debug.SetMaxThreads(spec.Burners + 1000)

	if !readByte(os.Stdin) {
		return 0
	}
	go func() {
		for readByte(os.Stdin) {
		}
		os.Exit(0)
	}()
	work := startBurners(spec.Burners)
	if err := record(spec.Sleep, int(os.Stdout.Fd()), work); err != nil {
		fmt.Fprintf(os.Stderr, "child: cannot tell its parent: %v\n", err)
		return 2
	}
	return 0
}

// readByte waits for one byte; false: the pipe is closed.
func readByte(f *os.File) bool {
	var b [1]byte
	n, err := f.Read(b[:])
	return n == 1 && err == nil
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
