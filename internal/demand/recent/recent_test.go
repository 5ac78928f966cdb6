package recent

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/internal/demand/nodedemand"
	"github.com/unthrottle/unthrottle/internal/demand/store"
)

var (
	noon  = time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	names = demand.Names{Cluster: "eu1", Node: "n1"}
)

// row is one of five minutes in which a container wanted so many CPUs.
func row(pod string, cgroup int64, cpus int32, start time.Time) demand.Row {
	wanted := 300 * float64(cpus)
	return demand.Row{Schema: demand.SchemaVersion, Start: start, Began: start, Seconds: 300, Cluster: names.Cluster, Node: names.Node,
		Namespace: "shop", Pod: pod, Container: "app", Service: "shop/" + pod + "/app", Cgroup: cgroup, WantedCPUSeconds: &wanted,
		Wanted: []demand.Level{{CPUs: cpus, Microseconds: 300e6}}}
}

// folder has rows.
func folder(t *testing.T, rows ...demand.Row) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := store.Write(dir, rows); err != nil {
		t.Fatal(err)
	}
	return dir
}

// spec is what is told, and what is left out.
func spec(t *testing.T, r *Rows, now time.Time) (s nodedemand.Spec, leftOut string) {
	t.Helper()
	s, left, err := r.Spec(now)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range left {
		leftOut += err.Error() + "\n"
	}
	return s, leftOut
}

