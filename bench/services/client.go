package services

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/child"
	"github.com/unthrottle/unthrottle/topology"
)

// clientCommand is the hidden first argument that makes this program a client.
const clientCommand = "__client"

// ClientMain is the whole life of a client where this process is started as one; false: it is not.
func ClientMain() (code int, ok bool) {
	if len(os.Args) < 2 || os.Args[1] != clientCommand {
		return 0, false
	}
	return clientMain(), true
}

// Order is what a client sends.
type Order struct {
	Plan loadgen.Plan
	// Requests, one for each stream of the plan.
	Requests []Request
}

// StartClient starts a client in a process outside all cgroups of the case, on the plan's CPUs. ctx ends it.
func StartClient(ctx context.Context, o Order) (*child.Process, func(), error) {
	var cpus cpuset.CPUSet
	if o.Plan.CPUs != "" {
		var err error
		if cpus, err = topology.ParseList(o.Plan.CPUs); err != nil {
			return nil, nil, err
		}
	}
	c, err := child.Start(child.Options{Command: clientCommand, Config: o, Env: []string{"GOGC=400", "GOMEMLIMIT=1GiB"}, CPUs: cpus})
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Stop() })
	return c, func() { stop(); _ = c.Stop() }, nil
}

// RunClient runs a client to its end.
func RunClient(ctx context.Context, o Order) (loadgen.Result, error) {
	var r loadgen.Result
	c, done, err := StartClient(ctx, o)
	if err != nil {
		return r, err
	}
	defer done()
	const maxResult = 64 << 20
	if err := json.NewDecoder(io.LimitReader(c.Out(), maxResult)).Decode(&r); err != nil {
		if failed := c.Stop(); failed != nil {
			err = failed
		}
		return r, fmt.Errorf("client: %w", err)
	}
	return r, ctx.Err()
}

// Milliseconds is a quantile of latencies in ms; nil: they are too few.
func Milliseconds(l loadgen.Latency, q float64) *float64 {
	d, ok := l.Quantile(q, 0)
	if !ok {
		return nil
	}
	return new(float64(d) / float64(time.Millisecond))
}

// clientMain is the whole life of a client; its result is the exit code.
func clientMain() int {
	if err := client(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

func client() error {
	var o Order
	inside, err := child.Enter(&o)
	if err != nil {
		return err
	}
	const patience = 30 * time.Second
	if err := inside.EndAfter(o.Plan.Duration() + o.Plan.Drain + patience); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		inside.Word() // none comes: the pipe closes
		os.Exit(0)
	}()
	becomeRealTime()
	send, err := exchangeOf(o)
	if err != nil {
		return err
	}
	result, err := loadgen.Drive(ctx, o.Plan, send)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// becomeRealTime asks for the least real-time priority for all threads, so that other
// load does not make the client late. New threads inherit it from those that make them.
// Where the kernel refuses, the result's lateness shows it.
func becomeRealTime() {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}, 0)
	}
}
