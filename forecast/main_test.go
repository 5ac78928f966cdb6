package forecast

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/cgroup/cgrouptest"
	"github.com/unthrottle/unthrottle/container"
	"github.com/unthrottle/unthrottle/explain"
	"github.com/unthrottle/unthrottle/loadgen"
	"github.com/unthrottle/unthrottle/probe"
	"github.com/unthrottle/unthrottle/recording"
	"github.com/unthrottle/unthrottle/scenario"
	"github.com/unthrottle/unthrottle/workload/experiment"
	"github.com/unthrottle/unthrottle/workload/service"
	"github.com/unthrottle/unthrottle/workload/threads"
)

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) {
	mains := map[string]func() int{threads.Command: threads.Main, service.Command: service.Main, loadgen.Command: loadgen.Main}
	if len(os.Args) > 1 && mains[os.Args[1]] != nil {
		os.Exit(mains[os.Args[1]]())
	}
	os.Exit(m.Run())
}

// recorded is a probe of experiments that records one of their cgroups, as 'unthrottle explain --record' does.
type recorded struct {
	host   *cgroup.Host
	target string
	file   bytes.Buffer
}

// Watch implements experiment.Probe.
func (r *recorded) Watch(cgroups map[string]cgroup.Group) (experiment.Watching, error) {
	began := make(chan struct{})
	w := &recordedRun{began: began, ended: make(chan error, 1), o: explain.Options{
		Host: r.host, Root: os.DirFS("/"), For: probe.MaxRecording, Keep: &r.file, Began: func() { close(began) },
	}}
	for name, g := range cgroups {
		if c := (container.Container{Group: g, Name: name}); name == r.target {
			w.o.Target = c
		} else {
			w.o.Others = append(w.o.Others, c)
		}
	}
	return w, nil
}

// recordedRun is one recording under way.
type recordedRun struct {
	o     explain.Options
	began chan struct{}
	ended chan error
	stop  context.CancelFunc
}

func (w *recordedRun) Begin() error {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() {
		_, err := explain.Live(ctx, w.o)
		w.ended <- err
	}()
	select {
	case <-w.began:
		return nil
	case err := <-w.ended:
		return err
	}
}

func (w *recordedRun) End() (map[string]experiment.Measured, error) {
	w.stop()
	return nil, <-w.ended
}

func (w *recordedRun) Close() {}

// record runs a scenario for real, and gives the recording of the cgroup "app" as a Load.
func record(t testing.TB, tree *cgrouptest.Tree, s scenario.Scenario, seed uint64) *Load {
	t.Helper()
	r := &recorded{host: tree.Host, target: "app"}
	if _, err := experiment.Run(t.Context(), s, experiment.Options{Host: tree.Host, Scope: tree.Top, Seed: seed, Probe: r}); err != nil {
		t.Fatal(err)
	}
	l, err := Read(bytes.NewReader(r.file.Bytes()))
	if errors.Is(err, ErrNoLimit) {
		l, err = unlimited(&r.file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// unlimited is what was recorded of a container without a limit: figures, and nothing to be replayed.
func unlimited(in io.Reader) (*Load, error) {
	r, err := recording.NewReader(in)
	if err != nil {
		return nil, err
	}
	b, err := NewBuilder(r.Header)
	if err != nil {
		return nil, err
	}
	var e recording.Event
	for err = r.Next(&e); err == nil; err = r.Next(&e) {
		b.Add(&e)
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if _, err = b.Finish(r.Footer()); !errors.Is(err, ErrNoLimit) {
		return nil, err
	}
	b.made.Pools = b.measured
	return b.made, nil
}