// The days count that are not too old, and no hour of another node or of a time to come.
func TestSpec(t *testing.T) {
	other := row("other", 9, 1, noon)
	other.Node = "n2"
	dir := folder(t, row("cart", 1, 4, noon.Add(-Length-2*time.Hour)), row("cart", 1, 2, noon.Add(-24*time.Hour)), row("cart", 1, 1, noon),
		row("gone", 2, 8, noon.Add(-time.Hour)), row("future", 3, 1, noon.Add(3*time.Hour)), other)
	r := New(dir, names)
	s, left := spec(t, r, noon.Add(6*time.Minute))
	if left != "" || len(s.Containers) != 1 || !s.Until.Equal(noon.Add(demand.SlotLength)) || s.Check() != nil {
		t.Fatalf("%+v, left out %q", s, left)
	}
	if c := s.Containers[0]; c.Pod != "cart" || c.MostCPUs != 2 || c.Phases[4] != (nodedemand.Phase{10, 1.5, 0.25, 0}) {
		t.Errorf("%+v", c)
	}
	if len(r.files) != 3 {
		t.Errorf("%d files are kept", len(r.files))
	}
	if err := store.Write(dir, []demand.Row{row("cart", 1, 3, noon.Add(5*time.Minute))}); err != nil {
		t.Fatal(err)
	}
	if s, _ := spec(t, r, noon.Add(11*time.Minute)); s.Containers[0].MostCPUs != 3 || !s.Until.Equal(noon.Add(10*time.Minute)) {
		t.Errorf("a file that was replaced: %+v", s)
	}
	if s, _ := spec(t, r, noon.Add(Length+2*time.Hour)); !s.Until.IsZero() && len(s.Containers) > 1 || len(r.files) != 1 {
		t.Errorf("a week later: %+v of %d files", s, len(r.files))
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster=file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := New(dir, demand.Names{Cluster: "file"}).Spec(noon); err == nil {
		t.Error("a folder that cannot be read is no folder without rows")
	}
	if s, left := spec(t, New(filepath.Join(dir, "none"), names), noon); !s.Until.IsZero() || left != "" {
		t.Errorf("of no folder: %+v, %q", s, left)
	}
}

// What is damaged or of others is left out, and told once.
func TestLeftOut(t *testing.T) {
	dir := folder(t, row("cart", 1, 2, noon), row("cart", 1, 1, noon.Add(-time.Hour)), row("cart", 1, 8, noon.Add(-2*time.Hour)),
		row("cart", 1, 8, noon.Add(-3*time.Hour)))
	of := func(hours int) string {
		r := row("", 0, 0, noon.Add(time.Duration(-hours)*time.Hour))
		return filepath.Join(dir, store.File(&r))
	}
	text, err := os.ReadFile(of(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(of(1), text[:len(text)/2], 0o600); err != nil { // cut off
		t.Fatal(err)
	}
	if err := os.WriteFile(of(2), []byte("not Parquet"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(of(4)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(of(3), of(4)); err != nil { // of another hour than its name
		t.Fatal(err)
	}
	r := New(dir, names)
	s, left := spec(t, r, noon.Add(6*time.Minute))
	if len(s.Containers) != 1 || s.Containers[0].MostCPUs != 2 {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{of(1) + ": damaged: ", of(2) + ": damaged: ", of(4) + ": 1 rows are of another node"} {
		if !strings.Contains(left, want) {
			t.Errorf("%q does not say %q", left, want)
		}
	}
	if _, left := spec(t, r, noon.Add(7*time.Minute)); left != "" {
		t.Errorf("told again: %q", left)
	}
	more := row("cart", 1, 1, noon.Add(-3*time.Hour)) // as many rows more that are of another hour
	more.Began = more.Began.Add(time.Second)
	if rows, err := store.Read(of(4)); err != nil || os.Remove(of(4)) != nil || store.Write(dir, append(rows, more)) != nil ||
		os.Rename(of(3), of(4)) != nil {
		t.Fatal(err)
	}
	if _, left := spec(t, r, noon.Add(7*time.Minute)); left != "" {
		t.Errorf("told again, with another figure: %q", left)
	}
	if err := os.WriteFile(of(1), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, left := spec(t, r, noon.Add(8*time.Minute)); left != "" || s.Containers[0].Phases[3][0] != 5 {
		t.Errorf("a file that was repaired: %+v, %q", s, left)
	}
}

// What cannot be read now counts as before, and is tried again.
func TestUnreadable(t *testing.T) {
	dir := folder(t, row("cart", 1, 2, noon))
	r := New(dir, names)
	if s, left := spec(t, r, noon.Add(6*time.Minute)); left != "" || len(s.Containers) != 1 {
		t.Fatalf("%+v, %q", s, left)
	}
	read := r.files[filepath.Join(dir, "cluster=eu1", "date=2026-03-08", "hour=12", "n1.parquet")]
	later := read.Hour
	later.File, later.Changed = filepath.Join(dir, "gone.parquet"), noon
	if _, err := r.read(read, later); err == nil || store.IsDamaged(err) || read.Changed.Equal(noon) {
		t.Errorf("%v, %+v", err, read.Hour)
	}
	if s := nodedemand.Of(&read.part); len(s.Containers) != 1 {
		t.Errorf("%+v", s)
	}
}

// BenchmarkWeek reads a week of a node of 100 containers for the first time.
func BenchmarkWeek(b *testing.B) {
	dir := b.TempDir()
	var hour []demand.Row
	bytes := int64(0)
	for h := range int(Length / time.Hour) {
		hour = hour[:0]
		for slot := range int(time.Hour / demand.SlotLength) {
			at := noon.Add(-time.Duration(h) * time.Hour).Add(time.Duration(slot) * demand.SlotLength)
			for i := range 100 {
				r := row(fmt.Sprintf("cart-7d9c5b8f6-%05d", i), int64(i), 1, at)
				r.Wanted = nil
				for l := range 24 {
					us := int64(150_000_000>>l + i*6101 + at.Minute()*15485)
					r.Wanted, r.Width = append(r.Wanted, demand.Level{CPUs: int32(l), Microseconds: us}), append(r.Width,
						demand.Level{CPUs: int32(l / 2), Microseconds: us})
				}
				for l := range 10 {
					stopped := int64(i*at.Minute()) << l
					r.Candidates = append(r.Candidates, demand.Candidate{Step: int32(i%7 + l), StoppedMicroseconds: stopped})
				}
				hour = append(hour, r)
			}
		}
		if err := store.Write(dir, hour); err != nil {
			b.Fatal(err)
		}
		w := hour[0]
		info, err := os.Stat(filepath.Join(dir, store.File(&w)))
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	now := noon.Add(time.Hour)
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := New(dir, names)
		s, left, err := r.Spec(now)
		if err != nil || len(left) > 0 || len(s.Containers) != 100 {
			b.Fatal(len(s.Containers), left, err)
		}
		for range 3 { // until the library's pools are empty
			runtime.GC()
		}
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "kept-MB")
		runtime.KeepAlive(r)
	}
	b.ReportMetric(float64(bytes)/1e6, "files-MB")
}
