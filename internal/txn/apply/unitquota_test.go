package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// TestAUnitsQuotaMustBeItsCgroups: where the files say something else than the property, the one is no original of the
// other, and nothing is written.
func TestAUnitsQuotaMustBeItsCgroups(t *testing.T) {
	for _, c := range []struct {
		unit, file string
		says       []string // nil: taken
	}{
		{"2000000", "100000 50000", nil},
		{"2015000", "100000 50000", nil},
		{"infinity", "max 50000", nil},
		{"500", "1000 1000000", nil}, // the least that the kernel takes
		{"2000000", "120000 50000", []string{`unit "b.scope"`, "allows 2 CPUs", `cgroup "/pods/b" 2.4 CPUs`,
			"CPUQuota=240%", "CPUQuota=200% for"}},
		{"2000000", "max 50000", []string{"any number of CPUs", "CPUQuota=,"}},
		{"infinity", "100000 50000", []string{"allows any number", "CPUQuota=200%"}},
		{"12.5", "100000 50000", []string{"no number of microseconds"}},
	} {
		t.Run(c.unit+" and "+c.file, func(t *testing.T) {
			s := newScene(t, cgroup.V2)
			u := &unitFake{scene: s, path: "/pods/b", props: map[string]string{"CPUQuotaPerSecUSec": c.unit}}
			s.env.Systemd = u
			s.must(s.k.Write(cgroup.CPU, "/pods/b", "cpu.max", c.file))
			before := fmt.Sprint(s.k.Snapshot(), u.props)
			changes := []change.Change{propertyOf("CPUQuotaPerSecUSec", "3000000", change.OpSet)}
			_, planErr := Plan(s.env, txn.Purpose{}, changes)
			_, err := Apply(t.Context(), s.env, txn.Purpose{}, changes)
			for _, err := range []error{planErr, err} {
				if (err != nil) != (c.says != nil) {
					t.Fatalf("got %v", err)
				}
				for _, part := range c.says {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("no %q in %v", part, err)
					}
				}
			}
			if c.says != nil && fmt.Sprint(s.k.Snapshot(), u.props) != before {
				t.Error("something was written")
			}
		})
	}
}

// lateUnit is a manager that has not got round to the file the first time it is asked.
type lateUnit struct {
	*unitFake
	asked int
}

func (u *lateUnit) Get(ctx context.Context, unit, property string) (string, error) {
	if u.asked++; u.asked == 1 {
		return "1000000", nil
	}
	return u.unitFake.Get(ctx, unit, property)
}

func TestAUnitsQuotaMayComeLate(t *testing.T) {
	s := newScene(t, cgroup.V2)
	s.env.Systemd = &lateUnit{unitFake: &unitFake{scene: s, path: "/pods/b", props: map[string]string{"CPUQuotaPerSecUSec": "2000000"}}}
	s.apply(txn.Purpose{}, []change.Change{propertyOf("CPUQuotaPerSecUSec", "infinity", change.OpSet)})
	// One that is on its way out is not waited for.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := world{s.env}
	if err := w.kind(change.KindSystemd).possible(ctx, propertyOf("CPUQuotaPerSecUSec", "1", change.OpSet)); !errors.Is(
		err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
