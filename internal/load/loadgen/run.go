package loadgen

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/topology"
)

// Command is the hidden first argument that makes this program a generator.
const Command = "__loadgen"

// patience is what a generator may take beyond its plan, to start and to tell.
const patience = 30 * time.Second

// maxResult bounds what a generator may tell.
const maxResult = 256 << 20

// Run runs a plan in a process of its own and gives what it measured. exe is
// the program to run with [Command]; "" is this very program. When ctx ends, so
// does the generator. It is no error that requests fail, nor that the generator
// was the bottleneck: see [Own.Saturated].
func Run(ctx context.Context, exe string, p Plan) (Result, error) {
	p = p.filled()
	if err := p.Check(); err != nil {
		return Result{}, fmt.Errorf("load: %w", err)
	}
	cpus := cpuset.New()
	if p.CPUs != "" {
		cpus, _ = topology.ParseList(p.CPUs) // checked
	}
	c, err := child.Start(child.Options{Exe: exe, Command: Command, Config: p, Env: environment(p), CPUs: cpus})
	if err != nil {
		return Result{}, fmt.Errorf("load: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Stop() })
	defer stop()
	var result Result
	err = json.NewDecoder(io.LimitReader(c.Out(), maxResult)).Decode(&result)
	if ctx.Err() != nil {
		_ = c.Stop()
		return Result{}, ctx.Err()
	}
	if failed := c.Stop(); failed != nil {
		return Result{}, fmt.Errorf("load: %w", failed)
	}
	if err != nil {
		return Result{}, fmt.Errorf("load: the generator ended without a result: %w", err)
	}
	return result, nil
}

// environment is a generator's whole environment: no proxy, and for a service
// of our own no collection while there is memory.
func environment(p Plan) []string {
	if p.URL != "" {
		return []string{"GOGC=200", "GOMEMLIMIT=1GiB"}
	}
	return []string{"GOGC=off", "GOMEMLIMIT=512MiB", "GOMAXPROCS=2", "GODEBUG=asyncpreemptoff=1"}
}

// Main is the whole life of a generator; its result is the exit code. It is of
// use only to a process started by [Run].
func Main() int {
	if err := generate(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n", err)
		return 2
	}
	return 0
}

func generate() error {
	var p Plan
	inside, err := child.Enter(&p)
	if err != nil {
		return err
	}
	if err := p.Check(); err != nil {
		return err
	}
	wait := time.Duration(0)
	if p.Start > 0 {
		wait = max(0, p.Start-workload.Now())
	}
	if err := inside.EndAfter(wait + p.Duration() + p.Drain + patience); err != nil {
		return err
	}
	// The parent has no word for a generator: the next one is its end.
	go func() {
		if _, ok := inside.Word(); !ok {
			os.Exit(0)
		}
	}()
	var result Result
	switch {
	case p.URL != "":
		result, err = runWeb(p)
	default:
		result, err = runLocal(p)
	}
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("cannot tell its parent: %w", err)
	}
	return nil
}
