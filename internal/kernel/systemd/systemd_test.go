package systemd

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
)

const unitName = `db-a\x2db@1.service`

func newFake() *fake {
	return &fake{units: map[string]map[string]any{
		unitName: {"Unit.LoadState": "loaded", "Service.ControlGroup": "/system.slice/" + unitName,
			"Service.AllowedCPUs": []byte{}, "Service.CPUQuotaPerSecUSec": uint64(1500000), "Service.CPUWeight": notSet},
		"_x.slice":     {"Unit.LoadState": "loaded", "Slice.ControlGroup": "/_x.slice"},
		"gone.service": {"Unit.LoadState": "not-found", "Service.ControlGroup": ""},
		"old.service":  {"Unit.LoadState": "loaded", "Service.AllowedCPUs": []byte{1}, "readonly": unitprop.AllowedCPUs},
	}}
}

func TestGetAndSet(t *testing.T) {
	f := newFake()
	m := dialFake(t, f, time.Minute)
	ctx := t.Context()
	for _, c := range []struct{ property, before, after string }{
		{unitprop.AllowedCPUs, "", "0-3,8"}, {unitprop.CPUQuotaPerSecUSec, "1500000", unitprop.Infinity},
		{unitprop.CPUWeight, unitprop.Infinity, idle},
		{unitprop.CPUQuotaPerSecUSec, unitprop.Infinity, "1500000"}, {unitprop.AllowedCPUs, "0-3,8", ""}, {unitprop.CPUWeight, idle, "200"},
	} {
		got, err := m.Get(ctx, unitName, c.property)
		if err != nil || got != c.before {
			t.Errorf("%s: got %q, %v; want %q", c.property, got, err, c.before)
		}
		if err := m.Set(ctx, unitName, map[string]string{c.property: c.after}, true); err != nil {
			t.Error(err)
		}
		if got, err = m.Get(ctx, unitName, c.property); err != nil || got != c.after {
			t.Errorf("%s: got %q, %v; want %q", c.property, got, err, c.after)
		}
	}
	if err := m.Set(ctx, unitName, map[string]string{unitprop.AllowedMemoryNodes: "0",
		unitprop.CPUQuotaPeriodUSec: "10000"}, true); err != nil {
		t.Error(err)
	}
	last := f.sets[len(f.sets)-1]
	if !last.runtime || !slices.Equal(last.names, []string{unitprop.AllowedMemoryNodes, unitprop.CPUQuotaPeriodUSec}) {
		t.Errorf("got %+v", last)
	}
}

