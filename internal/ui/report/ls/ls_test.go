package ls

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"
	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/see/observe"
	"github.com/unthrottle/unthrottle/internal/text"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
)

const ms = time.Millisecond

// examples are a container stopped by itself, one by its pod, one that is fine and one that could not be measured.
func examples() []observe.Observation {
	own := func(path string, quota time.Duration) cgroup.Level {
		return cgroup.Level{Path: path, Limit: cgroup.Limit{Quota: quota, Period: 100 * ms}}
	}
	fine := observe.Observation{Container: container.Container{Name: "fine", Group: cgroup.Group{Path: "/fine"}},
		Start: time.Unix(1, 0), Window: time.Second, CPUsAllowed: cpuset.New(0, 1), Levels: []cgroup.Level{own("/fine", -1)},
		UsedCPUs: new(0.014), Periods: new(uint64(0)), ThrottledPeriods: new(uint64(0)),
		ThrottledSeconds: new(0.0), OwnThrottledSeconds: new(0.0), StoppedLow: new(0 * ms), StoppedHigh: new(0 * ms)}
	byPod := observe.Observation{
		Container: container.Container{Name: "shop/cart", Pod: "cart-0", Namespace: "shop", ContainerName: "app", Image: "cart:2",
			QoS: container.Burstable, Project: "shop", Service: "cart", ID: "4f", Runtime: "containerd",
			Group: cgroup.Group{Path: "/kubepods/podx/c"}},
		Start: time.Unix(1, 0), Window: time.Second, CPUsAllowed: cpuset.New(0, 1, 2, 3),
		Levels: []cgroup.Level{own("/kubepods/podx/c", -1), own("/kubepods/podx", 20*ms)}, LimitCPUs: new(0.2),
		LimitAt: "/kubepods/podx", UsedCPUs: new(0.2), Periods: new(uint64(0)), ThrottledPeriods: new(uint64(0)),
		ThrottledSeconds: new(0.815), OwnThrottledSeconds: new(0.0), StoppedLow: new(203750 * time.Microsecond),
		StoppedHigh: new(815 * ms), ThrottledBy: "/kubepods/podx",
		ThrottledByAll: []observe.Share{{Path: "/kubepods/podx", Seconds: 0.815}}}
	bySelf := observe.Observation{Container: container.Container{Name: "batch", Group: cgroup.Group{Path: "/batch"}},
		Start: time.Unix(1, 0), Window: time.Second, CPUsAllowed: cpuset.New(0), Levels: []cgroup.Level{own("/batch", 50*ms)},
		LimitCPUs: new(0.5), LimitAt: "/batch", UsedCPUs: new(0.5), Periods: new(uint64(10)), ThrottledPeriods: new(uint64(1)),
		ThrottledSeconds: new(0.004), OwnThrottledSeconds: new(0.004), StoppedLow: new(4 * ms), StoppedHigh: new(4 * ms),
		ThrottledBy: observe.BySelf, ThrottledByAll: []observe.Share{{Path: "/batch", Seconds: 0.004}}}
	blind := observe.Observation{Container: container.Container{Name: "blind", Group: cgroup.Group{Path: "/blind"}},
		Start: time.Unix(1, 0), NotMeasured: []string{"cpu.stat of /blind: permission denied"}}
	return []observe.Observation{blind, fine, bySelf, byPod}
}

