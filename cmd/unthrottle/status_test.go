package main

import (
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/agent"
)

// Status says since when there are rows and what went, and shows a folder's name as data.
func TestStatusTellsOfRemovedRows(t *testing.T) {
	got := exporting(&agent.Exporting{Process: 7, Dir: "/srv/a\x1b[2J", Bytes: 3 << 19,
		From: time.Date(2026, 11, 25, 12, 0, 0, 0, time.Local), Removed: 2})
	for _, want := range []string{"process 7", "since 2026-11-25 12:00:00 in /srv/a\\x1b[2J, 1.5 MiB", "removed 2 older files"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}
