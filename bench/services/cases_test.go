package services

import (
	"slices"
	"strings"
	"testing"
)

func TestMissing(t *testing.T) {
	c := Case{Needs: []string{"no-such-program some-package", "sh dash", "nor-this other"}}
	if got := c.Missing(); got != "no-such-program, nor-this are not installed: apt-get install some-package other" {
		t.Error(got)
	}
	if got := (Case{Needs: []string{"sh dash"}}).Missing(); got != "" {
		t.Error(got)
	}
	if got := (Case{Jars: "kafka"}).Missing(); !strings.Contains(got, "make service-jars") { // none are in this folder
		t.Error(got)
	}
}

// Bursts come as often, and are larger or smaller; other requests come more or less often.
func TestTimes(t *testing.T) {
	c := Case{Streams: []Stream{{PerSecond: 10}, {PerSecond: 24, Burst: 6}}}
	for times, want := range map[float64][3]float64{1: {10, 24, 6}, 2.4: {24, 56, 14}, 0.01: {0.1, 4, 1}} {
		s := c.Times(times).Streams
		if got := [3]float64{s[0].PerSecond, s[1].PerSecond, float64(s[1].Burst)}; got != want {
			t.Errorf("%g times: %v, want %v", times, got, want)
		}
	}
	if c.Streams[0].PerSecond != 10 {
		t.Error("the case itself has changed")
	}
}

func TestPackages(t *testing.T) {
	c := Case{Needs: []string{"a one", "/b/c two", "d one"}}
	if got := strings.Join(c.Packages(), " "); got != "one two" {
		t.Error(got)
	}
}

// Each case is whole, and each text that its service is started with is a template that can be filled in.
func TestCases(t *testing.T) {
	names, kinds := map[string]bool{}, map[string]bool{}
	for _, c := range slices.Concat(Cases(), Others(), Wide()) {
		if names[c.Name] || c.Name == "" || c.Truth == "" || c.Limit <= 0 || len(c.Programs) == 0 || len(c.Needs) == 0 {
			t.Errorf("case %q is not whole, or twice there", c.Name)
		}
		names[c.Name] = true
		if len(c.Containers) == 0 && c.Healthy != (len(c.Causes) == 0) || c.Healthy && len(c.Guilty)+len(c.Suffers) > 0 {
			t.Errorf("case %q: healthy %v, causes %q", c.Name, c.Healthy, c.Causes)
		}
		// The name of a cgroup beside the service has the name of the case in it.
		beside := slices.Contains(c.Causes, "ancestor") || slices.Contains(c.Causes, "neighbours")
		if beside && slices.ContainsFunc(c.Guilty, func(part string) bool { return strings.Contains(c.Name, part) }) {
			t.Errorf("case %q: %q is in the names of the service's own cgroups too", c.Name, c.Guilty)
		}
		// Demand is recorded of a service, not of a pod's container, and under a name of its own.
		if c.Demanded != "" && (c.Pod || kinds[c.Demanded]) {
			t.Errorf("case %q: its demand is a pod's, or %q has it already", c.Name, c.Demanded)
		}
		kinds[c.Demanded] = true
		v, err := (&Stage{Dir: "/truth"}).valuesOf(c)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{c.Prepare}
		for _, text := range c.Files {
			texts = append(texts, text)
		}
		var asks []Ask
		for _, p := range c.Programs {
			texts, asks = append(texts, p.Run), append(asks, p.Ready...)
		}
		for _, s := range c.Streams {
			asks = append(asks, s.Ask)
		}
		for _, r := range c.Again {
			asks = append(asks, r.Ask)
		}
		for _, text := range texts {
			if _, err := v.fill(text); err != nil {
				t.Errorf("case %q: %v", c.Name, err)
			}
		}
		for _, a := range asks {
			r, err := v.request(a)
			if err == nil {
				_, err = exchangeOf(orderOf(r))
			}
			if err != nil {
				t.Errorf("case %q: %v", c.Name, err)
			}
		}
	}
}
