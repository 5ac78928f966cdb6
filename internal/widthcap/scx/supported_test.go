package scx

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestRefusals(t *testing.T) {
	v2 := fstest.MapFS{"cgroup.controllers": {Data: []byte("cpuset cpu io\n")}}
	file := func(state, ops string) fstest.MapFS {
		files := fstest.MapFS{"sched_ext/state": {Data: []byte(state + "\n")}}
		if ops != "" {
			files["sched_ext/root/ops"] = &fstest.MapFile{Data: []byte(ops + "\n")}
		}
		return files
	}
	hidden := file("disabled", "")
	hidden["security/lockdown"] = &fstest.MapFile{Data: []byte("none integrity [confidentiality]\n")}
	for _, c := range []struct {
		name            string
		kernel, cgroups fstest.MapFS
		want            []string
	}{
		{"no sched_ext", fstest.MapFS{}, v2, []string{"the kernel has no sched_ext", "6.17", "--via cpuset"}},
		{"another scheduler", file("enabled", "lavd_1.0"), v2, []string{`another scheduler, "lavd_1.0", is enabled`, "stop it"}},
		{"going", file("disabling", ""), v2, []string{`"unknown", is disabling`}},
		{"ours", file("enabled", Name), v2, []string{"by another process"}},
		{"locked down", hidden, v2, []string{"lockdown=integrity will do", "--via cpuset"}},
		{"cgroup v1", file("disabled", ""), fstest.MapFS{}, []string{"not on cgroup v2", "--via cpuset"}},
		{"cpu on v1", file("disabled", ""), fstest.MapFS{"cgroup.controllers": {Data: []byte("cpuset\n")}}, []string{"not on cgroup v2"}},
	} {
		err := canLoad(c.kernel, c.cgroups)
		var u *Unavailable
		if !errors.As(err, &u) || u.Way == "" {
			t.Errorf("%s: %v is no *Unavailable with a way out", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", c.name, err, want)
			}
		}
	}
}

func TestCapCheck(t *testing.T) {
	for _, good := range []Cap{{CPUs: 0.01}, {CPUs: 2.5, Credit: time.Second, Widest: 3}, {CPUs: 1024, Credit: time.Hour, Widest: 1024}} {
		if err := good.Check(); err != nil {
			t.Errorf("%+v: %v", good, err)
		}
		if again := wishOf(good).cap(); again != good {
			t.Errorf("%+v comes back as %+v", good, again)
		}
	}
	for want, bad := range map[string]Cap{
		"a cap of 0 CPUs": {}, "NaN": {CPUs: math.NaN()}, "1025": {CPUs: 1025}, "-1s": {CPUs: 1, Credit: -time.Second},
		"less than the cap of 2.5; give at least 3": {CPUs: 2.5, Widest: 2}, "-1 CPUs": {CPUs: 1, Widest: -1},
	} {
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v lacks %q", bad, err, want)
		}
	}
}
