package forecast

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/live"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/load/loadgen"
	"github.com/unthrottle/unthrottle/internal/load/workload/service"
	"github.com/unthrottle/unthrottle/internal/load/workload/threads"
	"github.com/unthrottle/unthrottle/internal/scenario"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	"github.com/unthrottle/unthrottle/internal/see/recording"
	"github.com/unthrottle/unthrottle/internal/sim/realrun"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	mains := map[string]func() int{threads.Command: threads.Main, service.Command: service.Main, loadgen.Command: loadgen.Main}
	if len(os.Args) > 1 && mains[os.Args[1]] != nil {
		os.Exit(mains[os.Args[1]]())
	}
	os.Exit(m.Run())
}

// recorded is a realrun.Probe that records one of the cgroups, as 'unthrottle explain --record' does.
type recorded struct {
	host   *cgroup.Host
	target string
	file   bytes.Buffer
}

// Watch implements realrun.Probe. It begins to record before the load begins. Loading the probe takes a
// varying time, so that each run would otherwise begin at another moment.
func (r *recorded) Watch(cgroups map[string]cgroup.Group) (realrun.Watching, error) {
	began := make(chan struct{})
	o := live.Options{
		Host: r.host, Root: os.DirFS("/"), For: probe.MaxRecording, Keep: &r.file, Began: func() { close(began) },
	}
	for name, g := range cgroups {
		if c := (container.Container{Group: g, Name: name}); name == r.target {
			o.Target = c
		} else {
			o.Others = append(o.Others, c)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &recordedRun{ended: make(chan error, 1), stop: stop}
	go func() {
		_, err := live.Live(ctx, o)
		w.ended <- err
	}()
	select {
	case <-began:
		return w, nil
	case err := <-w.ended:
		return nil, err
	}
}

// recordedRun is one recording in progress.
type recordedRun struct {
	ended chan error
	stop  context.CancelFunc
}

func (w *recordedRun) Begin() error { return nil }

func (w *recordedRun) End() (map[string]realrun.Measured, error) {
	w.stop()
	return nil, <-w.ended
}

func (w *recordedRun) Close() { w.stop() }

// record runs a scenario for real, and returns the recording of the cgroup "app" as a Load.
func record(t testing.TB, tree *cgrouptest.Tree, s scenario.Scenario, seed uint64) *Load {
	t.Helper()
	r := &recorded{host: tree.Host, target: "app"}
	if _, err := realrun.Run(t.Context(), s, realrun.Options{Host: tree.Host, Scope: tree.Top, Seed: seed, Probe: r}); err != nil {
		t.Fatal(err)
	}
	return loaded(t, r.file.Bytes())
}

// tail is the end of a recording that the test drops: a workload's threads end with it, and those of a
// running service do not.
const tail = 100 * time.Millisecond

// loaded returns a recording as a Load. Without a limit the Load has figures, and no replay.
func loaded(t testing.TB, file []byte) *Load {
	t.Helper()
	read := func(take func(*recording.Event)) *recording.Reader {
		r, err := recording.NewReader(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		var e recording.Event
		for err = r.Next(&e); err == nil; err = r.Next(&e) {
			take(&e)
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return r
	}
	whole, cut := onCPUs{}, onCPUs{}
	r := read(whole.add)
	footer := r.Footer()
	end := footer.EndNS
	footer.EndNS -= tail.Nanoseconds()
	b, err := newBuilder(r.Header)
	if err != nil {
		t.Fatal(err)
	}
	read(func(e *recording.Event) {
		if e.AtNS < footer.EndNS {
			cut.add(e)
			b.add(e)
		}
	})
	if n := footer.UsageNS; n != nil {
		*n = int64(float64(*n) * cut.until(footer.EndNS) / whole.until(end))
	}
	l, err := b.finish(footer)
	if errors.Is(err, errNoLimit) {
		l, err = b.load, nil
		l.Pools = b.pools.all()
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// onCPUs adds up the time for which threads of the container had a CPU. since has the CPUs that one has now.
type onCPUs struct {
	since map[int32]int64
	sum   int64
}

func (o *onCPUs) add(e *recording.Event) {
	if e.Kind != recording.Switch {
		return
	}
	if o.since == nil {
		o.since = map[int32]int64{}
	}
	if began, ok := o.since[e.CPU]; ok {
		o.sum += e.AtNS - began
		delete(o.since, e.CPU)
	}
	if e.NextThread != 0 {
		o.since[e.CPU] = e.AtNS
	}
}

func (o *onCPUs) until(end int64) float64 {
	sum := o.sum
	for _, began := range o.since {
		sum += end - began
	}
	return float64(sum)
}
