package change_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/txn/change"
	"github.com/unthrottle/unthrottle/topology"
)

func TestFold(t *testing.T) {
	set := func(to string) change.Hold { return change.Hold{Op: change.OpSet, To: to} }
	remove := func(list string) change.Hold { return change.Hold{Op: change.OpRemoveCPUs, To: list} }
	for _, c := range []struct {
		file, original, base string
		holds                []change.Hold
		want                 string
	}{
		{"cpuset.cpus", "0-7", "", nil, "0-7"},
		{"cpuset.cpus", "0-7", "", []change.Hold{remove("6-7"), remove("4-5")}, "0-3"},
		{"cpuset.cpus", "0-7", "", []change.Hold{remove("4-5")}, "0-3,6-7"},
		{"cpuset.cpus", "", "0-7", []change.Hold{remove("4-5")}, "0-3,6-7"},
		{"cpuset.cpus", "", "0-7", nil, ""},
		{"cpuset.cpus", "", "", []change.Hold{remove("1")}, ""}, // v1: never filled
		{"cpuset.cpus", "0-7", "", []change.Hold{remove("0"), set("0-1"), remove("1")}, "0"},
		{"cpuset.cpus", "0-7", "", []change.Hold{set("7"), remove("7"), set("0-1")}, "0-1"}, // 7 without 7 is no value
		{"cpu.max", "50000 100000", "", []change.Hold{set("max 100000"), set("max 100000")}, "max 100000"},
		{"cpu.max", "50000 100000", "", []change.Hold{{To: "max 100000"}}, "max 100000"},
	} {
		if got, err := change.Fold(c.file, c.original, c.base, c.holds); err != nil || got != c.want {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	for _, holds := range [][]change.Hold{{remove("0-7")}, {set("7"), remove("7")}, {remove("x")}, {{Op: "add", To: "1"}}} {
		if got, err := change.Fold("cpuset.cpus", "0-7", "", holds); err == nil {
			t.Errorf("%+v: got %q", holds, got)
		}
	}
	if got, err := change.Fold("cpu.max", "max 100000", "", []change.Hold{remove("1")}); err == nil {
		t.Errorf("CPUs out of a quota: %q", got)
	}
}

// TestFoldForgets: what a hold did to a list is gone when it is left out, in whatever order the others came.
func TestFoldForgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		removals := rapid.SliceOfN(rapid.IntRange(0, 6), 0, 6).Draw(t, "removals")
		var holds []change.Hold
		left := map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true}
		for _, cpu := range removals {
			holds = append(holds, change.Hold{Op: change.OpRemoveCPUs, To: string(rune('0' + cpu))})
			delete(left, cpu)
		}
		got, err := change.Fold("cpuset.cpus", "0-7", "", holds)
		if err != nil {
			t.Fatal(err)
		}
		set, err := topology.ParseList(got)
		if err != nil || set.Size() != len(left) {
			t.Fatalf("%q after removing %v", got, removals)
		}
	})
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ file, a, b string }{
		{"cpuset.cpus", "0,1,2,5", "0-2,5\n"}, {"cpuset.mems", " 0", "0"}, {"AllowedCPUs", "1,0", "0-1"},
		{"cpu.cfs_quota_us", "-1", "-1000"}, {"cpu.max", "max  100000", "max 100000"}, {"cpuset.cpus", "", "\n"},
	} {
		if !change.Same(c.file, c.a, c.b) {
			t.Errorf("%s: %q and %q are not the same", c.file, c.a, c.b)
		}
	}
	if change.Same("cpuset.cpus", "", "0") || change.Same("cpuset.cpus", "x", "") || change.Same("cpu.max", "max", "100000") {
		t.Error("different values are the same")
	}
}

// CPUs put in after others were taken out; an empty list has all of them already.
func TestFoldAdds(t *testing.T) {
	for _, tc := range []struct{ original, base, want string }{
		{"0-3", "", "0-1,3"}, {"", "0-3", "0-1,3"},
	} {
		got, err := change.Fold("cpuset.cpus", tc.original, tc.base, []change.Hold{{change.OpRemoveCPUs, "2-3"}, {change.OpAddCPUs, "3"}})
		if err != nil || got != tc.want {
			t.Errorf("%q: got %q, %v, want %q", tc.original, got, err, tc.want)
		}
	}
	if got, err := change.Fold("cpuset.cpus", "", "0-3", []change.Hold{{change.OpAddCPUs, "1"}}); err != nil || got != "" {
		t.Errorf("got %q, %v: an empty list must stay so", got, err)
	}
	for _, bad := range []change.Hold{{change.OpAddCPUs, "x"}, {change.OpAddCPUs, "3-"}} {
		if got, err := change.Fold("cpuset.cpus", "0", "", []change.Hold{bad}); err == nil {
			t.Errorf("%+v: got %q", bad, got)
		}
	}
	if _, err := change.Fold("cpu.weight", "100", "", []change.Hold{{change.OpAddCPUs, "1"}}); err == nil {
		t.Error("a weight is no list")
	}
}
