package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup/cgroupmodel"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// TestRandomHistories plays random sequences of apply, restore, crash and writes by strangers. At the end, after
// restoring everything, each setting that no stranger wrote since we first held it has its original value, each that a
// stranger wrote last has the stranger's, and nothing is in force.
func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.SampledFrom([]cgroup.Version{cgroup.V1, cgroup.V2}).Draw(rt, "version")
		s := newScene(t, v)
		p := &player{scene: s, rt: rt, strangers: map[string]string{}}
		p.before = s.k.Snapshot()
		for range rapid.IntRange(1, 12).Draw(rt, "length") {
			switch rapid.SampledFrom([]string{"apply", "apply", "apply", "restore", "crash", "stranger"}).Draw(rt, "what") {
			case "apply":
				p.apply()
			case "restore":
				p.restore()
			case "crash":
				p.crash()
			case "stranger":
				p.stranger()
			}
			if bad := s.k.Check(); len(bad) > 0 {
				rt.Fatal(bad)
			}
		}
		p.end()
	})
}

type player struct {
	*scene
	rt        *rapid.T
	before    cgroupmodel.Snapshot
	strangers map[string]string // what a stranger last wrote to the CPUs of a cgroup
}

// draw is a transaction on siblings whose sets no child constrains: sets, removals, limits.
func (p *player) draw() (txn.Purpose, []change.Change) {
	pods := []string{"/pods/a", "/pods/b", "/pods/c"}
	target := rapid.SampledFrom(pods).Draw(p.rt, "target")
	var changes []change.Change
	for _, pod := range pods {
		list := rapid.SampledFrom([]string{"7", "6-7", "5", "4-5"}).Draw(p.rt, "cpus of "+pod)
		switch rapid.SampledFrom([]string{"set", "remove", "limit", "none"}).Draw(p.rt, "for "+pod) {
		case "set":
			changes = append(changes, cpus(pod, list))
		case "remove":
			changes = append(changes, without(pod, list))
		case "limit":
			changes = append(changes, p.unlimited(pod)...)
		}
	}
	if rapid.Bool().Draw(p.rt, "pods too") {
		changes = append(changes, p.unlimited("/pods")...)
	}
	return txn.Purpose{Target: txn.Target{Path: target}, Remedy: "test"}, changes
}

func (p *player) apply() {
	purpose, changes := p.draw()
	r, err := Apply(context.Background(), p.env, purpose, changes)
	if err != nil && r.ID != "" && r.Verdict != verdictUndone {
		p.rt.Fatalf("%v, verdict %q", err, r.Verdict)
	}
}

func (p *player) restore() {
	open, err := Status(p.env)
	if err != nil {
		p.rt.Fatal(err)
	}
	if len(open) == 0 {
		return
	}
	p.takeBack(open[rapid.IntRange(0, len(open)-1).Draw(p.rt, "which")].ID)
}

// takeBack restores one transaction, if it is still open. Where the others leave nothing of a value, what the message
// names goes first, and must then be enough.
func (p *player) takeBack(id string) {
	open, err := Status(p.env)
	if err != nil {
		p.rt.Fatal(err)
	}
	if !slices.ContainsFunc(open, func(s txn.InForce) bool { return s.ID == id }) {
		return
	}
	_, err = Restore(context.Background(), p.env, Selector{IDs: []string{id}})
	var not *NotRestored
	if !errors.As(err, &not) {
		if err != nil {
			p.rt.Fatal(err)
		}
		return
	}
	for _, left := range not.Left {
		_, ids, named := strings.Cut(left.Why, "first run unthrottle restore ")
		if !named || strings.Contains(ids, id) {
			p.rt.Fatal(err)
		}
		for first := range strings.SplitSeq(ids, " and ") {
			p.takeBack(first)
		}
	}
	p.takeBack(id)
}

func (p *player) crash() {
	p.killAt(rapid.IntRange(1, 60).Draw(p.rt, "kill at"))
	restoring := rapid.Bool().Draw(p.rt, "while restoring")
	crashed, err := crashes(func() error {
		if restoring {
			_, err := Restore(context.Background(), p.env, Selector{})
			return err
		}
		p.apply()
		return nil
	})
	p.k.Before = nil
	if err != nil && !crashed {
		p.rt.Fatal(err)
	}
}

// stranger writes what the kernel takes anyhow, also over values of ours: a pod's CPUs and its weight's neighbour, the burst.
func (p *player) stranger() {
	path := rapid.SampledFrom([]string{"/pods/a", "/pods/b", "/pods/c"}).Draw(p.rt, "by a stranger")
	list := rapid.SampledFrom([]string{"0", "1-2", "0-3"}).Draw(p.rt, "to")
	if err := p.k.Write(cgroup.CPUSet, path, cgroup.FileCPUs, list); err != nil {
		p.rt.Fatal(err)
	}
	p.strangers[path] = list
}

func (p *player) end() {
	r, err := Restore(context.Background(), p.env, Selector{})
	if err != nil {
		p.rt.Fatal(err)
	}
	open, err := Status(p.env)
	if err != nil || len(open) != 0 {
		p.rt.Fatalf("still in force: %+v, %v", open, err)
	}
	for setting, now := range p.k.Snapshot() {
		if p.before[setting] == now {
			continue
		}
		// A stranger's value stands, or, where we held the setting only afterwards, it is the original.
		if wrote, ok := p.strangers[setting.Path]; ok && setting.File == cgroup.FileCPUs {
			if now != wrote {
				p.rt.Errorf("%v: a stranger wrote %q, it is %q", setting, wrote, now)
			}
			continue
		}
		p.rt.Errorf("%v: was %q, is %q; skipped %v", setting, p.before[setting], now, r.Skipped)
	}
}

// TestOverlapKeepsTheOther: taking back one of two pins leaves the other in force and right.
func TestOverlapKeepsTheOther(t *testing.T) {
	bothVersions(t, func(t *testing.T, v cgroup.Version) {
		for _, order := range [][]int{{0, 1}, {1, 0}} {
			s := newScene(t, v)
			before := s.k.Snapshot()
			var ids []string
			for _, next := range []func() (txn.Purpose, []change.Change){s.pinA, s.pinC} {
				purpose, changes := next()
				r, err := Apply(t.Context(), s.env, purpose, changes)
				s.must(err)
				ids = append(ids, r.ID)
			}
			read := func(c cgroup.Controller, path, file string) string {
				text, err := s.k.Read(c, path, file)
				s.must(err)
				return text
			}
			quota := cgroup.LimitFiles(v)[0]
			lifted := read(cgroup.CPU, "/pods", quota)
			_, err := Restore(t.Context(), s.env, Selector{IDs: ids[order[0]:][:1]})
			s.must(err)
			want := map[int]string{0: "0-3,6-7 0-7 4-5", 1: "0-5 6-7 0-5"}[order[0]]
			got := fmt.Sprint(read(cgroup.CPUSet, "/pods/b", "cpuset.cpus"), " ", read(cgroup.CPUSet, "/pods/a", "cpuset.cpus"),
				" ", read(cgroup.CPUSet, "/pods/c", "cpuset.cpus"))
			if got != want {
				t.Errorf("after taking back %d: b, a, c are %q, want %q", order[0], got, want)
			}
			if now := read(cgroup.CPU, "/pods", quota); now != lifted {
				t.Errorf("the ancestor's quota came back too early: %q", now)
			}
			_, err = Restore(t.Context(), s.env, Selector{IDs: ids[order[1]:][:1]})
			s.must(err)
			s.must(s.everythingBack(before))
		}
	})
}
