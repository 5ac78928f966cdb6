package live

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/internal/load/provoke/stage"
	"github.com/unthrottle/unthrottle/internal/sim/forecast"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// A limit that its owner changes while it is recorded is told, also by the kept recording; no cause is named, and nothing is forecast.
func TestLimitChangesWhileItIsRecorded(t *testing.T) {
	require.Root(t)
	require.BPF(t)
	s, p := stage.New(t), openProbe(t)
	limited := provoke.Causes()[0]
	s.Play(limited, func(target container.Container, _ []container.Container) {
		record := func(began func()) (diagnose.Explanation, *bytes.Buffer) {
			var kept bytes.Buffer
			o := Options{Host: s.Tree.Host, Root: os.DirFS("/"), Target: target, For: time.Second, Keep: &kept, Began: began}
			e, err := o.record(context.Background(), p)
			if err != nil {
				t.Fatal(err)
			}
			return e, &kept
		}
		if e, _ := record(nil); len(e.LimitChanges) > 0 || e.LimitCPUs == nil {
			t.Fatalf("changes %+v of a limit that stayed; limit %v", e.LimitChanges, e.LimitCPUs)
		}
		e, kept := record(func() { s.Tree.Limit(target.Group.Path, 1.75) })
		if len(e.LimitChanges) != 1 || e.Cause != "" || e.LimitCPUs != nil ||
			!strings.Contains(e.Verdict, "to 1.75 CPUs") || !strings.Contains(printed(t, e), "No cause can be told") {
			t.Errorf("changes %+v, cause %q: %s", e.LimitChanges, e.Cause, e.Verdict)
		}
		if again, err := Recording(bytes.NewReader(kept.Bytes())); err != nil || again.Verdict != e.Verdict {
			t.Errorf("the kept recording: %q, %v", again.Verdict, err)
		}
		if _, err := forecast.Read(kept); !errors.As(err, new(*forecast.LimitChanged)) {
			t.Errorf("its forecast: %v", err)
		}
	})
}
