package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/demand"
	"github.com/unthrottle/unthrottle/topology"
)

var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// slot has a row of each of so many containers with histograms as a service has them.
func slot(at time.Time, containers int) (rows []demand.Row) {
	for i := range containers {
		f := func(v float64) *float64 { return new(v + float64(i*37%11) + float64(at.Minute()*13%7)) }
		r := demand.Row{
			Schema: demand.SchemaVersion, Start: at, Began: at, Seconds: 299.7, Samples: 300, Cluster: "eu1",
			Node: "n17", Namespace: "shop",
			Pod: fmt.Sprintf("cart-7d9c5b8f6-%05d", i), Container: "app", Service: fmt.Sprintf("cart-%d/app", i/8),
			Runtime: "containerd", Cgroup: int64(1000 + i),
			LimitCPUs: new(2.0), LimitScope: "own", OwnLimitCPUs: new(2.0), RequestCPUs: new(1.0), AllowedCPUs: new(int32(64)),
			UsedCPUSeconds: f(123.456), WantedCPUSeconds: f(222.333), StoppedLowSeconds: f(3.21),
			StoppedHighSeconds: f(3.21), StoppedIntervals: new(int64(40 + i)),
			ThrottledOwnSeconds: f(9.87), ThrottledPodSeconds: new(0.0), ThrottledSliceSeconds: new(0.0), ThrottledInsideSeconds: new(0.0),
			Periods: new(int64(2998)), ThrottledPeriods: new(int64(i * 7)), WidthMax: new(int32(9)),
			WantedP50: new(int32(0)), WantedP95: new(int32(3)), WantedP99: new(int32(11)), WantedMax: new(int32(24)),
		}
		for l := range 12 {
			r.Width = append(r.Width, demand.Level{CPUs: int32(l), Microseconds: int64(200_000_000>>l + i*7919 + at.Minute()*104729)})
		}
		for l := range 24 {
			r.Wanted = append(r.Wanted, demand.Level{CPUs: int32(l), Microseconds: int64(150_000_000>>l + i*6101 + at.Minute()*15485)})
		}
		r.PeriodMicroseconds, r.CandidateSeconds, r.CandidateFrom = new(int64(100_000)), new(299.7), new(int32(i%7))
		for l := range 10 { // four binary digits, as package periodmodel has them
			size := int64(8+(i*5+l*3+at.Minute())%8) << max(0, 22-2*l)
			r.Candidates = append(r.Candidates, demand.Candidate{Step: int32(i%7 + l), StoppedMicroseconds: size,
				ThrottledPeriods: int32(900 >> l), DelayMicroseconds: size >> 6,
				BurstStoppedMicroseconds: size >> 4, BurstDelayMicroseconds: size >> 8})
		}
		for l := range 4 { // of a limit that a longer period lets be lower
			size := int64(8+(i*5+l*3+at.Minute())%8) << max(0, 20-4*l)
			r.LongBursts = append(r.LongBursts, demand.LongBurst{BurstPeriodMicroseconds: 300_000, Step: int32(i%7 + l - 4),
				StoppedMicroseconds: size, DelayMicroseconds: size >> 6})
		}
		r.LongBursts = append(r.LongBursts, demand.LongBurst{BurstPeriodMicroseconds: 1_000_000, Step: int32(i%7 - 4)})
		r.HostGroups, r.CPUList = sixtyFour(), "" // no cpuset of its own
		if i == at.Minute()/5*4 {                 // the agent records at most 12 times an hour
			r.RecordedSeconds, r.RequestCount = new(10.0), new(int64(4321))
			for p := range 8 {
				r.Pools = append(r.Pools, demand.Pool{Pool: fmt.Sprint("library-", p), Threads: int32(200 - i*p), Runnable: int32(60 - i),
					RunnableP99: int32(p), Running: int32(p + i%9), DefaultCPUs: new(int32(1 + i*p%64))})
			}
			for l := range 14 {
				r.Requests = append(r.Requests, demand.Request{Microseconds: 256 << l, Count: int32(i*31%97 + l)})
				for role := range 8 {
					r.Responses = append(r.Responses,
						demand.Response{Role: fmt.Sprint("pool-", role), Microseconds: 256 << l, Count: int32(i*13%89 + l*role + 1)})
				}
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// sixtyFour is a host of 64 CPUs on two sockets with four L3 caches each.
func sixtyFour() string {
	m := topology.Machine{}
	for id := range 64 {
		core := id % 32
		m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Socket: topology.ID(core / 16),
			Die: topology.Unknown, NUMANode: topology.ID(core / 16), L3: topology.ID(core / 4),
			Core: topology.ID(core), Cluster: topology.Unknown})
	}
	return m.GroupText()
}

// A container-hour is at most 2.2 KB, and slots that are written one after the other, some twice, are there once.
func TestAnHour(t *testing.T) {
	dir := t.TempDir()
	const containers = 50
	for i := range 12 {
		rows := slot(noon.Add(time.Duration(i)*demand.SlotLength), containers)
		for range 1 + i%2 { // a process that was killed after the write writes again
			if err := Write(dir, rows); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := filepath.Join(dir, "cluster=eu1", "date=2026-11-25", "hour=12", "n17.parquet")
	rows, err := Read(name)
	if err != nil || len(rows) != 12*containers {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if each := info.Size() / containers; each > 2200 {
		t.Errorf("%d bytes for a container-hour", each)
	} else {
		t.Logf("%d bytes for a container-hour", each)
	}
	first := rows[0]
	if first.Service != "cart-0/app" || !first.Start.Equal(noon) || *first.UsedCPUSeconds != 123.456+
		float64(noon.Minute()) || len(first.Wanted) != 24 || first.Wanted[3].CPUs != 3 {
		t.Errorf("%+v", first)
	}
}

// A file of an older program, without the columns of candidate limits, is read and added to: these are not known.
func TestOlderFile(t *testing.T) {
	type older struct {
		Schema    int32          `parquet:"schema"`
		Start     time.Time      `parquet:"start,timestamp(millisecond)"`
		Began     time.Time      `parquet:"began,timestamp(millisecond)"`
		Seconds   float64        `parquet:"seconds"`
		Samples   int32          `parquet:"samples"`
		Cluster   string         `parquet:"cluster,dict"`
		Node      string         `parquet:"node,dict"`
		Namespace string         `parquet:"namespace,dict"`
		Pod       string         `parquet:"pod,dict"`
		Container string         `parquet:"container,dict"`
		Service   string         `parquet:"service,dict"`
		Cgroup    int64          `parquet:"cgroup"`
		Width     []demand.Level `parquet:"width,list"`
		Remedy    string         `parquet:"remedy,dict"`
	}
	dir := t.TempDir()
	next := slot(noon.Add(demand.SlotLength), 1)
	name := filepath.Join(dir, File(&next[0]))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	old := older{Schema: 1, Start: noon, Began: noon, Seconds: 300, Samples: 300, Cluster: "eu1", Node: "n17",
		Container: "app", Service: "cart", Cgroup: 5,
		Width: []demand.Level{{CPUs: 1, Microseconds: 7}}, Remedy: "burst"}
	if err := parquet.WriteFile(name, []older{old}); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, next); err != nil {
		t.Fatal(err)
	}
	rows, err := Read(name)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if isOld := r.Service == "cart"; isOld != (r.CandidateSeconds == nil) || isOld != (len(r.Candidates) == 0) ||
			isOld != (r.Remedy == "burst") || len(r.Width) == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// A program that ends within a slot and one that goes on leave a row each.
func TestTwoProgramsInASlot(t *testing.T) {
	dir := t.TempDir()
	first, then := slot(noon, 1), slot(noon, 1)
	then[0].Began = noon.Add(2 * time.Minute)
	for _, rows := range [][]demand.Row{first, then, first} {
		if err := Write(dir, rows); err != nil {
			t.Fatal(err)
		}
	}
	if rows, err := Read(filepath.Join(dir, File(&first[0]))); err != nil || len(rows) != 2 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// A file that cannot be read is moved aside and told, and the new rows are written.
func TestDamagedFile(t *testing.T) {
	for name, damage := range map[string]func(whole []byte) []byte{
		"cut":   func(b []byte) []byte { return b[:len(b)/2] },
		"empty": func([]byte) []byte { return nil },
		"other": func([]byte) []byte { return []byte("PAR1 is not enough PAR1") },
		"torn": func(b []byte) []byte {
			c := append([]byte(nil), b...)
			for i := len(c) / 3; i < len(c)/2; i++ {
				c[i] ^= 0x55
			}
			return c
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Write(dir, slot(noon, 3)); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, File(&slot(noon, 1)[0]))
			whole, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			err = Write(dir, slot(noon.Add(demand.SlotLength), 3))
			damaged := new(Damaged)
			rows, readErr := Read(file)
			if name == "torn" && err == nil { // the part that is torn may be padding
				return
			}
			if !errors.As(err, &damaged) || damaged.File != file || readErr != nil || len(rows) != 3 {
				t.Errorf("%v; %d rows, %v", err, len(rows), readErr)
			}
			if _, err := os.Stat(damaged.Aside); err != nil {
				t.Error(err)
			}
		})
	}
}

// What cannot be read now is not damaged: it stays where it is, the error says so, and the rows can be written later.
func TestUnreadableIsNotDamaged(t *testing.T) {
	first, then := slot(noon, 3), slot(noon.Add(demand.SlotLength), 3)
	for name, unreadable := range map[string]func(t *testing.T, file string) (mended func()){
		"too many files open": func(t *testing.T, _ string) func() {
			var limit unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
			none := limit
			none.Cur = 0
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a link to itself": func(t *testing.T, file string) func() {
			return replaced(t, file, func() error { return os.Symlink(file, file) })
		},
		"a folder": func(t *testing.T, file string) func() {
			return replaced(t, file, func() error { return os.Mkdir(file, 0o700) })
		},
		"a pipe": func(t *testing.T, file string) func() {
			return replaced(t, file, func() error { return unix.Mkfifo(file, 0o600) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := Write(dir, first); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, File(&first[0]))
			mended := unreadable(t, file)
			err := Write(dir, then)
			_, readErr := Read(file)
			mended()
			if err == nil || errors.As(err, new(*Damaged)) || readErr == nil {
				t.Errorf("written: %v; read: %v", err, readErr)
			}
			if aside, err := filepath.Glob(file + "*"); err != nil || len(aside) != 1 {
				t.Errorf("%q, %v", aside, err)
			}
			if err := Write(dir, then); err != nil {
				t.Fatal(err)
			}
			if rows, err := Read(file); err != nil || len(rows) != 6 {
				t.Errorf("%d rows, %v", len(rows), err)
			}
		})
	}
}

// replaced has something else at a file's name until it is called.
func replaced(t *testing.T, file string, by func() error) func() {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept")
	if err := errors.Join(os.Rename(file, kept), by()); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(file), os.Rename(kept, file)); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged file goes aside beside those from before, and not over them. There is a bound, beyond which nothing is
// moved or written.
func TestDamagedFilesAside(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, File(&slot(noon, 1)[0]))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	content := func(i int) string { return fmt.Sprint("no Parquet, ", i) }
	aside := map[string]string{}
	for i := range mostAside + 1 {
		if err := os.WriteFile(file, []byte(content(i)), 0o644); err != nil {
			t.Fatal(err)
		}
		err := Write(dir, slot(noon, 2))
		damaged := new(Damaged)
		if i < mostAside {
			if !errors.As(err, &damaged) {
				t.Fatalf("%d: %v", i, err)
			}
			aside[damaged.Aside] = content(i)
			continue
		}
		data, readErr := os.ReadFile(file)
		if err == nil || errors.As(err, &damaged) || readErr != nil || string(data) != content(i) {
			t.Errorf("beyond the bound: %v, %d bytes, %v", err, len(data), readErr)
		}
	}
	if len(aside) != mostAside {
		t.Errorf("aside: %v", aside)
	}
	for name, want := range aside {
		if data, err := os.ReadFile(name); err != nil || string(data) != want || !strings.HasSuffix(name, ".parquet.damaged") {
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		}
	}
}

// Names of strangers stay below the folder.
func TestPartition(t *testing.T) {
	for node, want := range map[string]string{"n1": "n1", "../../etc/x": "..%2F..%2Fetc%2Fx", "": "unknown", "..": "%2E", "a b": "a%20b"} {
		r := demand.Row{Start: noon, Cluster: "c/d", Node: node}
		if got := File(&r); got != filepath.Join("cluster=c%2Fd", "date=2026-11-25", "hour=12", want+".parquet") {
			t.Errorf("%q: %s", node, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	if err := Write(dir, slot(noon, 2)); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, File(&slot(noon, 1)[0])))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, data []byte) {
		name := filepath.Join(t.TempDir(), "x.parquet")
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = Read(name) // no panic, whatever it says
	})
}
