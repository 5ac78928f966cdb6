package remedy

import (
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/kernel/schedpolicy"
	"github.com/unthrottle/unthrottle/internal/txn/change"
)

func TestRealtime(t *testing.T) {
	onEach(t, "0-7", func(t *testing.T, h *host, target container.Container) {
		p, err := Make(h.facts(), target, Request{Kind: Pin, Realtime: true})
		if err != nil {
			t.Fatal(err)
		}
		last := p.Changes[len(p.Changes)-1]
		if last.Kind != change.KindSched || last.Path != target.Group.Path || last.To != "rr 1" || last.File != schedpolicy.Rest {
			t.Errorf("%+v", last)
		}
		if !strings.Contains(strings.Join(p.Warnings, "\n"), "inherit it") {
			t.Errorf("what it costs is not said: %v", p.Warnings)
		}
		plain, err := Make(h.facts(), target, Request{Kind: Pin})
		if err != nil || len(plain.Changes) != len(p.Changes)-1 {
			t.Errorf("it is off by default: %+v, %v", plain.Changes, err)
		}
		h.limit(target.Group.Path, 1.5)
		for _, r := range []Request{{Kind: Burst, Realtime: true}, {Kind: Pin, Class: ClassHybrid, Realtime: true},
			{Kind: Pin, Shares: true, Realtime: true}, {Kind: Narrow, Realtime: true}} {
			if _, err := Make(h.facts(), target, r); err == nil || !strings.Contains(err.Error(), "--realtime") {
				t.Errorf("%+v: %v", r, err)
			}
		}
	})
}
