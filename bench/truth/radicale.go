package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/unthrottle/unthrottle/internal/load/loadgen"
)

func podRadicaleBackup() testCase {
	return testCase{
		name:  "pod-radicale-backup",
		truth: "A pod's limit holds for the calendar server Radicale, which answers 60 requests a second for an event, and for a sidecar in which restic makes compressed backups without a pause. The sidecar spends the pod's quota, Radicale waits.",
		limit: 0.8, pod: true,
		causes:  []string{"ancestor"},
		guilty:  []string{"sidecar"},
		suffers: []string{"radicale", "python", "main"},
		needs:   []need{{"radicale", "radicale"}, {"restic", "restic"}},
		start:   startRadicale,
	}
}

// resticBackups makes a new repository each time, so that restic finds nothing saved already.
const resticBackups = `while :; do rm -rf repository; restic -q init; restic -q backup --compression max data; done`

const calendarEvent = `BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//shop//calendar//EN
BEGIN:VEVENT
UID:inventory
DTSTAMP:20260105T080000Z
DTSTART:20260105T090000Z
DTEND:20260105T100000Z
RRULE:FREQ=WEEKLY
SUMMARY:Inventory
END:VEVENT
END:VCALENDAR
`

func startRadicale(ctx context.Context, s *stage) (service, error) {
	addr, _, err := freeAddr()
	if err != nil {
		return service{}, err
	}
	const calendar = "calendars/collection-root/shop/dates"
	if err := os.MkdirAll(filepath.Join(s.dir, calendar), 0o755); err != nil {
		return service{}, err
	}
	for name, text := range map[string]string{
		calendar + "/.Radicale.props": `{"tag": "VCALENDAR"}`, calendar + "/inventory.ics": calendarEvent, "data": pageOfText(16_000_000),
	} {
		if _, err := s.file(name, text); err != nil {
			return service{}, err
		}
	}
	args := []string{"radicale", "--config", "", "--server-hosts", addr, "--storage-filesystem-folder", s.dir + "/calendars",
		"--auth-type", "none", "--rights-type", "authenticated", "--logging-level", "error"}
	if err := s.start(program{args: args}); err != nil {
		return service{}, err
	}
	event := request{Protocol: protocolHTTP, Text: "http://shop:x@" + addr + "/shop/dates/inventory.ics"}
	if err := s.ready(ctx, event); err != nil {
		return service{}, err
	}
	sidecar, err := s.group(s.limited, "sidecar")
	if err != nil {
		return service{}, err
	}
	settings := []string{"RESTIC_REPOSITORY=" + s.dir + "/repository", "RESTIC_PASSWORD=secret", "RESTIC_CACHE_DIR=" + s.dir + "/cache"}
	return service{streams: []loadgen.Stream{{Name: "event", PerSecond: 60}}, requests: []request{event}, connections: 16},
		s.start(program{in: sidecar, args: []string{"/bin/sh", "-c", resticBackups}, env: settings})
}
