package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bench/services"
)

func TestHolds(t *testing.T) {
	mostly := services.Case{Limit: 0.4, Causes: []string{"burst", "pool"}}
	if err := holds(mostly, 0.3); err != nil {
		t.Error("a service below its limit:", err)
	}
	if err := holds(mostly, 0.51); err == nil || !strings.Contains(err.Error(), "0.51 CPUs without its limit of 0.40, so that burst") {
		t.Error("a service that wants more than its limit:", err)
	}
}

func TestLoadFor(t *testing.T) {
	for _, c := range []struct {
		name      string
		use, free float64
		want      float64
	}{
		{"as fast as the machine of the case", 0.3, 0.29, 0},
		{"a little slower", 0.3, 0.34, 0},
		{"half as fast", 0.3, 0.6, 0.5},
		{"a case that is not scaled", 0, 0.6, 0},
	} {
		if got := loadFor(c.use, c.free); got != c.want {
			t.Errorf("%s: %v of the requests, want %v", c.name, got, c.want)
		}
	}
	for _, c := range services.Cases() { // else a slower host would refuse it
		if mostlyIdle(c) && c.Use == 0 {
			t.Errorf("%s is mostly idle, and does not say what it is meant to use", c.Name)
		}
		if c.Use > 0 && (c.Healthy || c.Use >= c.Limit) {
			t.Errorf("%s is meant to use %v of %v CPUs", c.Name, c.Use, c.Limit)
		}
	}
}

// A burst more than usual is no slower host.
func TestUsual(t *testing.T) {
	one, run := []services.Stream{{PerSecond: 6, Burst: 6}}, oneRun{UsedCPUs: 0.3, Requests: 36}
	if got := usual(one, run, 3*time.Second); math.Abs(got-0.15) > 1e-9 {
		t.Errorf("twice the usual requests: %v CPUs, want 0.15", got)
	}
	if got := usual(append(one, one...), run, 3*time.Second); got != 0.3 {
		t.Errorf("two kinds of requests: %v", got)
	}
	if got := usual(one, oneRun{UsedCPUs: 0.1}, 3*time.Second); got != 0.1 {
		t.Errorf("no request: %v", got)
	}
}

func TestMostlyIdle(t *testing.T) {
	for _, c := range services.Cases() {
		want := true
		switch c.Name {
		case "imagemagick-thumbnails", "gunicorn-pbkdf2", "redis-bgsave", "pod-memcached-xz", "uwsgi-neighbour", "apache-one-cpu",
			"nginx-healthy":
			want = false
		case "etcd-ranges", "pdns-records", "puma-tiny", "node-logins":
		default:
			continue
		}
		if got := mostlyIdle(c); got != want {
			t.Errorf("%s: mostly idle %v, want %v", c.Name, got, want)
		}
	}
}
