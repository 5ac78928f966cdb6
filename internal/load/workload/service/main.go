package service

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/unthrottle/unthrottle/internal/load/workload/child"
)

// Command is the hidden first argument that makes this program a service.
const Command = "__service"

// listenFD is the descriptor of the listening socket in the child.
const listenFD = 3

// The parent's words to a service.
const (
	wordGo    = 'g'
	wordBegin = 'b'
	wordStats = 's'
)

// spareThreads is what the Go runtime may run beside the service's own.
const spareThreads = 8

// environment is a service's whole environment. A thread that waits in the kernel
// keeps its P, so that each thread needs one. The Go runtime must not disturb: no
// collection (the service allocates nothing while it serves), no preemption signals.
func environment(s Spec) []string {
	return []string{
		"GOMAXPROCS=" + strconv.Itoa(s.threads()+spareThreads),
		"GOGC=off",
		"GODEBUG=asyncpreemptoff=1",
	}
}

// Main is the whole life of a service; its result is the exit code. It is of
// use only to a process started by [Start].
func Main() int {
	if err := serve(); err != nil {
		fmt.Fprintf(os.Stderr, "service: %v (started by 'unthrottle bench' and 'unthrottle simulate --real', not by hand)\n", err)
		return 2
	}
	return 0
}

func serve() error {
	var spec Spec
	inside, err := child.Begin(&spec, &spec.Deadline)
	if err != nil {
		return err
	}
	debug.SetMaxThreads(spec.threads() + 1000)
	s, err := newServer(spec, listenFD)
	if err != nil {
		return err
	}
	for {
		switch word, ok := inside.Word(); {
		case !ok:
			return nil
		case word == wordBegin:
			s.begin()
		case word == wordGo:
			s.start()
			fallthrough
		case word == wordStats:
			if err := json.NewEncoder(os.Stdout).Encode(s.stats()); err != nil {
				return fmt.Errorf("cannot tell its parent: %w", err)
			}
		}
	}
}
