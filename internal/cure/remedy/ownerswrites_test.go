package remedy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

const (
	podPath    = "/kubepods/pod11111111-2222-3333-4444-555555555555"
	appPath    = podPath + "/app"
	besidePath = podPath + "/beside"
)

// ownersWrites are what the owner of a container may write while a remedy is in force, by what the page calls it: a runtime, the
// kubelet, systemd. Each succeeds without the remedy.
var ownersWrites = map[string]func(h *host) error{
	"a lower limit of the container": func(h *host) error {
		return h.owned(appPath, cgroup.Limit{Quota: 60 * time.Millisecond, Period: 100 * time.Millisecond})
	},
	"a higher limit of the container": func(h *host) error {
		return h.owned(appPath, cgroup.Limit{Quota: 150 * time.Millisecond, Period: 100 * time.Millisecond})
	},
	"a lower limit of the pod": func(h *host) error {
		return h.owned(podPath, cgroup.Limit{Quota: 120 * time.Millisecond, Period: 100 * time.Millisecond})
	},
	"a weight of the container": func(h *host) error {
		w := cgroup.SharesWrite(h.v, 300)
		return h.k.Write(cgroup.CPU, appPath, w.File, w.Value)
	},
	"other CPUs of the container": func(h *host) error { return h.k.Write(cgroup.CPUSet, appPath, cgroup.FileCPUs, "4-7") },
	"other CPUs of the pod":       func(h *host) error { return h.k.Write(cgroup.CPUSet, podPath, cgroup.FileCPUs, "4-7") },
}

// owned writes quota and period as a runtime does, which knows of no burst.
func (h *host) owned(path string, want cgroup.Limit) error {
	if h.v == cgroup.V2 {
		return h.k.Write(cgroup.CPU, path, "cpu.max", fmt.Sprintf("%d %d", want.Quota.Microseconds(), want.Period.Microseconds()))
	}
	// The period first, and again after the quota where the kernel refused it: runc's libcontainer/cgroups/fs/cpu.go.
	period := func() error {
		return h.k.Write(cgroup.CPU, path, "cpu.cfs_period_us", fmt.Sprint(want.Period.Microseconds()))
	}
	refused := period()
	if err := h.k.Write(cgroup.CPU, path, "cpu.cfs_quota_us", fmt.Sprint(want.Quota.Microseconds())); err != nil || refused == nil {
		return err
	}
	return period()
}

// longBurst is a burst in a period of 1 s, as people type it.
const longBurst Kind = "burst --period 1s"

// held applies a remedy to one of two containers of a pod; "": none.
func held(t *testing.T, name string, kind Kind) *host {
	h := newHost(t, configs("0-7")[name], t.TempDir())
	h.hand("/", cgroup.CPU, cgroup.CPUSet)
	h.make("/kubepods")
	h.hand("/kubepods", cgroup.CPU, cgroup.CPUSet)
	h.make(podPath)
	h.hand(podPath, cgroup.CPU, cgroup.CPUSet)
	for _, path := range []string{appPath, besidePath, "/other"} {
		h.make(path)
	}
	h.limit(podPath, 3)
	h.limit(appPath, 1)
	h.limit(besidePath, 1)
	h.run(appPath, 10)
	h.run(besidePath, 11)
	h.run("/other", 12)
	if kind == "" {
		return h
	}
	request := Request{Kind: kind}
	switch kind {
	case longBurst:
		request.Kind, request.Period = Burst, time.Second
	case Raise:
		request.To = 2
	case Cap:
		request.To, request.Sibling = 0.5, besidePath
	}
	for i := range h.containers[:2] {
		h.containers[i].Pod, h.containers[i].PodUID = "web", "11111111-2222-3333-4444-555555555555"
	}
	h.apply(must(t)(Make(h.facts(), h.app(), request)))
	return h
}

// Which remedies make which of the owner's own writes fail is in docs/reference/remedies.md, and nothing else does.
func TestOwnersWritesThatFail(t *testing.T) {
	found := map[string][]string{}
	for name := range configs("0-7") {
		for what, write := range ownersWrites {
			if err := write(held(t, name, "")); err != nil {
				if !strings.Contains(what, "other CPUs of the pod") { // v1: its children's CPUs come first, with or without us
					t.Fatalf("%s: %s fails without any remedy: %v", name, what, err)
				}
				continue
			}
			for _, kind := range append(Kinds(), longBurst) {
				if err := write(held(t, name, kind)); err != nil {
					version := map[bool]string{true: "v1", false: "v2"}[strings.HasPrefix(name, "v1")]
					row := fmt.Sprintf("| `%s` | %s | %s |", kind, what, version)
					if !slices.Contains(found[row], name) {
						found[row] = append(found[row], name)
					}
				}
			}
		}
	}
	page, err := os.ReadFile("../../../docs/reference/remedies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## What the owner can no longer write\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			cells := strings.Split(line, "|")
			told = append(told, strings.Join(cells[:4], "|")+"|")
		}
	}
	if rows := slices.Sorted(maps.Keys(found)); !ok || !slices.Equal(rows, slices.Sorted(slices.Values(told))) {
		t.Errorf("the page has\n%s\nand it is\n%s", strings.Join(slices.Sorted(slices.Values(told)), "\n"), strings.Join(rows, "\n"))
	}
}

