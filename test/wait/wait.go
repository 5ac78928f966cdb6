// Package wait lets a test wait for an event, and for nothing else: no test waits for a fixed time, or bounds how long something takes.
package wait

import (
	"testing"
	"time"
)

// Patience is how long [Until] waits: far longer than anything takes on an idle host, so that a host which is busy and ten times slower
// passes too. It is no claim about speed.
const Patience = 3 * time.Minute

// Until tries again until something holds. After [Patience] the test fails with what was to come, and with what each why says is there
// instead.
func Until(t testing.TB, what string, holds func() bool, why ...func() string) {
	t.Helper()
	for end := time.Now().Add(Patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().Before(end) {
			continue
		}
		instead := ""
		for _, say := range why {
			instead += "\n" + say()
		}
		t.Fatalf("not within %v: %s%s", Patience, what, instead)
	}
}
