package live

import (
	"testing"
	"testing/fstest"

	"github.com/unthrottle/unthrottle/internal/see/recording"
)

// The host's part of a header comes from files alone, so that a loaded sched_ext scheduler is found in a fake tree.
func TestSchedExtIsReadFromSysfs(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, c := range []struct {
		name string
		root fstest.MapFS
		want string
	}{
		{"no sched_ext", fstest.MapFS{"proc/sys/kernel/osrelease": file("6.12.1\n")}, ""},
		{"none loaded", fstest.MapFS{"sys/kernel/sched_ext/state": file("disabled\n")}, ""},
		{"loaded", fstest.MapFS{"sys/kernel/sched_ext/state": file("enabled\n"), "sys/kernel/sched_ext/root/ops": file("lavd\n")}, "lavd"},
		{"loaded, unnamed", fstest.MapFS{"sys/kernel/sched_ext/state": file("enabled\n")}, "(unnamed)"},
	} {
		var h recording.Header
		Options{Root: c.root}.complete(&h)
		if h.Host.SchedExt != c.want {
			t.Errorf("%s: %q, want %q", c.name, h.Host.SchedExt, c.want)
		}
	}
}