// A burst that is above the limit that the owner is about to write is lowered first. The journal has it: what is left is undone.
func TestBurstsAbove(t *testing.T) {
	of := func(quota time.Duration) cgroup.Limit {
		return cgroup.Limit{Quota: quota, Period: 100 * time.Millisecond}
	}
	for name := range configs("0-7") {
		h := held(t, name, Burst)
		before, err := apply.Status(h.env())
		if err != nil {
			t.Fatal(err)
		}
		app := func(path string) bool { return path == appPath }
		limit := func(path string) (cgroup.Limit, bool) {
			l, err := cgroup.ReadLimit(h.k, path)
			return l, err == nil
		}
		if parts := BurstsAbove(before, app, of(100*time.Millisecond), limit); len(parts) > 0 {
			t.Errorf("%s: a quota as large as the burst: %+v", name, parts)
		}
		if parts := BurstsAbove(before, app, of(-1), limit); len(parts) > 0 {
			t.Errorf("%s: no quota: %+v", name, parts)
		}
		if parts := BurstsAbove(before, func(string) bool { return false }, of(time.Millisecond), limit); len(parts) > 0 {
			t.Errorf("%s: another container: %+v", name, parts)
		}
		parts := BurstsAbove(before, app, of(60*time.Millisecond), limit)
		if _, err := apply.Replace(context.Background(), h.env(), parts); err != nil {
			t.Fatal(err)
		}
		if err := ownersWrites["a lower limit of the container"](h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := h.owned(podPath, cgroup.Limit{Quota: 260 * time.Millisecond, Period: 100 * time.Millisecond}); err != nil {
			t.Errorf("%s: the pod, by as much: %v", name, err)
		}
		after, err := cgroup.ReadLimit(h.k, appPath)
		if want := (cgroup.Limit{Quota: 60 * time.Millisecond, Period: 100 * time.Millisecond,
			Burst: 60 * time.Millisecond}); err != nil || after != want {
			t.Errorf("%s: %+v, %v", name, after, err)
		}
		h.restore("")
		if after, err = cgroup.ReadLimit(h.k, appPath); err != nil || after.Burst != 0 || after.Quota != 60*time.Millisecond {
			t.Errorf("%s: restored: %+v, %v", name, after, err)
		}
	}
}

// A burst in a longer period is above any quota that the owner writes in its own, also above a higher limit's: it is lowered for each.
func TestBurstsInALongPeriodMakeRoom(t *testing.T) {
	for name := range configs("0-7") {
		for _, quota := range []time.Duration{60 * time.Millisecond, 150 * time.Millisecond} {
			h := held(t, name, longBurst)
			before, err := apply.Status(h.env())
			if err != nil {
				t.Fatal(err)
			}
			want := cgroup.Limit{Quota: quota, Period: 100 * time.Millisecond}
			parts := BurstsAbove(before, func(path string) bool { return path == appPath }, want, func(path string) (cgroup.Limit, bool) {
				l, err := cgroup.ReadLimit(h.k, path)
				return l, err == nil
			})
			if _, err := apply.Replace(context.Background(), h.env(), parts); err != nil {
				t.Fatal(err)
			}
			pod := cgroup.Limit{Quota: 200*time.Millisecond + quota, Period: 100 * time.Millisecond}
			writes := []func() error{func() error { return h.owned(appPath, want) }, func() error { return h.owned(podPath, pod) }}
			if quota > 100*time.Millisecond { // the kubelet raises the pod first
				slices.Reverse(writes)
			}
			for _, write := range writes {
				if err := write(); err != nil {
					t.Errorf("%s, %v: %v", name, quota, err)
				}
			}
			h.restore("")
			if after, err := cgroup.ReadLimit(h.k, appPath); err != nil || after.Burst != 0 || after.Quota != quota {
				t.Errorf("%s: restored: %+v, %v", name, after, err)
			}
		}
	}
}

// Where the owner resizes the container a burst leaves room for a limit of half as much.
func TestBurstLeavesRoom(t *testing.T) {
	for _, period := range []time.Duration{0, time.Second} {
		h := held(t, "v2", "")
		h.apply(must(t)(Make(h.facts(), h.app(), Request{Kind: Burst, Room: true, Period: period})))
		if err := ownersWrites["a lower limit of the container"](h); err != nil {
			t.Errorf("period %v: %v", period, err)
		}
	}
}

// On cgroup v1 a runtime's resize under another period may end half done: there is none where the owner resizes the container.
func TestNoOtherPeriodWhereTheOwnerResizes(t *testing.T) {
	for _, r := range []Request{{Kind: Burst, Period: time.Second}, {Kind: Period, Period: time.Second}, {Kind: Period}} {
		r.Room = true
		for name, refused := range map[string]bool{"v1": true, "v2": false} {
			h := held(t, name, "")
			_, err := Make(h.facts(), h.app(), r)
			if got := errors.As(err, new(*Refused)); got != refused {
				t.Errorf("%s of %v on %s: %v", r.Kind, r.Period, name, err)
			}
		}
	}
	h := held(t, "v1", "")
	if _, err := Make(h.facts(), h.app(), Request{Kind: Burst, Room: true}); err != nil {
		t.Errorf("a burst in the owner's period: %v", err)
	}
}

func (h *host) app() container.Container {
	return h.containers[slices.IndexFunc(h.containers, func(c container.Container) bool { return c.Group.Path == appPath })]
}