// A drop-in of a property that has its former value goes. One whose value was set by others until the next boot stays.
func TestForget(t *testing.T) {
	f := newFake()
	m := dialFake(t, f, time.Minute)
	m.control = t.TempDir()
	dir := filepath.Join(m.control, unitName+".d")
	files := func() []os.DirEntry {
		t.Helper()
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	fill := func() {
		t.Helper()
		err := os.MkdirAll(dir, 0o755)
		for _, name := range []string{"50-AllowedCPUs.conf", "50-CPUQuota.conf", "50-MemoryMax.conf"} {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	back := map[string]map[string]string{unitName: {unitprop.AllowedCPUs: "", unitprop.CPUQuotaPerSecUSec: "1500000"}}
	if err := m.Forget(t.Context(), back); err != nil { // without files there is no reload, which would fail
		t.Error(err)
	}
	fill()
	f.reload = func() { f.units[unitName]["Service.AllowedCPUs"] = []byte{} }
	if err := m.Forget(t.Context(), back); err != nil || len(files()) != 1 || len(f.sets) != 0 {
		t.Errorf("left %v, set %v, %v", files(), f.sets, err)
	}
	fill()
	f.reload = func() { f.units[unitName]["Service.CPUQuotaPerSecUSec"] = uint64(2000000) }
	if err := m.Forget(t.Context(), back); err != nil || len(f.sets) != 1 ||
		!slices.Equal(f.sets[0].names, []string{unitprop.CPUQuotaPerSecUSec}) ||
		f.units[unitName]["Service.CPUQuotaPerSecUSec"] != uint64(1500000) {
		t.Errorf("set %v, %v", f.sets, err)
	}
	fill()
	f.reload = nil
	if err := m.Forget(t.Context(), back); err == nil || !strings.Contains(err.Error(), "systemd: cannot reload the units") {
		t.Errorf("a refused reload: %v", err)
	}
	if err := m.Forget(t.Context(), map[string]map[string]string{"../etc.service": {unitprop.AllowedCPUs: ""}}); err != nil {
		t.Errorf("a name that is no unit's: %v", err)
	}
}

func TestErrorsAreNamed(t *testing.T) {
	f := newFake()
	m := dialFake(t, f, time.Minute)
	ctx := t.Context()
	get := func(unit, property string) error { _, err := m.Get(ctx, unit, property); return err }
	put := func(unit, property, value string) error {
		return m.Set(ctx, unit, map[string]string{property: value}, true)
	}
	for _, c := range []struct {
		err  error
		want string
		gone bool
	}{
		{get("gone.service", unitprop.AllowedCPUs), `unit "gone.service": cannot read AllowedCPUs: no such unit`, true},
		{put("never.scope", unitprop.AllowedCPUs, "0"), `unit "never.scope": cannot set AllowedCPUs: no such unit`, true},
		{put("old.service", unitprop.AllowedCPUs, "0"), "this systemd cannot set it", false},
		{get(unitName, "MemoryMax"), "this systemd cannot set it", false},
		{put(unitName, "MemoryMax", "1"), "is not a property that unthrottle sets", false},
		{put(unitName, unitprop.AllowedCPUs, "a"), `AllowedCPUs="a"`, false},
		{put(unitName, unitprop.CPUQuotaPerSecUSec, "-1"), `CPUQuotaPerSecUSec="-1"`, false},
		{get("not a unit", unitprop.AllowedCPUs), "not the name of a unit", false},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("got %v, want it to say %q", c.err, c.want)
		}
		if errors.Is(c.err, fs.ErrNotExist) != c.gone {
			t.Errorf("%v: gone is %v", c.err, !c.gone)
		}
	}
}

func TestTimeout(t *testing.T) {
	f := newFake()
	f.hang = make(chan struct{})
	m := dialFake(t, f, 20*time.Millisecond)
	defer close(f.hang)
	if _, err := m.Get(t.Context(), unitName, unitprop.AllowedCPUs); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get: %v", err)
	}
	err := m.Set(t.Context(), unitName, map[string]string{unitprop.AllowedCPUs: "0"}, true)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("set: %v", err)
	}
	if unit, ok := m.Owns("/system.slice/" + unitName); ok {
		t.Errorf("owned by %s", unit)
	}
}

func TestClosed(t *testing.T) {
	m := dialFake(t, newFake(), time.Minute)
	m.Close()
	if _, err := m.Get(t.Context(), unitName, unitprop.AllowedCPUs); err == nil {
		t.Error("no error")
	}
}

func TestOwns(t *testing.T) {
	m := dialFake(t, newFake(), time.Minute)
	for path, want := range map[string]string{
		"/system.slice/" + unitName:                unitName,
		"/other.slice/" + unitName:                 "",
		"/system.slice/" + unitName + "/container": "",
		"/system.slice/never.service":              "",
		"/system.slice/gone.service":               "",
		"/":                                        "",
		"/kubepods/pod1":                           "",
	} {
		if unit, ok := m.Owns(path); unit != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v; want %q", path, unit, ok, want)
		}
	}
}

func TestUnitOf(t *testing.T) {
	for path, want := range map[string]string{
		"/a/x.service": "x.service", "/a/_cpu.max.slice": "cpu.max.slice", "/a/docker-0f.scope": "docker-0f.scope",
		"/a/.service": "", "/a/x y.service": "", "/a/x.timer": "", "/a/\xff.service": "", "/": "",
		"/" + strings.Repeat("x", 250) + ".scope": "",
	} {
		if got := unitOf(path); got != want {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}

func TestMask(t *testing.T) {
	// The documented example.
	if got := mask(cpuset.New(0, 1, 2, 3, 8)); !slices.Equal(got, []byte{0x0f, 0x01}) {
		t.Errorf("got %x", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		set := cpuset.New(rapid.SliceOf(rapid.IntRange(0, 1023)).Draw(t, "ids")...)
		padded := append(mask(set), make([]byte, rapid.IntRange(0, 5).Draw(t, "padding"))...)
		if back, err := Set(padded); err != nil || !back.Equals(set) {
			t.Fatalf("%s came back as %s, %v", set, back, err)
		}
	})
	if _, err := Set(make([]byte, 1<<20)); err == nil {
		t.Error("a mask of a megabyte was taken")
	}
}

func TestDecodeRefusesOtherTypes(t *testing.T) {
	for property, value := range map[string]any{unitprop.AllowedCPUs: "0-3", unitprop.CPUWeight: []byte{1},
		unitprop.CPUQuotaPerSecUSec: int32(1), "Nice": uint64(1)} {
		if text, err := decode(property, dbus.MakeVariant(value)); err == nil {
			t.Errorf("%s=%v was read as %q", property, value, text)
		}
	}
}
