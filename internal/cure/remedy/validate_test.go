package remedy

import (
	"math"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

func TestSettingsThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct {
		r    Request
		want string
	}{
		"NaN limit":       {Request{Kind: Raise, To: math.NaN()}, "a limit in CPUs of NaN"},
		"endless limit":   {Request{Kind: Raise, To: math.Inf(1)}, "a limit in CPUs of +Inf"},
		"negative limit":  {Request{Kind: Raise, To: -1}, "a limit in CPUs of -1"},
		"NaN factor":      {Request{Kind: Raise, Factor: math.NaN()}, "a factor of NaN"},
		"endless factor":  {Request{Kind: Raise, Factor: math.Inf(1)}, "a factor of +Inf"},
		"negative factor": {Request{Kind: Raise, Factor: -2}, "a factor of -2"},
		"negative burst":  {Request{Kind: Burst, Burst: -1}, "a burst in seconds of -1e-09"},
		"negative period": {Request{Kind: Burst, Period: -1}, "a period in seconds of -1e-09"},
		"negative CPUs":   {Request{Kind: Pin, CPUs: -1}, "a number of CPUs of -1"},
	} {
		f := tree(t, cgroup.V2, map[string]float64{"/a": 2})
		if got := refusal(t, f, target("/a", ""), c.r).Error(); !strings.Contains(got, c.want) || !strings.Contains(got, "above 0") {
			t.Errorf("%s: %q, want %q in it", name, got, c.want)
		}
	}
}

func TestReserveThatIsNotThere(t *testing.T) {
	f := tree(t, cgroup.V2, map[string]float64{"/a": 2})
	for list, want := range map[string]string{"8": "CPUs 8,", "6-9": "CPUs 8-9,", "100": "CPUs 100,"} {
		set := parse(t, list)
		if got := refusal(t, f, target("/a", ""), Request{Kind: Pin, Reserve: &set}).Error(); !strings.Contains(got, want) ||
			!strings.Contains(got, "0-7 are online") {
			t.Errorf("reserve %s: %q", list, got)
		}
	}
	set := parse(t, "7")
	p, err := Make(f, target("/a", ""), Request{Kind: Pin, Reserve: &set})
	if err != nil || p.CPUs.Contains(7) {
		t.Errorf("pinned to %s, %v: 7 is the reserve", p.CPUs, err)
	}
}

// One CPU is the least: no hint says to ask for fewer.
func TestHintWhereOneCPUIsTooMuch(t *testing.T) {
	onEach(t, "0-1", func(t *testing.T, h *host, target container.Container) {
		h.options.Used = map[string]float64{"/a/db": 1.9}
		for want, r := range map[string]Request{"would be left": {Kind: Pin}, "1 free": {Kind: Pin, CPUs: 2}} {
			got := refusal(t, h.facts(), target, r).Error()
			if !strings.Contains(got, want) || strings.Contains(got, "--cpus") != (r.CPUs > 1) || !strings.Contains(got, "--remedy burst") {
				t.Errorf("%d CPUs: %q", r.CPUs, got)
			}
		}
	})
}

// What a neighbour was seen to use above its limit, it does not need.
func TestNeedIsAtMostTheLimit(t *testing.T) {
	onEach(t, "0-1", func(t *testing.T, h *host, target container.Container) {
		h.limit("/a/db", 0.3)
		h.limit("/slice", 0.5)
		h.options.Used = map[string]float64{"/a/db": 0.9, "/slice": 0.8}
		h.shares("/a/db", 3072)
		if _, err := Make(h.facts(), target, Request{Kind: Pin}); err != nil {
			t.Error(err)
		}
		h.limit("/slice", 0.8)
		if why := refusal(t, h.facts(), target, Request{Kind: Pin}).Error(); !strings.Contains(why, "need 1.1 CPUs") {
			t.Error(why)
		}
	})
}