func written(t *testing.T, observations []observe.Observation, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, observations, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	want := `NAME       LIMIT  USED  THROTTLED       STOPPED  CPUS  BY
shop/cart    0.2  0.20        0/0  204-815 ms/s  0-3   pod
batch        0.5  0.50       1/10      4.0 ms/s  0     self
fine        none  0.01        0/0        0 ms/s  0-1   none
blind          -     -          -             -  -     -

Not measured:
  cpu.stat of /blind: permission denied (1 container)
`
	if diff := cmp.Diff(want, written(t, examples(), Options{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A window with few periods of a long one says how long to look.
func TestFewPeriods(t *testing.T) {
	all := examples()
	for i := range all {
		all[i].Window = time.Second
	}
	if got := written(t, all, Options{}); strings.Contains(got, "Few periods") {
		t.Errorf("ten periods of 100 ms are enough:\n%s", got)
	}
	all[0].Levels = []cgroup.Level{{Path: "/a", Limit: cgroup.Limit{Quota: 300 * time.Millisecond, Period: time.Second}}}
	want := "Few periods: the window has fewer than 5 of the quota of 1 container, which is refilled every 1 s: --for 10s tells more\n"
	if got := written(t, all, Options{}); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

func TestWide(t *testing.T) {
	first := strings.Split(written(t, examples(), Options{Wide: true}), "\n")[1]
	want := []string{"shop/cart", "0.2", "0.20", "0/0", "204-815", "ms/s", "0-3", "pod", "/kubepods/podx/c", "cart-0",
		"shop", "Burstable", "shop/cart", "cart:2", "containerd", "none", "none", "815", "ms"}
	if diff := cmp.Diff(want, strings.Fields(first)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Units and cgroups without a limit that do nothing are counted; an idle container has its line, and so has what could not be
// measured.
func TestIdle(t *testing.T) {
	all := examples()
	idle := all[1]
	idle.UsedCPUs = new(0.004)
	mount := idle
	mount.Container.Name, mount.Container.Runtime = "tmp.mount", container.Systemd
	inPod := idle
	inPod.Container.Name, inPod.Container.Runtime = "web", container.Containerd
	got := written(t, append(all, idle, mount, inPod), Options{})
	for _, want := range []string{"\nfine ", "\nblind ", "\nweb ", "\nand 2 units and cgroups without a limit that used no CPU time: see -o wide\n"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, got)
		}
	}
	if wide := written(t, append(all, idle, mount, inPod), Options{Wide: true}); !strings.Contains(wide, "\ntmp.mount ") ||
		strings.Contains(wide, "see -o wide") {
		t.Errorf("wide: %s", wide)
	}
}

func TestMarksWhatIsStopped(t *testing.T) {
	got := written(t, examples(), Options{Color: true})
	if !strings.Contains(got, page.Red+"204-815 ms/s"+page.Plain) || strings.Contains(got, page.Red+"0 ms/s") ||
		!strings.Contains(got, page.Green+"0 ms/s") {
		t.Errorf("not marked as it should be:\n%q", got)
	}
	if strings.Contains(written(t, examples(), Options{}), "\x1b") {
		t.Error("colour without being asked")
	}
}

// Whatever strangers call their cgroups: one line each, nothing but printable text, and not wider than the terminal
// where it is wide enough for the least of all columns.
func TestNamesAreData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := string(rapid.SliceOfN(rapid.Byte(), 1, 255).Draw(t, "name"))
		o := examples()[1]
		o.Container.Name, o.Container.Group.Path, o.ThrottledBy, o.Container.Pod = raw, "/"+raw, "/"+raw, raw
		o.NotMeasured = []string{raw}
		width := rapid.IntRange(90, 300).Draw(t, "width")
		var b bytes.Buffer
		if err := Write(&b, []observe.Observation{o, o}, Options{Width: width}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if len(lines) < 6 || !utf8.Valid(b.Bytes()) {
			t.Fatalf("%d lines:\n%q", len(lines), b.String())
		}
		for i, l := range lines {
			if utf8.RuneCountInString(l) > width && (i < 3 || strings.Contains(strings.TrimLeft(l, " "), " ")) {
				t.Fatalf("%d columns in a terminal of %d:\n%s", utf8.RuneCountInString(l), width, l)
			}
			if strings.ContainsFunc(l, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
				t.Fatalf("control characters: %q", l)
			}
		}
	})
}

func TestJSONIsTheContract(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, examples()); err != nil {
		t.Fatal(err)
	}
	var whole struct{ Containers []map[string]any }
	if err := json.Unmarshal(b.Bytes(), &whole); err != nil {
		t.Fatal(err)
	}
	got := whole.Containers
	contract := map[string]any{
		"path": "/kubepods/podx/c", "name": "shop/cart", "limit_cpus": 0.2, "window_seconds": 1.0, "used_cpus": 0.2,
		"periods": 0.0, "throttled_periods": 0.0, "throttled_seconds": 0.815, "own_throttled_seconds": 0.0,
		"stopped_seconds_low": 0.20375, "stopped_seconds_high": 0.815, "throttled_by": "/kubepods/podx",
		"namespace": "shop", "pod": "cart-0", "container": "app", "image": "cart:2", "runtime": "containerd", "scope": "pod",
		"qos": "Burstable", "project": "shop", "service": "cart",
		"throttled_by_all": []any{map[string]any{"path": "/kubepods/podx", "seconds": 0.815}}, "cpus": "0-3",
	}
	for key, want := range contract {
		if diff := cmp.Diff(want, got[0][key]); diff != "" {
			t.Errorf("%s: -want +got\n%s", key, diff)
		}
	}
	blind := got[slices.IndexFunc(got, func(m map[string]any) bool { return m["name"] == "blind" })]
	for _, key := range []string{"limit_cpus", "used_cpus", "periods", "throttled_periods", "throttled_seconds",
		"own_throttled_seconds", "stopped_seconds_low", "stopped_seconds_high", "throttled_by", "cpus", "namespace",
		"pod", "container", "image", "runtime",
		"scope", "qos", "project", "service"} {
		if value, there := blind[key]; !there || value != nil {
			t.Errorf("%s: %v (there: %v), want null", key, value, there)
		}
	}
	if diff := cmp.Diff([]any{"cpu.stat of /blind: permission denied"}, blind["not_measured"]); diff != "" {
		t.Error(diff)
	}
	for _, key := range []string{"throttled_by_all", "levels"} {
		if _, isArray := blind[key].([]any); !isArray {
			t.Errorf("%s is no array", key)
		}
	}
}

func TestJSONOfNothingAndOfBadBytes(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, nil); err != nil || !strings.Contains(b.String(), `"containers": []`) {
		t.Errorf("no containers: %q, %v", b.String(), err)
	}
	o := examples()[1]
	o.Container.Group.Path = "/a\xff\n"
	b.Reset()
	if err := JSON(&b, []observe.Observation{o}); err != nil {
		t.Fatal(err)
	}
	var got struct{ Containers []struct{ Path string } }
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || text.UnescapePath(got.Containers[0].Path) != "/a\xff\n" {
		t.Errorf("path %q does not lead back, %v", got, err)
	}
}
