package main

import (
	"strings"
	"testing"

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
