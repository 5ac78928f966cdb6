package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/systemd/unitprop"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

// unitFake is a manager with one unit's properties; it writes the file behind AllowedCPUs as systemd does.
type unitFake struct {
	scene *scene
	path  string
	props map[string]string
	gone  bool
	// forgotten are the values that were told when their drop-ins went.
	forgotten []map[string]map[string]string
}

func (u *unitFake) Forget(_ context.Context, values map[string]map[string]string) error {
	u.forgotten = append(u.forgotten, values)
	return nil
}

func (u *unitFake) Get(_ context.Context, unit, property string) (string, error) {
	if u.gone {
		return "", fmt.Errorf("unit %s: %w", unit, fs.ErrNotExist)
	}
	return u.props[property], nil
}

func (u *unitFake) Set(_ context.Context, _ string, props map[string]string, runtime bool) error {
	if !runtime {
		return errors.New("not as a runtime property")
	}
	for name, value := range props {
		u.props[name] = value
		if name == unitprop.AllowedCPUs {
			// systemd logs what the kernel refuses and goes on.
			_ = u.scene.k.Write(cgroup.CPUSet, u.path, cgroup.FileCPUs, value)
		}
	}
	return nil
}

func propertyOf(file, to string, op change.Op) change.Change {
	return change.Change{Kind: change.KindSystemd, Op: op, Path: "/pods/b", Unit: "b.scope", File: file, To: to}
}

// TestSystemdProperties: set as runtime properties, shared and restored like files; the file behind a list is seen
// to as well.
func TestSystemdProperties(t *testing.T) {
	s := newScene(t, cgroup.V2)
	u := &unitFake{scene: s, path: "/pods/b", props: map[string]string{"AllowedCPUs": "", "CPUQuotaPerSecUSec": "2000000"}}
	s.env.Systemd = u
	before := s.k.Snapshot()
	first := s.apply(txn.Purpose{}, []change.Change{propertyOf("AllowedCPUs", "6-7", change.OpRemoveCPUs),
		propertyOf("CPUQuotaPerSecUSec", "infinity", change.OpSet)})
	s.apply(txn.Purpose{}, []change.Change{propertyOf("AllowedCPUs", "4-5", change.OpRemoveCPUs)})
	if u.props["AllowedCPUs"] != "0-3" || u.props["CPUQuotaPerSecUSec"] != "infinity" {
		t.Errorf("in force: %v", u.props)
	}
	_, err := Restore(t.Context(), s.env, Selector{IDs: []string{first.ID}})
	s.must(err)
	if u.props["AllowedCPUs"] != "0-3,6-7" || u.props["CPUQuotaPerSecUSec"] != "2000000" {
		t.Errorf("after taking back the first: %v", u.props)
	}
	s.must(s.everythingBack(before))
	if u.props["AllowedCPUs"] != "" {
		t.Errorf("in the end: %v", u.props)
	}
	// What another transaction holds is not forgotten: its value would be gone until it is set again.
	want := []map[string]map[string]string{{"b.scope": {"CPUQuotaPerSecUSec": "2000000"}}, {"b.scope": {"AllowedCPUs": ""}}}
	if !reflect.DeepEqual(u.forgotten, want) {
		t.Errorf("forgotten: %v, want %v", u.forgotten, want)
	}
}

// What is set again soon is forgotten once, in the end.
func TestSystemdKeepsWhatIsSetAgain(t *testing.T) {
	s := newScene(t, cgroup.V2)
	u := &unitFake{scene: s, path: "/pods/b", props: map[string]string{"CPUQuotaPerSecUSec": "2000000"}}
	s.env.Systemd = u
	changes := []change.Change{propertyOf("CPUQuotaPerSecUSec", "infinity", change.OpSet)}
	for range 3 {
		done := s.apply(txn.Purpose{}, changes)
		_, err := Restore(t.Context(), s.env, Selector{IDs: []string{done.ID}, Again: true})
		s.must(err)
	}
	if len(u.forgotten) != 0 {
		t.Errorf("forgotten between two turns: %v", u.forgotten)
	}
	s.must(Forget(t.Context(), s.env, changes))
	want := []map[string]map[string]string{{"b.scope": {"CPUQuotaPerSecUSec": "2000000"}}}
	if !reflect.DeepEqual(u.forgotten, want) {
		t.Errorf("forgotten: %v, want %v", u.forgotten, want)
	}
	s.apply(txn.Purpose{}, changes)
	s.must(Forget(t.Context(), s.env, changes))
	if len(u.forgotten) != 1 {
		t.Errorf("forgotten while in force: %v", u.forgotten)
	}
}

func TestSystemdUnitGoneOrManagerGone(t *testing.T) {
	s := newScene(t, cgroup.V1)
	u := &unitFake{scene: s, path: "/pods/b", props: map[string]string{"CPUQuotaPerSecUSec": "2000000"}}
	s.env.Systemd = u
	s.apply(txn.Purpose{}, []change.Change{propertyOf("CPUQuotaPerSecUSec", "infinity", change.OpSet)})
	s.env.Systemd = nil
	r, err := Restore(t.Context(), s.env, Selector{})
	if open, _ := Status(s.env); len(open) != 1 || r.Verdict != verdictNotRestored || !errors.As(err, new(*NotRestored)) {
		t.Errorf("without a manager the transaction must stay open: %q, %v, %v", r.Verdict, open, err)
	}
	u.gone, s.env.Systemd = true, u
	r, err = Restore(t.Context(), s.env, Selector{})
	s.must(err)
	if open, _ := Status(s.env); len(open) != 0 || len(r.Skipped) != 1 || r.Skipped[0].Why != whyGone {
		t.Errorf("the unit is gone: %+v, %v", r, open)
	}
}
