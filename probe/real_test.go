package probe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/cgroup/cgrouptest"
	"github.com/unthrottle/unthrottle/lab/require"
	"github.com/unthrottle/unthrottle/recording"
)

func open(t *testing.T, o Options) *Probe {
	t.Helper()
	require.Root(t)
	require.BPF(t)
	p, err := Open(o)
	if err != nil {
		var v *ebpf.VerifierError
		if errors.As(err, &v) {
			t.Logf("%+v", v)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func id(t *testing.T, tr *cgrouptest.Tree, path string) uint64 {
	t.Helper()
	n, err := tr.Host.ID(cgroup.CPU, path)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWidth(t *testing.T) {
	p := open(t, Options{})
	tr := cgrouptest.New(t)
	path := tr.Make("a")
	tr.Limit(path, 1)
	tr.Work(path, 4)
	if err := p.Watch(Container{ID: id(t, tr, path), Path: path}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	c, err := p.Read(id(t, tr, path))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v stopped %v spells %v", c, *c.StoppedNS, *c.StoppedSpells)
}

func TestRecord(t *testing.T) {
	p := open(t, Options{})
	tr := cgrouptest.New(t)
	path := tr.Make("a")
	tr.Limit(path, 1)
	tr.Work(path, 4)
	var header recording.Header
	var events []recording.Event
	f, err := p.Record(context.Background(), RecordOptions{
		Target: Container{ID: id(t, tr, path), Path: path, Name: "a"}, For: 2 * time.Second, Host: tr.Host,
		Begin: func(h *recording.Header) error { header = *h; return nil },
	}, func(e *recording.Event) error { events = append(events, *e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[recording.Kind]int{}
	for _, e := range events {
		kinds[e.Kind]++
	}
	t.Logf("%+v\n%+v\n%v", header, f, kinds)
}
