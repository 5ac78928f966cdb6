package rules

import (
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/bandwidth"
)

// TestRulesAreValues: a rule that is asked the same twice answers the same, so that one value can be tried in many runs, and it
// asks for what the kernel takes unless it is Koordinator.
func TestRulesAreValues(t *testing.T) {
	kernel, err := bandwidth.For("6.12")
	if err != nil {
		t.Fatal(err)
	}
	history := aDay(75*time.Second, func(at time.Duration) float64 { return 0.2 + at.Hours()/24 })
	for name, rule := range map[string]Rule{
		"Koordinator": Koordinator{Burst: true, QuotaBurst: true, BurstPercent: 50, QuotaBurstPercent: 300, QuotaBurstSeconds: 60,
			SharePoolPercent: 50, TokenShare: 0.5},
		"Captain": NewCaptain(0.05, 2), "VPA": VPA{}, "KRR": KRR{}, "Attune": Attune{Limits: true}, "Kubelet": Kubelet{true},
		"plain": Raised(1), "no limit": NoLimit(),
	} {
		seen := Observed{Spec: Resources{1, 2}, Now: Setting{RequestCPUs: 1, Limit: quotaOf(200 * ms)}, Node: &Node{8, 1}, History: history,
			For: max(rule.Cadence(), time.Second), Periods: 10}
		for i := range 30 {
			seen.At += rule.Cadence()
			seen.Used, seen.Throttled = seen.For*time.Duration(i%4)/2, int64(i%3)
			s, next := rule.Next(seen)
			if again, _ := rule.Next(seen); again != s {
				t.Fatalf("%s, turn %d: %+v, then %+v", name, i, s, again)
			}
			if refused := s.Limit.Check(&kernel); refused != nil {
				t.Fatalf("%s, turn %d: %v", name, i, refused)
			}
			seen.Now, rule = s, next
		}
	}
}

// TestWorkedExample has the figures of doc.go.
func TestWorkedExample(t *testing.T) {
	day := func(step time.Duration) []Sample {
		return aDay(step, func(at time.Duration) float64 {
			if at >= 14*time.Hour && at < 15*time.Hour {
				return 1.6
			}
			return 0.4
		})
	}
	first := Setting{RequestCPUs: 1, Limit: quotaOf(200 * ms)}
	second := Observed{At: time.Second, Spec: Resources{1, 2}, Now: first, Used: 1800 * ms, For: time.Second, Periods: 10, Throttled: 3,
		Node: &Node{SharedCPUs: 8, UsedCPUs: 2}}
	var captain Rule = NewCaptain(0.05, 2)
	for i := range 10 { // the eleventh sample brings the first decision
		sample := Observed{At: time.Duration(i) * 100 * ms, Now: first, Used: 180 * ms, For: 100 * ms, Periods: 1}
		if i > 7 {
			sample.Throttled = 1
		}
		_, captain = captain.Next(sample)
	}
	for name, c := range map[string]struct {
		rule    Rule
		history []Sample
		want    Setting
	}{
		"Koordinator": {DefaultKoordinator(), nil, Setting{RequestCPUs: 1,
			Limit: bandwidth.Limit{Quota: 240 * ms, Period: 100 * ms, Burst: 2 * time.Second}}},
		"VPA":     {VPA{}, day(time.Minute), Setting{RequestCPUs: 0.476, Limit: quotaOf(95200 * time.Microsecond)}},
		"KRR":     {KRR{}, day(75 * time.Second), Setting{RequestCPUs: 0.4, Limit: quotaOf(bandwidth.NoQuota)}},
		"Attune":  {Attune{}, day(5 * time.Minute), Setting{RequestCPUs: 1.5, Limit: first.Limit}},
		"Kubelet": {Kubelet{true}, nil, first},
	} {
		second.History = c.history
		if s, _ := c.rule.Next(second); s != c.want {
			t.Errorf("%s: %+v, want %+v", name, s, c.want)
		}
	}
	last := Observed{At: time.Second, Now: first, Used: 180 * ms, For: 100 * ms, Periods: 1, Throttled: 1}
	if s, _ := captain.Next(last); s.Limit != quotaOf(230*ms) {
		t.Errorf("Captain: %+v", s)
	}
}
