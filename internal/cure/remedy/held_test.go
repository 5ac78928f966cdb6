package remedy

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/cure/hoststate"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// TestUnreadableTransaction: while a transaction in force cannot be read, its CPUs are unknown. Every planner refuses,
// names the transaction and says what to do, instead of giving the CPUs to another container.
func TestUnreadableTransaction(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		plan, err := Make(h.facts(), target, Request{Kind: Pin})
		if err != nil {
			t.Fatal(err)
		}
		h.apply(plan)
		for name, damage := range map[string]func(*txn.InForce){
			"parameter cpus":      func(f *txn.InForce) { f.Parameters[paramCPUs] = "0-x" },
			"is empty":            func(f *txn.InForce) { delete(f.Parameters, paramCPUs) },
			"parameter pool":      func(f *txn.InForce) { f.Parameters[paramPool] = "all" },
			"parameter idle":      func(f *txn.InForce) { f.Parameters[paramIdle] = "{3}" },
			"parameter limit":     func(f *txn.InForce) { f.Parameters[paramLimit] = "NaN" },
			"parameter lent":      func(f *txn.InForce) { f.Parameters[paramBorrowed] = "-" },
			"parameter withheld":  func(f *txn.InForce) { f.Parameters[paramRevoked] = "7-" },
			"parameter lends":     func(f *txn.InForce) { f.Parameters[paramShares] = "no" },
			"parameter exclusive": func(f *txn.InForce) { f.Parameters["exclusive"] = "7" },
			"parameter cpuset":    func(f *txn.InForce) { f.Parameters[paramSet] = "/a/../b" },
			"remedy \"\" cannot":  func(f *txn.InForce) { f.Remedy = "superpin" },
			"setting cgroup": func(f *txn.InForce) {
				f.Changes = append(f.Changes, change.Change{Kind: change.KindFile, Op: change.OpRemoveCPUs, Path: "/x",
					File: "cpuset.cpus", To: "?"})
			},
		} {
			f := h.facts()
			held := &f.Held[0]
			damage(held)
			f.Journal = "/state/journal.ndjson"
			for planner, run := range map[string]func(hoststate.Facts) error{
				"Make": func(f hoststate.Facts) error {
					_, err := Make(f, h.containers[1], Request{Kind: Pin, CPUs: 1})
					return err
				},
				"ConfineSystem": func(f hoststate.Facts) error { _, err := ConfineSystem(f, Request{}); return err },
				"MoveTo":        func(f hoststate.Facts) error { _, err := MoveTo(f, held.ID, cpuset.New(5)); return err },
				"Reassert":      func(f hoststate.Facts) error { _, err := Reassert(f, []string{held.ID}); return err },
				"Upkeep":        func(f hoststate.Facts) error { _, err := Reconcile(f); return err },
				"Withhold":      func(f hoststate.Facts) error { _, err := Revoke(f, held.ID); return err },
				"State":         func(f hoststate.Facts) error { _, err := State(f, nil, nil); return err },
				"WidenMems":     func(f hoststate.Facts) error { _, err := WidenMems(f, held.Target, cpuset.New(5)); return err },
				"Placing":       func(f hoststate.Facts) error { _, _, err := Placing(f, held.Target); return err },
				"Conflicts":     func(f hoststate.Facts) error { _, err := Conflicts(f); return err },
				"FollowsMemory": func(f hoststate.Facts) error { _, err := FollowsMemory(f, held.Target); return err },
				"NarrowMems":    func(f hoststate.Facts) error { _, err := NarrowMems(f, held.Target); return err },
			} {
				err := run(f)
				var unreadable *Unreadable
				if !errors.As(err, &unreadable) || unreadable.ID != held.ID {
					t.Errorf("%s, %s: %v", name, planner, err)
					continue
				}
				if text := err.Error(); !strings.Contains(text, name) || !strings.Contains(text, "in "+f.Journal) ||
					!strings.Contains(text, "run unthrottle restore "+held.ID) {
					t.Errorf("%s, %s: %s", name, planner, text)
				}
			}
			if _, found := Respread(f, held.ID); found {
				t.Errorf("%s: a move was planned", name)
			}
		}
	})
}
