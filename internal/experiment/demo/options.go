package demo

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/internal/load/workload"
	"github.com/unthrottle/unthrottle/topology"
)

// Defaults of [Options].
const (
	DefaultSeconds = 6.5 // per variant: the whole takes about 30 s
	MinSeconds     = 0.5
	MaxSeconds     = 600.0
)

// Options is what a run needs. Host and Machine must be given.
type Options struct {
	Host *cgroup.Host
	// FS is every touch of a cgroup; nil: Host.
	FS      cgroup.FS
	Machine topology.Machine
	// Seconds is the measured window of each of the four variants; 0: DefaultSeconds.
	Seconds float64
	// Burners is how many threads burn; 0: seed 003's 32, and 2 per CPU of the
	// host where that is more.
	Burners int
	// Scope is the cgroup, in the cpu hierarchy, below which the demo makes its
	// own; "": the highest that can be seen, "/" on a host.
	Scope string
	// Fair leaves the demo's cgroup at the ordinary weight. By default it has the
	// highest, so that it gets its CPUs even beside other processes. They get the
	// rest: at least all CPUs but the quota's 1 or 2.
	Fair bool
	// RunID names the run, up to 32 of a-z and 0-9; "": a random one.
	RunID string
	// Exe is what children run; "": this program itself.
	Exe string
	// ProcDir stands for /proc; "": /proc.
	ProcDir string
	// Progress, if set, is called a few times a second, from one goroutine.
	Progress func(Event)

	patience time.Duration // for a first sleep; 0: startPatience
}

// Event tells how far a run is.
type Event struct {
	Doing       string        // "quota", "cleaning up": for people
	Done, Total time.Duration // of the whole run, about
}

func (o Options) filled() (Options, error) {
	if o.FS == nil {
		o.FS = o.Host
	}
	if o.Seconds == 0 {
		o.Seconds = DefaultSeconds
	}
	if o.patience == 0 {
		o.patience = startPatience
	}
	if !(o.Seconds >= MinSeconds && o.Seconds <= MaxSeconds) {
		return o, fmt.Errorf("demo: --for %gs: outside %gs to %gs", o.Seconds, MinSeconds, MaxSeconds)
	}
	if o.Burners < 0 || o.Burners > workload.MaxBurners {
		return o, fmt.Errorf("demo: %d burners: outside 0 to %d", o.Burners, workload.MaxBurners)
	}
	if o.Burners == 0 {
		o.Burners = burners(o.Machine.Online().Size())
	}
	if o.Scope == "" {
		o.Scope = o.Host.Top(cgroup.CPU)
	}
	if o.ProcDir == "" {
		o.ProcDir = "/proc"
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.RunID == "" {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails (crypto/rand)
		o.RunID = hex.EncodeToString(b[:])
	}
	return o, nil
}

// NotMeasurable means that this host, or this user, cannot run the demo. The error
// leaves no cgroup behind.
type NotMeasurable = sandbox.NotMeasurable
