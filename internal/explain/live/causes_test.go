package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/container"
	"github.com/unthrottle/unthrottle/internal/explain/diagnose"
	"github.com/unthrottle/unthrottle/internal/load/provoke"
	"github.com/unthrottle/unthrottle/internal/load/provoke/stage"
	"github.com/unthrottle/unthrottle/internal/see/probe"
	view "github.com/unthrottle/unthrottle/internal/ui/report/explain"
	"github.com/unthrottle/unthrottle/internal/ui/report/shared/page"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// window is how long a test records.
const window = 2 * time.Second

func openProbe(t testing.TB) *probe.Probe {
	t.Helper()
	p, err := probe.Open(probe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestMain lets the test binary stand in for the program that children run.
func TestMain(m *testing.M) { stage.Main(m) }

func printed(t testing.TB, e diagnose.Explanation) string {
	t.Helper()
	var b bytes.Buffer
	if err := view.Write(&b, e, view.Options{Style: page.Style{Width: 120}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each cause, provoked alone on this kernel, is named first.
func TestProvokedCausesAreNamedFirst(t *testing.T) {
	require.Alone(t, "how long threads waited for the quota, for each other and for neighbours")
	require.Root(t)
	require.BPF(t)
	s := stage.New(t)
	p := openProbe(t)
	for _, scenario := range provoke.Causes() {
		if scenario.Cause == diagnose.Debt && !hasDebt(t) {
			continue
		}
		for tries, again := 1, true; again; tries++ {
			s.Play(scenario, func(target container.Container, others []container.Container) {
				again = judge(t, s, p, scenario, target, others, tries)
			})
		}
	}
}

// attempts is how often a scenario is run in which something else than what it provokes took place.
const attempts = 6

// overUse is how much more CPU time than its threads ask for a target may be charged with: the rest are switches between
// threads, and what a hypervisor took of a guest that cannot tell (no KVM: a virtual CPU that waits for a real one counts
// as running).
const overUse = 1.35

// excuse says what took place besides what the scenario provokes, so that to name another cause is no mistake; "": nothing.
func excuse(scenario provoke.Scenario, e diagnose.Explanation, others []container.Container, stolen float64) string {
	waited, strange := e.Waiting[diagnose.ByNeighbours]+e.Waiting[diagnose.HostSystem], stage.Strangers(e, others)
	if e.Cause == diagnose.Neighbours && 2*strange > waited.Seconds() {
		return fmt.Sprintf("its threads waited for strangers for %.0f ms", 1000*strange)
	}
	if stolen > provoke.MostForeign {
		return fmt.Sprintf("the hypervisor took %.0f %% of its CPUs", 100*stolen)
	}
	if e.Cause == diagnose.Debt && require.InLab() {
		return "a virtual CPU that waits for a real one goes on to be charged, and the container owes that"
	}
	if asked := scenario.Demand(); e.MeanWidth != nil && *e.MeanWidth > overUse*asked {
		return fmt.Sprintf("its threads ask for %.2f CPUs and were charged with %.2f", asked, *e.MeanWidth)
	}
	return ""
}

// judge fails the test if another cause than the provoked one is named first. again: there was an excuse for that, and it was not
// the last try.
func judge(t *testing.T, s *stage.Stage, p *probe.Probe, scenario provoke.Scenario, target container.Container,
	others []container.Container, tries int) (again bool) {
	t.Helper()
	o := Options{Host: s.Tree.Host, Root: os.DirFS("/"), Target: target, Others: others, For: window}
	var e diagnose.Explanation
	stolen := s.Stolen(func() time.Duration {
		var err error
		if e, err = o.record(context.Background(), p); err != nil {
			t.Fatal(err)
		}
		return e.Window
	})
	if e.Cause != scenario.Cause || len(e.Causes) == 0 || e.Causes[0].Cause != e.Cause {
		if why := excuse(scenario, e, others, stolen); why != "" && tries < attempts {
			t.Logf("%s: %s was named: %s, so that it is no mistake: once more", scenario.Name, e.Cause, why)
			return true
		}
		t.Errorf("%s: %s was named, not %s\n%s", scenario.Name, e.Cause, scenario.Cause, printed(t, e))
		return false
	}
	t.Logf("%s: %s: %s", scenario.Name, e.Cause, e.Verdict)
	if *e.LostEvents > 0 {
		t.Errorf("%s: %d events were lost", scenario.Name, *e.LostEvents)
	}
	return false
}

// An interrupted recording is explained as far as it went; a target that is not there is told as gone.
func TestInterruptedAndGone(t *testing.T) {
	require.Root(t)
	require.BPF(t)
	s, p := stage.New(t), openProbe(t)
	ctx, cancel := context.WithTimeout(context.Background(), window/4)
	defer cancel()
	s.Play(provoke.Causes()[0], func(target container.Container, _ []container.Container) {
		o := Options{Host: s.Tree.Host, Root: os.DirFS("/"), Target: target, For: time.Minute}
		e, err := o.record(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		if e.Window <= 0 || e.Window > 30*time.Second || e.Width == nil {
			t.Errorf("an interrupted recording: %v, %v", e.Window, e.Width)
		}
		target.Group.Path += "-never-was"
		o.Target = target
		gone := new(Gone)
		if _, err := o.record(context.Background(), p); !errors.As(err, &gone) {
			t.Errorf("no such target: %v", err)
		}
	})
}
